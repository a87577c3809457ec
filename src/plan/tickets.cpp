#include "plan/tickets.h"

#include <bit>
#include <utility>
#include <vector>

#include "plan/attendance.h"
#include "plan/requests.h"
#include "transport/mpi/host.h"

namespace thalweg {

constinit std::mutex tickets_mutex;
constinit std::atomic<std::uint32_t> untold_failures{0};
constinit std::array<std::atomic<std::uint32_t>, 1 << handle_classes_log2> handle_classes{};

namespace {

// Tags of persistent requests: a set bit is in use. They grow as far as they must.
std::vector<std::uint64_t>& tags() {
    static auto* const used = new std::vector<std::uint64_t>;
    return *used;
}

constexpr int first_tag = Attendance::unmatched_tag + 1;

}  // namespace

std::unordered_map<std::uintptr_t, Ticket*>& tickets() {
    static auto* const known = new std::unordered_map<std::uintptr_t, Ticket*>;
    return *known;
}

int take_tag() {
    const std::lock_guard lock(tickets_mutex);
    for (std::size_t word = 0; word < tags().size(); ++word) {
        if (~tags()[word] == 0) continue;
        const int bit = std::countr_one(tags()[word]);
        tags()[word] |= std::uint64_t{1} << bit;
        return first_tag + static_cast<int>(64 * word) + bit;
    }
    tags().push_back(1);
    return first_tag + static_cast<int>(64 * (tags().size() - 1));
}

void give_tag_back(int tag) {
    const std::lock_guard lock(tickets_mutex);
    const auto index = static_cast<std::size_t>(tag - first_tag);
    tags()[index / 64] &= ~(std::uint64_t{1} << index % 64);
}

Ticket* enter_ticket(Ticket* ticket) {
    const std::lock_guard lock(tickets_mutex);
    const auto [entry, is_new] = tickets().emplace(key_of(ticket->request), ticket);
    if (!is_new) return std::exchange(entry->second, ticket);
    class_of(ticket->request).fetch_add(1, std::memory_order_relaxed);
    std::atomic_ref(thalweg_completion_calls.requests).fetch_add(1, std::memory_order_relaxed);
    return nullptr;
}

void forget_ticket(const Ticket& ticket) {
    const std::lock_guard lock(tickets_mutex);
    const auto found = tickets().find(key_of(ticket.request));
    if (found == tickets().end() || found->second != &ticket) return;
    tickets().erase(found);
    class_of(ticket.request).fetch_sub(1, std::memory_order_relaxed);
    std::atomic_ref(thalweg_completion_calls.requests).fetch_sub(1, std::memory_order_relaxed);
}

void let_go(Ticket* ticket) {
    if (ticket->owners.fetch_sub(1, std::memory_order_acq_rel) == 1) delete ticket;
}

Ticket* find_ticket(const MPI_Request& request) {
    if (!may_be_ours(request)) return nullptr;
    const std::lock_guard lock(tickets_mutex);
    const auto found = tickets().find(key_of(request));
    return found == tickets().end() ? nullptr : found->second;
}

bool has_others(RequestList requests, int count) {
    if (requests.empty()) return false;
    const MPI_Request null = host()->request_null;
    for (int i = 0; i < count; ++i) {
        const MPI_Request request = requests[i];
        if (request != null && find_ticket(request) == nullptr) return true;
    }
    return false;
}

}  // namespace thalweg
