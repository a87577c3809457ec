// Whether the calls arrive that no other probe asks about: those that make a request, and the blocking ones
// of neighbours.
#include <dlfcn.h>
#include <mpi.h>

#include <cstdio>
#include <cstring>

#include "interpose/inside.h"
#include "plan/quiet_errors.h"
#include "transport/mpi/host.h"

using namespace thalweg;

namespace {

// Whether another object than ours and the MPI library defines `name` in front of both.
bool stands_in_front(const char* name) {
    const char* file = nullptr;
    void* const first = foreign_definition(name, file);
    if (first == nullptr) return false;
    const char* const slash = std::strrchr(file, '/');
    if (std::strncmp(slash == nullptr ? file : slash + 1, "libthalweg-", 11) == 0) return false;
    char profiled[64];
    std::snprintf(profiled, sizeof profiled, "P%s", name);
    Dl_info front, library;
    void* const native = find_native(profiled);
    return native == nullptr || dladdr(first, &front) == 0 || dladdr(native, &library) == 0 ||
           front.dli_fbase != library.dli_fbase;
}

// Of a tool that made the request by way of the MPI library: over by now, on one rank and without a byte.
void end(MPI_Request request) {
    const Host& mpi = *host();
    for (int done = 0; done == 0 && request != mpi.request_null;)
        if (mpi.Test(&request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) return;
    if (request != mpi.request_null) mpi.Request_free(&request);
}

template <typename Function, typename... Arguments>
bool makes_ours(const char* name, Arguments... arguments) {
    if (!stands_in_front(name)) return true;
    MPI_Request request = host()->request_null;
    const bool arrived = arrives<Function>(name, arguments..., &request);
    end(request);
    return arrived;
}

// The nonblocking form and the persistent one, which has an MPI_Info more.
template <typename... Parameters>
struct Forms {
    template <typename... Arguments>
    static bool arrive(const char* nonblocking, const char* persistent, Arguments... arguments) {
        return makes_ours<int(Parameters..., MPI_Request*)>(nonblocking, arguments...) &&
               makes_ours<int(Parameters..., MPI_Info, MPI_Request*)>(persistent, arguments...,
                                                                      host()->info_null);
    }
};

using Blocks = Forms<const void*, int, MPI_Datatype, void*, int, MPI_Datatype, MPI_Comm>;
using Ragged = Forms<const void*, int, MPI_Datatype, void*, const int*, const int*, MPI_Datatype, MPI_Comm>;
using Letters = Forms<const void*, const int*, const int*, MPI_Datatype, void*, const int*, const int*,
                      MPI_Datatype, MPI_Comm>;
template <typename Place>
using Typed = Forms<const void*, const int*, const Place*, const MPI_Datatype*, void*, const int*,
                    const Place*, const MPI_Datatype*, MPI_Comm>;

// Arguments of calls that move nothing.
const int none[1] = {0};
const MPI_Aint nowhere[1] = {0};
char from, to;

}  // namespace

namespace thalweg {

bool makers_reach_us() {
    const Host& mpi = *host();
    const MPI_Comm self = mpi.comm_self;
    const MPI_Datatype byte = mpi.byte, bytes[1] = {byte};
    // Nobody has neighbours here: a tool that hands such a call to the library gets an error at once. To be
    // quiet on MPI_COMM_SELF would give it a handler of its own, which MPICH then calls in the place of the
    // world's.
    const MPI_Comm world = mpi.comm_world;
    const QuietErrors quiet(world);
    return Forms<void*, int, MPI_Datatype, int, MPI_Comm>::arrive("MPI_Ibcast", "MPI_Bcast_init", &to, 0,
                                                                  byte, 0, self) &&
           Forms<const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm>::arrive(
               "MPI_Iallreduce", "MPI_Allreduce_init", &from, &to, 0, byte, mpi.bor, self) &&
           Forms<MPI_Comm>::arrive("MPI_Ibarrier", "MPI_Barrier_init", self) &&
           Blocks::arrive("MPI_Iallgather", "MPI_Allgather_init", &from, 0, byte, &to, 0, byte, self) &&
           Ragged::arrive("MPI_Iallgatherv", "MPI_Allgatherv_init", &from, 0, byte, &to, none, none, byte,
                          self) &&
           Blocks::arrive("MPI_Ialltoall", "MPI_Alltoall_init", &from, 0, byte, &to, 0, byte, self) &&
           Letters::arrive("MPI_Ialltoallv", "MPI_Alltoallv_init", &from, none, none, byte, &to, none, none,
                           byte, self) &&
           Typed<int>::arrive("MPI_Ialltoallw", "MPI_Alltoallw_init", &from, none, none, bytes, &to, none,
                              none, bytes, self) &&
           Blocks::arrive("MPI_Ineighbor_allgather", "MPI_Neighbor_allgather_init", &from, 0, byte, &to, 0,
                          byte, world) &&
           Ragged::arrive("MPI_Ineighbor_allgatherv", "MPI_Neighbor_allgatherv_init", &from, 0, byte, &to,
                          none, none, byte, world) &&
           Blocks::arrive("MPI_Ineighbor_alltoall", "MPI_Neighbor_alltoall_init", &from, 0, byte, &to, 0,
                          byte, world) &&
           Letters::arrive("MPI_Ineighbor_alltoallv", "MPI_Neighbor_alltoallv_init", &from, none, none, byte,
                           &to, none, none, byte, world) &&
           Typed<MPI_Aint>::arrive("MPI_Ineighbor_alltoallw", "MPI_Neighbor_alltoallw_init", &from, none,
                                   nowhere, bytes, &to, none, nowhere, bytes, world);
}

bool neighbours_reach_us() {
    const Host& mpi = *host();
    const MPI_Comm world = mpi.comm_world;
    const MPI_Datatype byte = mpi.byte, bytes[1] = {byte};
    const QuietErrors quiet(world);
    return arrives<int(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, MPI_Comm)>(
               "MPI_Neighbor_allgather", &from, 0, byte, &to, 0, byte, world) &&
           arrives<int(const void*, int, MPI_Datatype, void*, const int*, const int*, MPI_Datatype,
                       MPI_Comm)>("MPI_Neighbor_allgatherv", &from, 0, byte, &to, none, none, byte, world) &&
           arrives<int(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, MPI_Comm)>(
               "MPI_Neighbor_alltoall", &from, 0, byte, &to, 0, byte, world) &&
           arrives<int(const void*, const int*, const int*, MPI_Datatype, void*, const int*, const int*,
                       MPI_Datatype, MPI_Comm)>("MPI_Neighbor_alltoallv", &from, none, none, byte, &to, none,
                                                none, byte, world) &&
           arrives<int(const void*, const int*, const MPI_Aint*, const MPI_Datatype*, void*, const int*,
                       const MPI_Aint*, const MPI_Datatype*, MPI_Comm)>(
               "MPI_Neighbor_alltoallw", &from, none, nowhere, bytes, &to, none, nowhere, bytes, world);
}

}  // namespace thalweg
