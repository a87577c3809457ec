// What the program is told of requests of ours that have failed, by whichever call completes them: behind the
// native one, which has taken them for successful.
#include <mpi.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <utility>

#include "plan/requests.h"
#include "plan/statistics.h"
#include "plan/tickets.h"
#include "transport/mpi/error_handler.h"
#include "transport/mpi/host.h"

namespace thalweg {
namespace {

bool has_untold_failure(const Ticket& ticket) {
    const TicketState state = ticket.state.load(std::memory_order_acquire);
    return (state == TicketState::known || state == TicketState::finished) && ticket.untold;
}

// The failures that one call tells of. Needs no memory, and leaves no more than references to records behind
// where a handler jumps.
class Telling {
  public:
    Telling(int error, const Ended& ended) : ended_(ended), native_error_(error), error_(error) {}

    // Whether the native call, which failed itself, has left the request that it names there.
    bool is_pending(int place) const {
        if (!ended_.several || native_error_ != MPI_ERR_IN_STATUS || ended_.statuses == nullptr) return false;
        int told = MPI_SUCCESS;
        std::memcpy(&told, error_at(place), sizeof told);
        return told == MPI_ERR_PENDING;
    }

    // `index`: of the request, from 0.
    void add(const Ticket& ticket, int index) {
        if (!ended_.several) {
            error_ = ticket.error;
        } else {
            // MPI_ERROR is told of all requests or of none.
            if (error_ == MPI_SUCCESS)
                for (int place = 0; place < ended_.count; ++place) set_error(place, MPI_SUCCESS);
            error_ = MPI_ERR_IN_STATUS;
            for (int place = 0; place < ended_.count; ++place)
                if (index_at(place) == index) set_error(place, ticket.error);
        }
        // Of one that was freed where() makes another communicator each time.
        const auto& made_on = ticket.raised_on.made_on();
        for (std::size_t i = 0; i < raised_count_; ++i)
            if (raised_[i].made_on == made_on) return;
        const bool lives = made_on != nullptr && !made_on->freed.load(std::memory_order_acquire);
        const MPI_Comm comm = ticket.raised_on.where();
        for (std::size_t i = 0; i < raised_count_; ++i)
            if (raised_[i].on == comm) return;
        if (raised_count_ < raised_.size()) raised_[raised_count_++] = {made_on, lives, comm, ticket.error};
    }

    // The last thing: a handler may leave by a jump. One may also free the communicator of the next.
    int tell() const {
        for (std::size_t i = 0; i < raised_count_; ++i) {
            const Raised& raised = raised_[i];
            if (raised.lives && raised.made_on->freed.load(std::memory_order_acquire)) continue;
            call_error_handler(raised.on, raised.error);
        }
        return error_;
    }

    int index_at(int place) const {
        return ended_.indices == nullptr ? place : ended_.indices[place] - ended_.first_index;
    }

  private:
    struct Raised {
        std::shared_ptr<const CommunicatorRecord> made_on;
        bool lives;  // and `on` is its own
        MPI_Comm on;
        int error;
    };

    char* error_at(int place) const {
        return static_cast<char*>(ended_.statuses) + static_cast<std::size_t>(place) * sizeof(MPI_Status) +
               offsetof(MPI_Status, MPI_ERROR);
    }
    void set_error(int place, int error) const {
        if (ended_.statuses != nullptr) std::memcpy(error_at(place), &error, sizeof error);
    }

    const Ended& ended_;
    const int native_error_;
    int error_;
    std::array<Raised, 8> raised_{};  // more communicators than that in one call are not heard of
    std::size_t raised_count_ = 0;
};

// Of the call that this thread makes: whether it completes requests, and what the native one has asked about
// that has failed (hear_failure).
thread_local constinit bool completing [[gnu::tls_model("initial-exec")]] = false;
thread_local constinit Ticket* heard [[gnu::tls_model("initial-exec")]] = nullptr;

void add_to(Ticket** list, Ticket& ticket) {
    ticket.owners.fetch_add(1, std::memory_order_relaxed);
    ticket.noted = true;
    ticket.next_noted = std::exchange(*list, &ticket);
}

// The next one; null: there is none. The caller lets go of it.
Ticket* take_from(Ticket** list) {
    Ticket* const ticket = *list;
    if (ticket == nullptr) return nullptr;
    *list = ticket->next_noted;
    ticket->noted = false;
    return ticket;
}

}  // namespace

void note_failures(RequestList requests, int count, Ticket** failed) {
    if (no_failures() || requests.empty()) return;
    for (int i = 0; i < count; ++i) {
        Ticket* const ticket = find_ticket(requests[i]);
        // A persistent one is there behind the native call as well.
        if (ticket == nullptr || ticket->persistent || !has_untold_failure(*ticket) || ticket->noted)
            continue;
        ticket->index = i;
        add_to(failed, *ticket);
    }
}

// Left of the call before, which a handler has left by a jump: nobody tells of that.
void listen_for_failures(bool completes) {
    while (Ticket* const ticket = take_from(&heard)) let_go(ticket);
    completing = completes;
}

void hear_failure(Ticket& ticket) {
    if (completing && has_untold_failure(ticket) && !ticket.noted) add_to(&heard, ticket);
}

bool no_failures() { return untold_failures.load(std::memory_order_relaxed) == 0; }

int tell_failures(int error, const Ended& ended, Ticket* failed) {
    Telling telling(error, ended);
    const MPI_Request null = host()->request_null;
    for (Ticket** list : {&failed, &heard})
        while (Ticket* const ticket = take_from(list)) {
            // Open MPI's Fortran bindings leave the handle of what has ended where the call reports an error.
            if (ended.requests[ticket->index] == null ||
                ticket->owners.load(std::memory_order_acquire) == 1) {
                telling.add(*ticket, ticket->index);
                ticket->set_untold(false);
            }
            let_go(ticket);
        }
    for (int place = 0; place < ended.count && !ended.requests.empty() && !no_failures(); ++place) {
        const int index = telling.index_at(place);
        Ticket* const ticket = find_ticket(ended.requests[index]);
        if (ticket == nullptr || !ticket->persistent || !has_untold_failure(*ticket)) continue;
        if (telling.is_pending(place)) continue;
        telling.add(*ticket, index);
        ticket->set_untold(false);
    }
    return telling.tell();
}

}  // namespace thalweg
