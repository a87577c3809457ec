#include "plan/rma_alltoallv.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace thalweg {
namespace {

// Of two plans on one communicator both may be under way, so each has tags of its own: by the place of its
// window, which no other living plan has.
constexpr int tags_per_plan = 2;

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

std::unique_ptr<RmaAlltoallv> RmaAlltoallv::make(const Host& mpi, MPI_Comm comm, WindowPool& pool,
                                                 const ByteBlocks& blocks, const RmaOptions& options,
                                                 int& error) {
    const auto size = blocks.send_bytes.size();
    int rank = 0;
    error = mpi.Comm_rank(comm, &rank);
    const auto own = static_cast<std::size_t>(rank);
    auto* const out = static_cast<unsigned char*>(blocks.out);
    auto* const in = static_cast<const unsigned char*>(blocks.in);

    // The side that is reached into has the window and says where its blocks begin in it.
    const bool gets = options.way == EpochWay::get;
    const Extent extent = gets ? extent_of(blocks.send_bytes, blocks.send_at)
                               : extent_of(blocks.receive_bytes, blocks.receive_at);
    std::vector<MPI_Aint> here(size), there(size);
    for (std::size_t peer = 0; peer < size; ++peer)
        here[peer] = (gets ? blocks.send_at[peer] : blocks.receive_at[peer]) - extent.begin;
    void* const base = gets ? const_cast<unsigned char*>(in) + extent.begin : out + extent.begin;

    const int place = pool.take(extent.end > extent.begin ? base : nullptr, extent.end - extent.begin, error);
    if (place == -1) error = MPI_ERR_NO_MEM;
    if (place < 0) return nullptr;
    std::unique_ptr<RmaAlltoallv> plan(new RmaAlltoallv(pool, place));
    error =
        mpi.Alltoall(here.data(), sizeof(MPI_Aint), mpi.byte, there.data(), sizeof(MPI_Aint), mpi.byte, comm);
    if (error != MPI_SUCCESS) return nullptr;

    EpochPlan epoch;
    epoch.comm = comm;
    epoch.window = pool.window(place);
    epoch.tag = tags_per_plan * place;
    epoch.in = in;
    epoch.out = out;
    epoch.sends = transfers_of(blocks.send_bytes, blocks.send_at, there, options.near, rank, 1);
    epoch.receives = transfers_of(blocks.receive_bytes, blocks.receive_at, there, options.near, rank, -1);
    epoch.meets_first = options.meets_first;
    plan->own_in_ = in + blocks.send_at[own];
    plan->own_out_ = out + blocks.receive_at[own];
    plan->own_bytes_ = std::min(blocks.send_bytes[own], blocks.receive_bytes[own]);
    plan->epoch_ = make_epoch(mpi, options.way, std::move(epoch), error);
    if (plan->epoch_ == nullptr) return nullptr;
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
    return error;
}

}  // namespace thalweg
