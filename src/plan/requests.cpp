#include "plan/requests.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include "base/clock.h"
#include "engine/waiters/between_polls.h"
#include "plan/attendance.h"
#include "plan/plan_request.h"
#include "plan/tickets.h"
#include "transport/mpi/host.h"

namespace thalweg {
namespace {

// Of those that are unattended, how many are active; and looks at them, under the lock.
constinit std::atomic<std::uint32_t> unattended_count{0};
constinit std::uint64_t looks = 0;

// What the native library calls, inside its own completion calls: no call of ours that waits. Of an error
// tell_failures() tells, whoever asked meanwhile.
int tell_status(void* state, MPI_Status* status) {
    const Host& mpi = *host();
    hear_failure(*static_cast<Ticket*>(state));
    mpi.Status_set_elements(status, mpi.byte, 0);
    mpi.Status_set_cancelled(status, 0);
    return MPI_SUCCESS;
}
int forget(void* state) {
    Ticket* const ticket = static_cast<Ticket*>(state);
    forget_ticket(*ticket);
    let_go(ticket);
    return MPI_SUCCESS;
}
int ignore_cancel(void*, int) { return MPI_SUCCESS; }

// For whoever looks at an active one, or waits for it, while others may be asking after it: as long as it is
// helping, nobody else ends it. False: it is not active, or somebody else's. Gives it back, or finishes.
bool take(Ticket& ticket) {
    TicketState expected = TicketState::active;
    return ticket.state.load(std::memory_order_relaxed) == expected &&
           ticket.state.compare_exchange_strong(expected, TicketState::helping, std::memory_order_acquire);
}
void put_back(Ticket& ticket) { ticket.state.store(TicketState::active, std::memory_order_release); }

// A poll for each that is unattended. One that is taken stays meanwhile: its owner, who alone may free it,
// has to finish it before.
void help_unattended() {
    std::uint64_t look = 0;
    for (;;) {
        Ticket* taken = nullptr;
        {
            const std::lock_guard lock(tickets_mutex);
            if (look == 0) look = ++looks;
            for (const auto& [key, ticket] : tickets()) {
                if (!ticket->unattended || ticket->look >= look || !take(*ticket)) continue;
                taken = ticket;
                taken->look = look;
                break;
            }
        }
        if (taken == nullptr) return;
        taken->ongoing->help();
        put_back(*taken);
    }
}

// As take(), by who waits for it: others have it for a poll, or finish it. False: there is nothing to wait
// for, not for MPICH's MPI_Waitall either, which ends the job where a generalized request is not complete.
bool take_soon(Ticket& ticket) {
    for (std::uint64_t began_ns = 0; !take(ticket); began_ns = pause_between(began_ns)) {
        const TicketState state = ticket.state.load(std::memory_order_acquire);
        if (state == TicketState::idle || state == TicketState::finished) return false;
    }
    return true;
}

// By a call that completes requests, before another thread may end it. Of one in the list of the binding that
// makes this call that knows.
void number(Ticket& ticket, int place) {
    if (!ticket.noted) ticket.index = place;
}

// Whether whoever waits for `ticket`, and then for `next`, drives the same channel there. Pre: the caller has
// taken `ticket`.
bool goes_on_with(const Ticket& ticket, Ticket* next) {
    if (next == nullptr || !take(*next)) return false;
    const bool goes_on = ticket.ongoing->shares_lane(*next->ongoing) && next->ongoing->pending();
    put_back(*next);
    return goes_on;
}

// As Ongoing::wait(); `next`: what the thread waits for next, if anything. Pre: the caller has taken
// `ticket`. What is unattended goes on meanwhile: another rank may wait for it first.
bool wait_for_one(Ticket& ticket, std::uint64_t until_ns, Ticket* next) {
    constexpr std::uint64_t own_slice_ns = 50'000, slice_ns = 1'000'000;
    const std::uint32_t own = ticket.unattended ? 1 : 0;
    while (unattended_count.load(std::memory_order_relaxed) > own) {
        help_unattended();
        const std::uint64_t time_ns = now_ns();
        if (ticket.ongoing->wait(std::min(until_ns, time_ns + (own != 0 ? own_slice_ns : slice_ns))))
            return true;
        if (time_ns >= until_ns) return false;
    }
    return ticket.ongoing->wait(until_ns, goes_on_with(ticket, next));
}

// As enter_ticket(); what is left of one whose request is gone goes, too.
void enter(Ticket* ticket) {
    Ticket* const left = enter_ticket(ticket);
    if (left != nullptr && !is_active(*left)) left->persistent ? destroy(left) : let_go(left);
}

}  // namespace

void finish(Ticket& ticket, TicketState from) {
    std::uint64_t began_ns = 0;
    TicketState found = from;
    while (!ticket.state.compare_exchange_strong(found, TicketState::finishing, std::memory_order_acquire)) {
        if (found != TicketState::helping && found != TicketState::finishing) return;
        began_ns = pause_between(began_ns);
        found = from;
    }
    if (ticket.unattended) unattended_count.fetch_sub(1, std::memory_order_relaxed);
    const Host& mpi = *host();
    ticket.error = ticket.ongoing->finish();
    ticket.set_untold(ticket.error != MPI_SUCCESS);
    if (ticket.persistent) {
        const int tag = ticket.tag;
        ticket.state.store(TicketState::finished, std::memory_order_release);
        mpi.Send(nullptr, 0, mpi.byte, 0, tag, Attendance::self());
        return;
    }
    std::unique_ptr<Ongoing> ongoing = std::move(ticket.ongoing);
    ticket.owners.fetch_add(1, std::memory_order_relaxed);
    ticket.state.store(TicketState::known, std::memory_order_release);
    Ongoing::retire(std::move(ongoing));
    mpi.Grequest_complete(ticket.request);
    ticket.state.store(TicketState::finished, std::memory_order_release);
    let_go(&ticket);
}

std::unique_ptr<Ongoing> make_request(std::unique_ptr<Ongoing> ongoing, MPI_Comm comm, MPI_Request* request,
                                      int& error) {
    finish_done_among_freed();
    std::unique_ptr<Ticket> ticket;
    try {
        ticket = std::make_unique<Ticket>();
        error = host()->Grequest_start(tell_status, forget, ignore_cancel, ticket.get(), &ticket->request);
        if (error != MPI_SUCCESS) return ongoing;
        ticket->raised_on = RaisedOn(comm, ongoing->options().record, false);
        enter(ticket.get());
    } catch (const std::bad_alloc&) {
        error = MPI_ERR_NO_MEM;
        return ongoing;
    }
    ticket->ongoing = std::move(ongoing);
    *request = ticket.release()->request;
    return nullptr;
}

std::unique_ptr<Ongoing> make_persistent(std::unique_ptr<Ongoing> ongoing, MPI_Comm comm,
                                         MPI_Request* request, int& error) {
    error = MPI_SUCCESS;
    try {
        auto ticket = std::make_unique<Ticket>();
        std::shared_ptr<PlanRequest> native = std::move(ongoing->options().request);
        if (native == nullptr) native = PlanRequest::make(error);
        if (native == nullptr) return ongoing;
        ticket->persistent = true;
        ticket->unattended = ongoing->options().unattended;
        ticket->state.store(TicketState::idle, std::memory_order_relaxed);
        ticket->tag = native->tag();
        ticket->request = native->request();
        ticket->raised_on = RaisedOn(comm, ongoing->options().record, true);
        enter(ticket.get());
        native->hand_over();
        ticket->ongoing = std::move(ongoing);
        *request = ticket.release()->request;
        return nullptr;
    } catch (const std::bad_alloc&) {
        error = MPI_ERR_NO_MEM;
        return ongoing;
    }
}

bool wait_for(RequestList requests, int count, bool again, Ticket** failed) {
    // Most waits for both kinds are over before the first test, which costs the agent a wake-up.
    constexpr std::uint64_t first_ns = 10'000'000, next_ns = 1'000'000;
    finish_done_among_freed();
    if (!again) listen_for_failures(true);
    bool all = true;
    // All are driven by whoever waits for one, but each only by its own channel's helm: in any order.
    const auto wait_until = [&](std::uint64_t until_ns) {
        all = true;
        for_each_ticket(requests, count, [&](Ticket& ticket, Ticket* next, int place) {
            number(ticket, place);
            if (!take_soon(ticket)) return;
            if (wait_for_one(ticket, until_ns, next)) {
                finish(ticket, TicketState::helping);
                return;
            }
            put_back(ticket);
            all = false;
        });
    };
    wait_until(count > 1 ? now_ns() + (again ? next_ns : first_ns) : DrivenChannel::forever_ns);
    const bool over = all || !has_others(requests, count);
    if (!all && over) wait_until(DrivenChannel::forever_ns);
    note_failures(requests, count, failed);
    return over;
}

bool help(RequestList requests, int count, Ticket** failed) {
    finish_done_among_freed();
    listen_for_failures(failed != nullptr);
    bool pending = false, done = false;
    std::uint32_t helped = 0;  // of those that are unattended
    for_each_ticket(requests, count, [&](Ticket& ticket, const Ticket*, int place) {
        if (failed != nullptr) number(ticket, place);
        if (!take(ticket)) {
            pending |= is_active(ticket);  // another thread sees to it
            return;
        }
        if (ticket.ongoing->pending()) ticket.ongoing->help();
        if (ticket.ongoing->pending()) {
            pending = true;
            helped += ticket.unattended;
            put_back(ticket);
            return;
        }
        finish(ticket, TicketState::helping);
        done = true;
    });
    if (unattended_count.load(std::memory_order_relaxed) > helped) help_unattended();
    if (failed != nullptr) note_failures(requests, count, failed);
    return pending && !done;
}

std::uint64_t pause_between(std::uint64_t began_ns) {
    constexpr std::uint64_t yields_ns = 50'000;
    const World* const world = World::get();
    const bool naps =
        (world != nullptr && world->sleeps()) || (began_ns != 0 && now_ns() - began_ns >= yields_ns);
    return pause_between_polls(naps ? WaitPolicy::sleep : WaitPolicy::spin, began_ns);
}

// What is active has been started already.
void start(RequestList requests, int count) {
    for_each_ticket(requests, count, [](Ticket& ticket, const Ticket*, int) {
        const TicketState state = ticket.state.load(std::memory_order_acquire);
        if (!ticket.persistent || (state != TicketState::idle && state != TicketState::finished)) return;
        ticket.set_untold(false);
        ticket.ongoing->start();
        if (ticket.unattended) unattended_count.fetch_add(1, std::memory_order_relaxed);
        ticket.state.store(TicketState::active, std::memory_order_release);
    });
}

}  // namespace thalweg
