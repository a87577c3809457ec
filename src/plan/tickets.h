// The requests that stand for operations of ours, found by their handles. MPI is never called while the lock
// is held.
//
// A ticket belongs to the request's native life: whoever lets that end frees it. The pointers that are handed
// out here stay good as long as the program keeps to MPI's rule that one thread at a time completes or frees
// a request. Meanwhile others may ask after it (MPI_Request_get_status), which ends the operation as well.
#pragma once

#include <mpi.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "plan/ongoing.h"
#include "plan/raised_on.h"
#include "plan/requests.h"

namespace thalweg {

// active: started, and nobody has put its data in place yet. helping: so, and a thread looks at its Ongoing,
// or waits for it, which no other one ends meanwhile. finishing: a thread puts its data in place. known: not
// persistent, and that is done; the thread completes its native request. finished: that is complete; of a
// persistent one it will be. idle: persistent, not started yet.
enum class TicketState : std::uint8_t { idle, active, helping, finishing, known, finished };

// Tickets with an error that the program has not heard of. While there is none nobody looks for any.
extern constinit std::atomic<std::uint32_t> untold_failures;

struct Ticket {
    Ticket() = default;
    ~Ticket() { set_untold(false); }
    Ticket(const Ticket&) = delete;
    Ticket& operator=(const Ticket&) = delete;

    void set_untold(bool now) {
        if (untold == now) return;
        untold = now;
        if (now)
            untold_failures.fetch_add(1, std::memory_order_relaxed);
        else
            untold_failures.fetch_sub(1, std::memory_order_relaxed);
    }

    std::unique_ptr<Ongoing> ongoing;
    MPI_Request request;
    RaisedOn raised_on;
    bool persistent = false;
    bool unattended = false;  // as its Ongoing's
    bool freed = false;       // by the program, while active; under the lock
    std::uint64_t look = 0;   // of those at what is unattended, the latest that came by; under the lock
    int tag = 0;              // of the receive from oneself
    int error = MPI_SUCCESS;  // of its latest run, once that is finished
    bool untold = false;      // the program has not heard of that error: set_untold()
    // Of what is not persistent: a call which completes requests may have ended it, and has it in its list
    // (note_failures(), hear_failure()), under the number that the request has in the call. That list is an
    // owner, and the request another.
    bool noted = false;
    int index = 0;  // in the latest call that completes requests, by which alone it is set
    Ticket* next_noted = nullptr;
    std::atomic<int> owners{1};
    std::atomic<TicketState> state{TicketState::active};
};

// By one of its owners: the last one destroys it.
void let_go(Ticket* ticket);

inline bool is_active(const Ticket& ticket) {
    const TicketState state = ticket.state.load(std::memory_order_acquire);
    return state == TicketState::active || state == TicketState::helping;
}
// `from`: helping, by who has taken it; active, by another, which waits until it is taken by nobody or
// finished. Pre: the operation is not pending. After the native request is complete the ticket may be gone,
// unless it is persistent.
void finish(Ticket& ticket, TicketState from = TicketState::active);
// Those that the program has freed while they were active, and that are done now.
void finish_done_among_freed();
// Pre: nobody uses it any more. Not inside MPI.
void destroy(Ticket* ticket);

inline std::uintptr_t key_of(MPI_Request request) {
    std::uintptr_t key = 0;
    static_assert(sizeof request <= sizeof key);
    std::memcpy(&key, &request, sizeof request);
    return key;
}

extern constinit std::mutex tickets_mutex;
// Every request of ours by its handle. Pre: the lock is held.
std::unordered_map<std::uintptr_t, Ticket*>& tickets();

// How many of ours have a handle of each class: what is 0 need not be looked up, so that threads which
// complete requests of the library's do not meet at the lock. A request reaches another thread by the
// program's own synchronisation, and what counted it with it.
inline constexpr unsigned handle_classes_log2 = 10;
extern constinit std::array<std::atomic<std::uint32_t>, 1 << handle_classes_log2> handle_classes;

inline std::atomic<std::uint32_t>& class_of(MPI_Request request) {
    const std::uint64_t mixed = std::uint64_t{key_of(request)} * 0x9e3779b97f4a7c15u;
    return handle_classes[mixed >> (64 - handle_classes_log2)];
}

inline bool may_be_ours(const MPI_Request& request) {
    return class_of(request).load(std::memory_order_relaxed) != 0;
}

// From here on it is found by its request. Throws std::bad_alloc. What was found so before, or null: its
// request has ended without a word (MPICH's MPI_Testall of more than 64 without statuses calls no functions
// of generalized requests where the last of them are messages), and the handle is this one's now.
Ticket* enter_ticket(Ticket* ticket);
// No longer; nothing happens where it was not, or another has its handle.
void forget_ticket(const Ticket& ticket);
// Null: not ours.
Ticket* find_ticket(const MPI_Request& request);
// Whether the native library has requests of its own among these.
bool has_others(RequestList requests, int count);

// Of requests of ours among these that have failed the native call will say nothing: what is not persistent
// is added to *failed, for tell_failures().
void note_failures(RequestList requests, int count, Ticket** failed);
// Behind that a thread which asks after one may end it, before the native call of this one completes it. Of
// what it completes that asks, in this thread, how it went: of a failure tell_failures() knows by this, too.
// listen_for_failures() in front, with whether this is a call that `completes` requests; else it only asks.
void listen_for_failures(bool completes);
void hear_failure(Ticket& ticket);

// A tag for the receive from oneself of a persistent request; nobody else has it until it is given back.
// Throws std::bad_alloc.
int take_tag();
void give_tag_back(int tag);

// Calls `action` with every ticket among the requests, the one behind it where that is known, and its own
// number there, without the lock.
template <typename Action>
void for_each_ticket(RequestList requests, int count, Action action) {
    if (requests.empty()) return;  // an error that the native call reports
    std::array<MPI_Request, 64> candidates;
    std::array<Ticket*, candidates.size()> some;
    std::array<int, candidates.size()> places;
    for (int next = 0; next < count;) {
        std::size_t wanted = 0, found = 0;
        for (; next < count && wanted < candidates.size(); ++next) {
            candidates[wanted] = requests[next];
            places[wanted] = next;
            wanted += may_be_ours(candidates[wanted]);
        }
        if (wanted == 0) continue;
        {
            const std::lock_guard lock(tickets_mutex);
            const auto& known = tickets();
            for (std::size_t i = 0; i < wanted; ++i) {
                const auto entry = known.find(key_of(candidates[i]));
                if (entry == known.end()) continue;
                places[found] = places[i];
                some[found++] = entry->second;
            }
        }
        for (std::size_t i = 0; i < found; ++i)
            action(*some[i], i + 1 < found ? some[i + 1] : nullptr, places[i]);
    }
}

}  // namespace thalweg
