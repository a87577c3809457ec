// The ways to run one alltoallv: the native calls, windows made anew or kept, plans over windows, and the
// program's own calls through Thalweg.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "plan/window_pool.h"

namespace thalweg::bench {

// One exchange's memory on this rank: blocks of bytes one after another, by peer.
struct ExchangeMemory {
    std::vector<unsigned char> in, out;
    std::vector<int> send_bytes, receive_bytes, send_at, receive_at;
    std::vector<char> near;  // by peer: on this rank's host
};

// What a way needs besides the memory. All live longer than the way.
struct ExchangeGround {
    MPI_Comm comm = MPI_COMM_NULL;  // of this column alone
    WindowPool* pool = nullptr;     // of windows on it
    ExchangeMemory* memory = nullptr;
};

// Every function is collective and returns an MPI error code.
class ExchangeWay {
  public:
    virtual ~ExchangeWay() = default;
    // Made, called again and again, and freed; what is not persistent has no plan.
    virtual bool persistent() const { return true; }
    virtual int make() { return MPI_SUCCESS; }
    virtual int call() = 0;
    virtual int free() { return MPI_SUCCESS; }
    // Calls until one costs what those after it do.
    virtual int warm_up_calls() { return 2; }

    // Seconds of the last call that went into what a plan does once; negative: this way has no such part.
    double set_up_seconds = -1;
};

// By name:
//   native             MPI_Alltoallv
//   native_init        MPI_Alltoallv_init, MPI_Start, MPI_Wait
//   window_per_call    the paper's baseline: displacements exchanged and a window made in every call, fences
//   window_kept        the same with the window kept while no rank's memory changes
//   window_kept_lock   the same with a shared lock in the place of the fences, and a barrier behind it
//   rma_fence, …       plans of ours over windows, as plan/rma_alltoallv.h names them
//   thalweg            MPI_Alltoallv, the program's own
//   thalweg_init       MPI_Alltoallv_init, the program's own
// Null with one sentence in `why`: there is none of that name, or this MPI lacks a function.
std::unique_ptr<ExchangeWay> make_exchange_way(const std::string& name, const ExchangeGround& ground,
                                               std::string& why);

}  // namespace thalweg::bench
