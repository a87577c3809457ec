// What was done, counted where it happens: per communicator, size class and algorithm or reason. The report
// reads it in MPI_Finalize.
//
// A tally is written by the one thread that is inside a collective on its communicator; nothing here locks on
// the path of a call. Broadcasts below the threshold are counted for the whole process in small_calls.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "transport/peer_account.h"

namespace thalweg {

// The collectives that are looked at, one for each form of a call. The texts are part of the report's format.
enum class CallKind : std::uint8_t {
    bcast,
    ibcast,
    bcast_init,
    iallgather,
    allgather_init,
    iallgatherv,
    allgatherv_init,
    iallreduce,
    allreduce_init,
    ibarrier,
    barrier_init,
    ialltoall,
    alltoall_init,
    ialltoallv,
    alltoallv_init,
    ialltoallw,
    alltoallw_init,
    ineighbor_allgather,
    neighbor_allgather_init,
    ineighbor_allgatherv,
    neighbor_allgatherv_init,
    ineighbor_alltoall,
    neighbor_alltoall_init,
    ineighbor_alltoallv,
    neighbor_alltoallv_init,
    ineighbor_alltoallw,
    neighbor_alltoallw_init,
    neighbor_allgather,
    neighbor_allgatherv,
    neighbor_alltoall,
    neighbor_alltoallv,
    neighbor_alltoallw,
    allgather,
    allgatherv,
    allreduce,
    alltoall,
    alltoallv,
    alltoallw,
};
inline constexpr int call_kinds = 38;
constexpr bool is_of_neighbours(CallKind kind) {
    return kind >= CallKind::ineighbor_allgather && kind <= CallKind::neighbor_alltoallw;
}
const char* text_of(CallKind kind);

// Why a call was left to the native library. The texts are part of the report's format.
enum class Reason : std::uint8_t {
    small,   // below THALWEG_BCAST_MIN_BYTES
    empty,   // zero bytes
    single,  // one rank
    intercommunicator,
    freeing,         // the communicator is being freed
    invalid,         // arguments whose error the native library reports
    foreign,         // has ranks outside the world that agreed
    session,         // a session's, or made of one: where some rank had such in front of MPI_Init all calls,
                     // else those that do not block
    too_many,        // no channel is left: THALWEG_MAX_COMMUNICATORS, or what tags have room for
    not_worth_yet,   // set-up has not paid yet
    setup_failed,    // a private communicator could not be made on all ranks
    native_setting,  // THALWEG_BCAST=native and its like
    native_best,     // the table or the model prefers the native library
    cannot,          // the algorithm cannot serve this problem, or only with too many steps
    // Of nonblocking and persistent operations only.
    unattended,   // nothing of ours would advance it while the program computes
    agent_off,    // THALWEG_AGENT=off
    completions,  // MPI_Wait and its like do not all reach us
    not_set_up,   // no blocking collective has come by since enough of them
    reduction,    // an operation or a type that only the MPI library can combine
    order,        // THALWEG_FLOAT_ORDER: the bits of equal calls would differ
    blocks,       // of a grid, where the native library has places of its own for them
    unalike,      // some ranks have not loaded what wraps persistent ones
};
inline constexpr int reason_count = 22;
const char* text_of(Reason reason);

// 0, 1, 2-3, 4-7, …: class k > 0 holds sizes with k significant bits.
constexpr int size_class(std::uint64_t bytes) { return static_cast<int>(std::bit_width(bytes)); }
constexpr std::uint64_t class_begin(int size_class) { return size_class == 0 ? 0 : 1ull << (size_class - 1); }
inline constexpr int size_classes = 65;

// What is counted for the whole process is counted in shards, so that threads do not share a cache line; a
// count is one relaxed addition.
inline constexpr unsigned small_shards = 8;
extern thread_local constinit unsigned own_shard_or_none [[gnu::tls_model("initial-exec")]];
unsigned new_shard();
// The calling thread's.
inline unsigned own_shard() {
    return __builtin_expect(own_shard_or_none == small_shards, 0) ? new_shard() : own_shard_or_none;
}

// Broadcasts below the threshold, all communicators.
struct alignas(64) SmallShard {
    std::array<std::atomic<std::uint64_t>, 24> calls{};  // by size class; larger ones count in the last
    std::atomic<std::uint64_t> bytes{0};
};
extern constinit std::array<SmallShard, small_shards> small_calls;

// Calls but broadcasts that were declined before anything was asked about their communicator.
struct alignas(64) DeclinedShard {
    std::array<std::array<std::atomic<std::uint64_t>, reason_count>, call_kinds> calls{};
};
extern constinit std::array<DeclinedShard, small_shards> declined_calls;
inline void count_declined(CallKind kind, Reason reason, std::uint64_t calls = 1) {
    declined_calls[own_shard()]
        .calls[static_cast<std::size_t>(kind)][static_cast<std::size_t>(reason)]
        .fetch_add(calls, std::memory_order_relaxed);
}

// One row of the report.
struct Tally {
    CallKind kind = CallKind::bcast;
    int size_class = 0;
    bool accelerated = false;
    Reason reason = Reason::small;  // when not accelerated
    std::string algorithm;          // when accelerated
    std::uint64_t calls = 0;
    std::uint64_t bytes = 0;
    std::uint64_t elapsed_ns = 0;  // accelerated calls only: the native ones are not timed
    std::uint64_t waiting_ns = 0;  // of it: in completion calls, and in blocking ones as a whole
    std::uint64_t staged_calls = 0;
    std::uint64_t errors = 0;
    WaitStatistics waited;

