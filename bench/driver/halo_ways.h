// The ways to run one halo exchange: point to point in the styles of stencil codes, the native neighbourhood
// collectives, the program's own calls through Thalweg, and the same messages one after the other, those
// inside the host first.
#pragma once

#include <mpi.h>

#include <memory>
#include <string>

#include "driver/halo_memory.h"

namespace thalweg::bench {

// Every function is collective and returns an MPI error code.
class HaloWay {
  public:
    virtual ~HaloWay() = default;
    virtual int make() = 0;  // communicators, datatypes, plans: what a program does once
    virtual int call() = 0;
    // Of nonblocking and persistent forms: call() in two parts, between which a program computes.
    virtual bool has_parts() const { return false; }
    virtual int start() { return MPI_SUCCESS; }
    virtual int finish() { return MPI_SUCCESS; }
    virtual int free() = 0;
    // Calls until one costs what those after it do.
    virtual int warm_up_calls() const { return 2; }
    // How many must have been for the next blocking collective to set up what was made.
    virtual int calls_until_met() const { return 1; }
    // A blocking collective through Thalweg on what was made: the moment at which it sets up.
    virtual int meet() { return MPI_SUCCESS; }
};

// By name. Faces are subarrays of the cells, unless it says packed.
//   isend                MPI_Irecv, MPI_Isend, MPI_Waitall: receives first, then what leaves the host first
//   persistent           the same with persistent requests and MPI_Startall
//   packed_all           packed by hand, all of it before MPI_Waitall and after
//   packed_some, _any    what has arrived is unpacked, by MPI_Waitsome or MPI_Waitany; what leaves first is
//                        packed first
//   isend_parted         as isend, but first everything inside the host, and when that is done the rest
//   native               MPI_Neighbor_alltoallw; native_i: nonblocking; native_init: persistent
//   thalweg, …_i, _init  the same, the program's own calls
//   thalweg_parted       two persistent ones: the messages inside the host, and when they are done the others
// Null with one sentence in `why`: there is none of that name, or this MPI lacks a function. `memory` must
// live longer than the way; `control` is the driver's own communicator.
std::unique_ptr<HaloWay> make_halo_way(const std::string& name, HaloMemory& memory, MPI_Comm control,
                                       std::string& why);

}  // namespace thalweg::bench
