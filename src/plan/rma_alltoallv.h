// A persistent alltoallv over MPI windows: rma_fence, rma_lock, rma_pscw and rma_get.
//
// Made once: a window of its own, every rank's displacement at its peers, the lists of real neighbours with
// those on other hosts first. Started and completed any number of times; between start and completion it
// makes no window, no request and no allocation. The own block is a copy.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "plan/window_pool.h"
#include "transport/rma/epoch.h"

namespace thalweg {

// What one rank sends and receives, by peer, in bytes. Displacements are from the buffers' begins.
struct ByteBlocks {
    const void* in = nullptr;
    void* out = nullptr;
    std::span<const std::uint64_t> send_bytes, receive_bytes;
    std::span<const MPI_Aint> send_at, receive_at;
};

struct RmaOptions {
    EpochWay way = EpochWay::fence;
    bool meets_first = false;  // epoch.h
    // Which peers share this rank's host; empty: none. Those come last.
    std::span<const char> near = {};
};

// "rma_fence", "rma_fence_barrier" (with meets_first), "rma_lock", "rma_pscw", "rma_get".
std::optional<RmaOptions> rma_options(std::string_view name);

// The name in algorithms/over_windows.h.
std::string_view name_of(EpochWay way);

// Whether this MPI has every function that these need (has_windows()).
inline bool has_rma_alltoallv(const Host& mpi) { return mpi.Alltoall != nullptr && has_windows(mpi); }

class RmaAlltoallv {
  public:
    // Collective over the pool's communicator, in the same order with its other operations on all ranks. The
    // arrays are read here only; the buffers must stay. Null, on all ranks alike, where some rank has no
    // window or no memory, or the pool is full: `error` is this rank's, MPI_ERR_OTHER where it is another's.
    // Null on this rank alone: MPI failed in the first epoch's preparation, or as the ranks agreed, and the
    // pool is out of step here.
    static std::unique_ptr<RmaAlltoallv> make(const Host& mpi, MPI_Comm comm, WindowPool& pool,
                                              const ByteBlocks& blocks, const RmaOptions& options,
                                              int& error);
    // Gives the window back, and blocks only where the way does. Pre: not between start and completion.
    ~RmaAlltoallv();
    RmaAlltoallv(const RmaAlltoallv&) = delete;
    RmaAlltoallv& operator=(const RmaAlltoallv&) = delete;

    // As in epoch.h; MPI error codes.
    int start();
    int test(bool& done) { return epoch_->test(done); }
    // As test(); who naps between looks, and comes seldom, goes on for a moment while bytes may be under way.
    int look(bool& done);
    int wait() { return epoch_->wait(); }

  private:
    RmaAlltoallv(WindowPool& pool, int place) : pool_(pool), place_(place) {}
    // What this rank alone needs, given its displacements at its peers.
    int prepare(const Host& mpi, MPI_Comm comm, const ByteBlocks& blocks, const RmaOptions& options, int rank,
                std::span<const MPI_Aint> there);

    WindowPool& pool_;
    int place_;
    std::unique_ptr<Epoch> epoch_;
    bool open_ = false;
    const unsigned char* own_in_ = nullptr;
    unsigned char* own_out_ = nullptr;
    std::uint64_t own_bytes_ = 0;
};

}  // namespace thalweg
