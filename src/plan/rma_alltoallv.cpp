#include "plan/rma_alltoallv.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>
#include <vector>

#include "algorithms/over_windows.h"
#include "base/clock.h"

namespace thalweg {
namespace {

// The names that a user writes are those of the ways, in their order.
constexpr bool named_alike() {
    for (std::size_t way = 0; way < std::size(epoch_way_names); ++way)
        if (over_windows[way].substr(4) != epoch_way_names[way]) return false;
    return std::size(over_windows) == std::size(epoch_way_names);
}
static_assert(named_alike());

// Of two plans on one communicator both may be under way, so each has tags of its own: by the place of its
// window, which no other living plan has.
constexpr int tags_per_plan = 2;

// Naps are up to a millisecond long, and a poll may move no more than some 64 KiB. All plans of a process
// share such a part of the time between looks, because a poll for one moves the bytes of all.
constexpr std::uint64_t part_for_polls = 8, longest_look_ns = 125'000;
constinit std::atomic<std::uint64_t> looked_ns{0};  // when the last look, or start, was over

struct Extent {
    MPI_Aint begin = 0, end = 0;
};

Extent extent_of(std::span<const std::uint64_t> bytes, std::span<const MPI_Aint> at) {
    Extent extent;
    bool any = false;
    for (std::size_t peer = 0; peer < bytes.size(); ++peer) {
        if (bytes[peer] == 0) continue;
        const MPI_Aint end = at[peer] + static_cast<MPI_Aint>(bytes[peer]);
        extent =
            any ? Extent{std::min(extent.begin, at[peer]), std::max(extent.end, end)} : Extent{at[peer], end};
        any = true;
    }
    return extent;
}

// Blocks with the other ranks: from the next rank on, other hosts first. `step` 1: to whom is sent; -1: from
// whom comes.
std::vector<Transfer> transfers_of(std::span<const std::uint64_t> bytes, std::span<const MPI_Aint> at,
                                   std::span<const MPI_Aint> there, std::span<const char> near, int rank,
                                   int step) {
    const int size = static_cast<int>(bytes.size());
    std::vector<Transfer> transfers;
    for (const bool inside : {false, true})
        for (int i = 1; i < size; ++i) {
            const int peer = (rank + step * i + size) % size;
            const auto p = static_cast<std::size_t>(peer);
            if (bytes[p] == 0 || (!near.empty() && near[p] != 0) != inside) continue;
            transfers.push_back({peer, static_cast<std::uint64_t>(at[p]), bytes[p], there[p]});
        }
    return transfers;
}

}  // namespace

std::optional<RmaOptions> rma_options(std::string_view name) {
    if (!name.starts_with("rma_")) return std::nullopt;
    name.remove_prefix(4);
    if (name == "fence_barrier") return RmaOptions{EpochWay::fence, true};
    for (const EpochWay way : {EpochWay::fence, EpochWay::lock, EpochWay::pscw, EpochWay::get})
        if (name == epoch_way_names[static_cast<std::size_t>(way)]) return RmaOptions{way};
    return std::nullopt;
}

std::string_view name_of(EpochWay way) { return over_windows[static_cast<std::size_t>(way)]; }

int RmaAlltoallv::prepare(const Host& mpi, MPI_Comm comm, const ByteBlocks& blocks, const RmaOptions& options,
                          int rank, std::span<const MPI_Aint> there) try {
    const auto own = static_cast<std::size_t>(rank);
    own_in_ = static_cast<const unsigned char*>(blocks.in) + blocks.send_at[own];
    own_out_ = static_cast<unsigned char*>(blocks.out) + blocks.receive_at[own];
    own_bytes_ = std::min(blocks.send_bytes[own], blocks.receive_bytes[own]);
    EpochPlan epoch;
    epoch.comm = comm;
    epoch.window = pool_.window(place_);
    epoch.tag = tags_per_plan * place_;
    epoch.in = static_cast<const unsigned char*>(blocks.in);
    epoch.out = static_cast<unsigned char*>(blocks.out);
    epoch.sends = transfers_of(blocks.send_bytes, blocks.send_at, there, options.near, rank, 1);
    epoch.receives = transfers_of(blocks.receive_bytes, blocks.receive_at, there, options.near, rank, -1);
    epoch.meets_first = options.meets_first;
    int error = MPI_SUCCESS;
    epoch_ = make_epoch(mpi, options.way, std::move(epoch), error);
    return error;
} catch (const std::bad_alloc&) {
    return MPI_ERR_NO_MEM;
}

namespace {

// The side that is reached into has the window and says where its blocks begin in it.
struct Exposed {
    void* base = nullptr;
    MPI_Aint bytes = 0;
    std::vector<MPI_Aint> here, there;
};

bool expose(const ByteBlocks& blocks, bool gets, Exposed& exposed) try {
    const auto& at = gets ? blocks.send_at : blocks.receive_at;
    const Extent extent = extent_of(gets ? blocks.send_bytes : blocks.receive_bytes, at);
    exposed.here.resize(at.size());
    exposed.there.resize(at.size());
    if (extent.end == extent.begin) return true;
    auto* const first =
        static_cast<unsigned char*>(gets ? const_cast<void*>(blocks.in) : blocks.out) + extent.begin;
    for (std::size_t peer = 0; peer < at.size(); ++peer) exposed.here[peer] = at[peer] - extent.begin;
    exposed.base = first;
    exposed.bytes = extent.end - extent.begin;
    return true;
} catch (const std::bad_alloc&) {
    return false;
}

}  // namespace

std::unique_ptr<RmaAlltoallv> RmaAlltoallv::make(const Host& mpi, MPI_Comm comm, WindowPool& pool,
                                                 const ByteBlocks& blocks, const RmaOptions& options,
                                                 int& error) {
    int rank = 0;
    error = mpi.Comm_rank(comm, &rank);
    Exposed exposed;
    const bool exposable = expose(blocks, options.way == EpochWay::get, exposed);
    const int place = pool.take(exposed.base, exposed.bytes, exposable, error);
    if (place == -1) error = MPI_ERR_NO_MEM;
    if (place < 0) return nullptr;
    std::unique_ptr<RmaAlltoallv> plan(new (std::nothrow) RmaAlltoallv(pool, place));
    error = mpi.Alltoall(exposed.here.data(), sizeof(MPI_Aint), mpi.byte, exposed.there.data(),
                         sizeof(MPI_Aint), mpi.byte, comm);
    if (plan == nullptr) {
        pool.give_back(place);
        error = MPI_ERR_NO_MEM;
    } else if (error == MPI_SUCCESS) {
        error = plan->prepare(mpi, comm, blocks, options, rank, exposed.there);
    }
    // Opening may be collective.
    std::uint64_t mine = error != MPI_SUCCESS, any = 0;
    const int agreed = mpi.Allreduce(&mine, &any, 1, mpi.uint64, mpi.bor, comm);
    if (agreed != MPI_SUCCESS) {
        pool.fall_out_of_step();
        error = agreed;
    }
    if (error == MPI_SUCCESS && any != 0) error = MPI_ERR_OTHER;
    if (error != MPI_SUCCESS) return nullptr;
    error = plan->epoch_->open();
    if (error != MPI_SUCCESS) return nullptr;
    plan->open_ = true;
    return plan;
}

RmaAlltoallv::~RmaAlltoallv() {
    if (open_) epoch_->close();
    pool_.give_back(place_);
}

int RmaAlltoallv::start() {
    const int error = epoch_->start();
    // The transfers are on their way meanwhile. Not before: a fence or a lock may still protect the buffer.
    if (own_bytes_ != 0) std::memcpy(own_out_, own_in_, own_bytes_);
    // MPI_Start looks at once, and only once.
    looked_ns.store(now_ns(), std::memory_order_relaxed);
    return error;
}

int RmaAlltoallv::look(bool& done) {
    const std::uint64_t began_ns = now_ns();
    const std::uint64_t since_ns = began_ns - std::min(began_ns, looked_ns.load(std::memory_order_relaxed));
    const std::uint64_t until_ns = began_ns + std::min(since_ns / part_for_polls, longest_look_ns);
    int error = epoch_->test(done);
    while (error == MPI_SUCCESS && !done && epoch_->moves() && now_ns() < until_ns)
        error = epoch_->test(done);
    looked_ns.store(now_ns(), std::memory_order_relaxed);
    return error;
}

}  // namespace thalweg
