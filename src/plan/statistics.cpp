#include "plan/statistics.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <mutex>
#include <string_view>

#include "base/clock.h"

namespace thalweg {

namespace {
constinit std::mutex registry_mutex;
constexpr std::size_t retired_kept_apart = 16;
constinit std::atomic<unsigned> next_shard{0};

// What is known of two communicators, each where it has any.
void note_both(const char*& both, const char* one, const char* several) {
    if (*both == '\0')
        both = one;
    else if (*one != '\0' && std::string_view(one) != both)
        both = several;
}
}  // namespace

thread_local constinit unsigned own_shard_or_none [[gnu::tls_model("initial-exec")]] = small_shards;

unsigned new_shard() {
    return own_shard_or_none = next_shard.fetch_add(1, std::memory_order_relaxed) % small_shards;
}

constinit std::array<SmallShard, small_shards> small_calls{};

constinit std::array<DeclinedShard, small_shards> declined_calls{};

const char* text_of(CallKind kind) {
    switch (kind) {
        case CallKind::bcast:
            return "bcast";
        case CallKind::ibcast:
            return "ibcast";
        case CallKind::bcast_init:
            return "bcast_init";
        case CallKind::iallgather:
            return "iallgather";
        case CallKind::allgather_init:
            return "allgather_init";
        case CallKind::iallgatherv:
            return "iallgatherv";
        case CallKind::allgatherv_init:
            return "allgatherv_init";
        case CallKind::iallreduce:
            return "iallreduce";
        case CallKind::allreduce_init:
            return "allreduce_init";
        case CallKind::ibarrier:
            return "ibarrier";
        case CallKind::barrier_init:
            return "barrier_init";
        case CallKind::ialltoall:
            return "ialltoall";
        case CallKind::alltoall_init:
            return "alltoall_init";
        case CallKind::ialltoallv:
            return "ialltoallv";
        case CallKind::alltoallv_init:
            return "alltoallv_init";
        case CallKind::ialltoallw:
            return "ialltoallw";
        case CallKind::alltoallw_init:
            return "alltoallw_init";
        case CallKind::ineighbor_allgather:
            return "ineighbor_allgather";
        case CallKind::neighbor_allgather_init:
            return "neighbor_allgather_init";
        case CallKind::neighbor_allgather:
            return "neighbor_allgather";
        case CallKind::ineighbor_allgatherv:
            return "ineighbor_allgatherv";
        case CallKind::neighbor_allgatherv_init:
            return "neighbor_allgatherv_init";
        case CallKind::neighbor_allgatherv:
            return "neighbor_allgatherv";
        case CallKind::ineighbor_alltoall:
            return "ineighbor_alltoall";
        case CallKind::neighbor_alltoall_init:
            return "neighbor_alltoall_init";
        case CallKind::neighbor_alltoall:
            return "neighbor_alltoall";
        case CallKind::ineighbor_alltoallv:
            return "ineighbor_alltoallv";
        case CallKind::neighbor_alltoallv_init:
            return "neighbor_alltoallv_init";
        case CallKind::neighbor_alltoallv:
            return "neighbor_alltoallv";
        case CallKind::ineighbor_alltoallw:
            return "ineighbor_alltoallw";
        case CallKind::neighbor_alltoallw_init:
            return "neighbor_alltoallw_init";
        case CallKind::neighbor_alltoallw:
            return "neighbor_alltoallw";
        case CallKind::allgather:
            return "allgather";
        case CallKind::allgatherv:
            return "allgatherv";
        case CallKind::allreduce:
            return "allreduce";
        case CallKind::alltoall:
            return "alltoall";
        case CallKind::alltoallv:
            return "alltoallv";
        case CallKind::alltoallw:
            return "alltoallw";
    }
    return "unknown";
}

const char* text_of(Reason reason) {
    switch (reason) {
        case Reason::small:
            return "below THALWEG_BCAST_MIN_BYTES";
        case Reason::empty:
            return "zero bytes";
        case Reason::single:
            return "one rank";
        case Reason::intercommunicator:
            return "intercommunicator";
        case Reason::freeing:
            return "the communicator is being freed";
        case Reason::invalid:
            return "arguments that the MPI library judges";
        case Reason::foreign:
            return "ranks outside the agreed world";
        case Reason::session:
            return "a session's communicator may be older or outlive the world";
        case Reason::too_many:
            return "all channels are in use (THALWEG_MAX_COMMUNICATORS)";
        case Reason::not_worth_yet:
            return "setting up has not paid yet";
        case Reason::setup_failed:
            return "no private communicator";
        case Reason::native_setting:
            return "left to the MPI library by the settings";
        case Reason::native_best:
            return "native is expected to be best";
        case Reason::cannot:
            return "the algorithm chosen or asked for cannot serve this";
        case Reason::unattended:
            return "nothing would advance it while the program computes";
        case Reason::agent_off:
            return "THALWEG_AGENT=off";
        case Reason::completions:
            return "calls that complete requests do not reach Thalweg";
        case Reason::not_set_up:
            return "no blocking collective has set up the communicator";
        case Reason::reduction:
            return "only the MPI library can combine this";
        case Reason::order:
            return "floating-point sums keep the MPI library's order (THALWEG_FLOAT_ORDER)";
        case Reason::blocks:
            return "the MPI library has an order of its own for the blocks of such a grid";
        case Reason::unalike:
            return "not all ranks have loaded the object for persistent collectives";
    }
    return "unknown";
}

void Tally::add(const Tally& other) {
    calls += other.calls;
    bytes += other.bytes;
    elapsed_ns += other.elapsed_ns;
    waiting_ns += other.waiting_ns;
    staged_calls += other.staged_calls;
    errors += other.errors;
    waited.polls += other.waited.polls;
    waited.sleeps += other.waited.sleeps;
    waited.slept_ns += other.waited.slept_ns;
}

Tally& CommunicatorRecord::declined(Reason reason, int size_class, CallKind kind) {
    for (Tally& tally : tallies)
        if (!tally.accelerated && tally.kind == kind && tally.reason == reason &&
            tally.size_class == size_class)
            return tally;
    Tally& tally = tallies.emplace_back();
    tally.kind = kind;
    tally.size_class = size_class;
    tally.reason = reason;
    return tally;
}

Tally& CommunicatorRecord::accelerated(const std::string& algorithm, int size_class, CallKind kind) {
    for (Tally& tally : tallies)
        if (tally.accelerated && tally.kind == kind && tally.size_class == size_class &&
            tally.algorithm == algorithm)
            return tally;
    Tally& tally = tallies.emplace_back();
    tally.kind = kind;
    tally.size_class = size_class;
    tally.accelerated = true;
    tally.algorithm = algorithm;
    return tally;
}

void Registry::add(std::shared_ptr<CommunicatorRecord> record) {
    std::lock_guard lock(registry_mutex);
    CommunicatorRecord& added = *record;
    live_.push_back(std::move(record));
    added.number = ++added_;
    added.place = std::prev(live_.end());
}

void Registry::merge(CommunicatorRecord& into, const CommunicatorRecord& record) {
    ++into.communicators;
    for (const Tally& tally : record.tallies)
        (tally.accelerated ? into.accelerated(tally.algorithm, tally.size_class, tally.kind)
                           : into.declined(tally.reason, tally.size_class, tally.kind))
            .add(tally);
    note_both(into.topology, record.topology, "several topologies");
    note_both(into.carrier, record.carrier, "several transports");
    into.nodes = std::max(into.nodes, record.nodes);
    into.sleeps |= record.sleeps;
    if (record.peers == nullptr) return;
    if (into.peers == nullptr) into.peers = std::make_shared<PeerAccounts>(std::vector<bool>());
    into.peers->fold(*record.peers, now_ns());
}

void Registry::retire(const std::shared_ptr<CommunicatorRecord>& record) noexcept try {
    std::lock_guard lock(registry_mutex);
    if (!record->place) return;
    const auto found = *record->place;
    record->place.reset();
    if (record->tallies.empty()) {
        live_.erase(found);
        return;
    }
    retired_.splice(retired_.end(), live_, found);
    std::size_t apart = 0;
    for (auto next = retired_.begin(); next != retired_.end();) {
        const auto each = next++;
        const std::shared_ptr<CommunicatorRecord>& old = *each;
        if (old->merged || ++apart <= retired_kept_apart) continue;
        // Operations that outlive their communicator still count there: a plan that is started again, say.
        if (old.use_count() > (old == record ? 2 : 1)) continue;
        std::atomic_thread_fence(std::memory_order_acquire);  // what they counted before they let go
        // Those with neighbours are told of once more, as so many.
        const auto alike = std::find_if(retired_.begin(), retired_.end(), [&](const auto& other) {
            return other->merged && other->size == old->size &&
                   (*other->topology == '\0') == (*old->topology == '\0');
        });
        if (alike != retired_.end()) {
            merge(**alike, *old);
            retired_.erase(each);
            continue;
        }
        // The first of them; its peers have no names any more, as the others' will have none.
        old->merged = true;
        old->name = "freed communicators";
        if (const std::shared_ptr<PeerAccounts> own = old->peers) {
            old->peers = std::make_shared<PeerAccounts>(std::vector<bool>());
            old->peers->fold(*own, now_ns());
        }
    }
} catch (...) {
}

std::vector<std::shared_ptr<CommunicatorRecord>> Registry::records() const {
    std::lock_guard lock(registry_mutex);
    std::vector<std::shared_ptr<CommunicatorRecord>> all(live_.begin(), live_.end());
    all.insert(all.end(), retired_.begin(), retired_.end());
    return all;
}

Registry& registry() {
    static Registry* const instance = new Registry;
    return *instance;
}

}  // namespace thalweg
