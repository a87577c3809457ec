// Requests that the program frees or cancels, or never does: what becomes of operations that are active then,
// and what is left of ours in MPI_Finalize.
#include <algorithm>
#include <atomic>
#include <mutex>
#include <vector>

#include "plan/attendance.h"
#include "plan/requests.h"
#include "plan/tickets.h"
#include "transport/mpi/error_handler.h"
#include "transport/mpi/host.h"

namespace thalweg {
namespace {

// Freed by the program while they were active.
std::vector<Ticket*>& freed() {
    static auto* const gone = new std::vector<Ticket*>;
    return *gone;
}
constinit std::atomic<std::uint32_t> freed_count{0};

}  // namespace

void finish_done_among_freed() {
    if (freed_count.load(std::memory_order_relaxed) == 0) return;
    std::vector<Ticket*> done;
    {
        const std::lock_guard lock(tickets_mutex);
        const auto end = std::partition(freed().begin(), freed().end(), [](const Ticket* ticket) {
            return !is_active(*ticket) || ticket->ongoing->pending();
        });
        done.assign(end, freed().end());
        freed().erase(end, freed().end());
        freed_count.store(static_cast<std::uint32_t>(freed().size()), std::memory_order_relaxed);
    }
    for (Ticket* ticket : done) finish(*ticket);
}

void destroy(Ticket* ticket) {
    forget_ticket(*ticket);
    ticket->ongoing->release();
    give_tag_back(ticket->tag);
    delete ticket;
}

// Freeing an active collective request, or cancelling one, is an error. What becomes of it is the library's
// choice, and it makes it on a request of its own. A Fortran binding that calls the C function asks twice
// about one that is freed: the second time it may be finished, but its native request is still there.
bool refuse_free(const MPI_Request& request, int& error) {
    Ticket* const ticket = find_ticket(request);
    if (ticket == nullptr) return false;
    if (!is_active(*ticket)) {
        if (ticket->persistent) destroy(ticket);
        return false;
    }
#if defined(OPEN_MPI)
    error = MPI_ERR_REQUEST;
    call_error_handler(ticket->raised_on.where(), error);
    return true;
#else
    if (ticket->persistent) {
        error = MPI_ERR_REQUEST;
        call_error_handler(ticket->raised_on.where(), error);
        return true;
    }
    const Host& mpi = *host();
    {
        const std::lock_guard lock(tickets_mutex);
        if (ticket->freed) return false;
    }
    MPI_Request other;
    error = mpi.Ibarrier(Attendance::self(), &other);
    if (error == MPI_SUCCESS) error = mpi.Request_free(&other);
    if (error != MPI_SUCCESS) {
        int done = 0;
        mpi.Test(&other, &done, MPI_STATUS_IGNORE);
        return true;
    }
    const std::lock_guard lock(tickets_mutex);
    freed().push_back(ticket);
    ticket->freed = true;
    freed_count.store(static_cast<std::uint32_t>(freed().size()), std::memory_order_relaxed);
    return false;
#endif
}

bool refuse_cancel(const MPI_Request& request, int& error) {
    const Ticket* const ticket = find_ticket(request);
    // The handle of one that is over may be another's by now (enter_ticket).
    if (ticket == nullptr || (!ticket->persistent && ticket->state.load() == TicketState::finished))
        return false;
#if !defined(OPEN_MPI)
    const Host& mpi = *host();
    MPI_Request other;
    if (mpi.Ibarrier(Attendance::self(), &other) == MPI_SUCCESS) {
        error = mpi.Cancel(&other);
        int done = 0;
        mpi.Test(&other, &done, MPI_STATUS_IGNORE);
        if (error != MPI_SUCCESS) return true;
    }
#endif
    error = MPI_ERR_REQUEST;
    call_error_handler(ticket->raised_on.where(), error);
    return true;
}

bool plans_alive() {
    const std::lock_guard lock(tickets_mutex);
    return std::any_of(tickets().begin(), tickets().end(),
                       [](const auto& entry) { return entry.second->persistent; });
}

bool release_requests() {
    std::vector<Ticket*> idle;
    bool all = true;
    {
        const std::lock_guard lock(tickets_mutex);
        for (const auto& [key, ticket] : tickets()) {
            if (ticket->persistent && !is_active(*ticket))
                idle.push_back(ticket);
            else
                all &= !is_active(*ticket);
        }
    }
    for (Ticket* ticket : idle) destroy(ticket);
    return all;
}

void finish_freed() {
    for (;;) {
        Ticket* ticket = nullptr;
        {
            const std::lock_guard lock(tickets_mutex);
            if (freed().empty()) return;
            ticket = freed().back();
            freed().pop_back();
            freed_count.store(static_cast<std::uint32_t>(freed().size()), std::memory_order_relaxed);
        }
        ticket->ongoing->wait();
        finish(*ticket);
    }
}

}  // namespace thalweg