    void add(const Tally& other);
};

// The rows of one communicator, kept after it is freed.
struct CommunicatorRecord {
    std::string name;
    std::uint64_t number = 0;  // in the order in which this process first saw them, from 1
    int size = 0;
    // "grid", "graph" or "distributed graph"; empty: it has none, or nobody wants a report.
    const char* topology = "";
    int nodes = 0;  // 0 until the communicator was set up
    bool sleeps = false;
    const char* carrier = "";  // of its nonblocking operations, once it was set up for them: "mpi", "ucx"
    bool merged = false;       // stands for several freed communicators
    // Its handle may be another communicator's by now. Set by the thread that frees it.
    std::atomic<bool> freed{false};
    std::uint64_t communicators = 1;
    std::list<Tally> tallies;  // addresses stay valid
    // Among the registry's live ones; nothing: it is none of them. The registry's own.
    std::optional<std::list<std::shared_ptr<CommunicatorRecord>>::iterator> place;
    // Of its exchanges, where it has a topology, once it was set up for them; null: nothing is counted.
    std::shared_ptr<PeerAccounts> peers;

    // The row with this key, made when missing. Throws std::bad_alloc.
    Tally& declined(Reason reason, int size_class, CallKind kind = CallKind::bcast);
    Tally& accelerated(const std::string& algorithm, int size_class, CallKind kind = CallKind::bcast);
};

// All records of the process. add and retire lock; called when a communicator is first seen and when it is
// freed. What they take does not depend on how many live.
class Registry {
  public:
    void add(std::shared_ptr<CommunicatorRecord> record);
    // Keeps the first few as they are and merges the others by size, so that memory stays bounded in a
    // program that makes communicators in a loop. Never throws: a record that cannot be kept is lost.
    void retire(const std::shared_ptr<CommunicatorRecord>& record) noexcept;
    std::vector<std::shared_ptr<CommunicatorRecord>> records() const;

  private:
    static void merge(CommunicatorRecord& into, const CommunicatorRecord& record);

    std::list<std::shared_ptr<CommunicatorRecord>> live_, retired_;
    std::uint64_t added_ = 0;
};
// Made at first use and never destroyed: callbacks may come late.
Registry& registry();

}  // namespace thalweg
