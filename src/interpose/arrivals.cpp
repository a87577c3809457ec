// Whether the calls arrive that no other probe asks about: those that make a request or a communicator, the
// blocking ones of neighbours, and those with large counts.
#include <dlfcn.h>
#include <link.h>
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <initializer_list>

#include "base/loaded_objects.h"
#include "interpose/inside.h"
#include "interpose/unseen_calls.h"
#include "plan/quiet_errors.h"
#include "transport/mpi/host.h"

using namespace thalweg;

namespace {

bool is_ours(const char* file) {
    const char* const slash = std::strrchr(file, '/');
    return std::strncmp(slash == nullptr ? file : slash + 1, "libthalweg-", 11) == 0;
}

// Whether an object of ours wraps `name`: those with the optional names may not be here.
bool is_wrapped(const char* name) {
    const LoadedFiles files;
    return std::any_of(files.begin(), files.end(), [name](const char* file) {
        return is_ours(file) && symbol_of(file, name) != nullptr;
    });
}

// Whether another object than ours and the MPI library defines `name` in front of both.
bool stands_in_front(const char* name) {
    const char* file = nullptr;
    void* const first = foreign_definition(name, file);
    if (first == nullptr || is_ours(file)) return false;
    char profiled[64];
    std::snprintf(profiled, sizeof profiled, "P%s", name);
    Dl_info front, library;
    void* const native = find_native(profiled);
    const bool foreign = native == nullptr || dladdr(first, &front) == 0 || dladdr(native, &library) == 0 ||
                         front.dli_fbase != library.dli_fbase;
    return foreign && is_wrapped(name);
}

template <typename Function, typename... Arguments>
bool passes(const char* name, Arguments... arguments) {
    return !stands_in_front(name) || arrives<Function>(name, arguments...);
}

// Of a tool that made the request by way of the MPI library: over by now, on one rank and without a byte.
void end(MPI_Request request) {
    const Host& mpi = *host();
    for (int done = 0; done == 0 && request != mpi.request_null;)
        if (mpi.Test(&request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) return;
    if (request != mpi.request_null) mpi.Request_free(&request);
}

template <typename Function, typename... Arguments>
bool makes_ours(const char* stem, const char* suffix, Arguments... arguments) {
    char name[64];
    std::snprintf(name, sizeof name, "%s%s", stem, suffix);
    if (!stands_in_front(name)) return true;
    MPI_Request request = host()->request_null;
    const bool arrived = arrives<Function>(name, arguments..., &request);
    end(request);
    return arrived;
}

template <typename Function, typename... Arguments>
bool makes_seen(const char* name, Arguments... arguments) {
    if (!stands_in_front(name)) return true;
    const Host& mpi = *host();
    MPI_Comm made = mpi.comm_null;
    const bool arrived = arrives<Function>(name, arguments..., &made);
    if (made != mpi.comm_null) mpi.Comm_free(&made);
    return arrived;
}

// The nonblocking form of `name` and the persistent one, which has an MPI_Info more.
template <typename... Parameters>
struct Forms {
    template <typename... Arguments>
    static bool arrive(const char* suffix, const char* nonblocking, const char* persistent,
                       Arguments... arguments) {
        return makes_ours<int(Parameters..., MPI_Request*)>(nonblocking, suffix, arguments...) &&
               makes_ours<int(Parameters..., MPI_Info, MPI_Request*)>(persistent, suffix, arguments...,
                                                                      host()->info_null);
    }
};

// The parameters of calls with counts and displacements of either width, in front of those of a form.
template <typename Count, typename Place, template <typename...> typename Form>
struct Shapes {
    using Broadcast = Form<void*, Count, MPI_Datatype, int, MPI_Comm>;
    using Reduction = Form<const void*, void*, Count, MPI_Datatype, MPI_Op, MPI_Comm>;
    using Blocks = Form<const void*, Count, MPI_Datatype, void*, Count, MPI_Datatype, MPI_Comm>;
    using Ragged =
        Form<const void*, Count, MPI_Datatype, void*, const Count*, const Place*, MPI_Datatype, MPI_Comm>;
    using Letters = Form<const void*, const Count*, const Place*, MPI_Datatype, void*, const Count*,
                         const Place*, MPI_Datatype, MPI_Comm>;
    template <typename At>
    using Typed = Form<const void*, const Count*, const At*, const MPI_Datatype*, void*, const Count*,
                       const At*, const MPI_Datatype*, MPI_Comm>;
};

// Arguments of calls that move nothing.
template <typename Number>
const Number none[1] = {0};
char from, to;

template <typename Count, typename Place>
bool makers_arrive(const char* suffix) {
    using Of = Shapes<Count, Place, Forms>;
    const Host& mpi = *host();
    const MPI_Comm self = mpi.comm_self, world = mpi.comm_world;
    const MPI_Datatype byte = mpi.byte, bytes[1] = {byte};
    const Count* const counts = none<Count>;
    const Place* const places = none<Place>;
    const MPI_Aint* const addresses = none<MPI_Aint>;
    return Of::Broadcast::arrive(suffix, "MPI_Ibcast", "MPI_Bcast_init", &to, 0, byte, 0, self) &&
           Of::Reduction::arrive(suffix, "MPI_Iallreduce", "MPI_Allreduce_init", &from, &to, 0, byte, mpi.bor,
                                 self) &&
           Of::Blocks::arrive(suffix, "MPI_Iallgather", "MPI_Allgather_init", &from, 0, byte, &to, 0, byte,
                              self) &&
           Of::Ragged::arrive(suffix, "MPI_Iallgatherv", "MPI_Allgatherv_init", &from, 0, byte, &to, counts,
                              places, byte, self) &&
           Of::Blocks::arrive(suffix, "MPI_Ialltoall", "MPI_Alltoall_init", &from, 0, byte, &to, 0, byte,
                              self) &&
           Of::Letters::arrive(suffix, "MPI_Ialltoallv", "MPI_Alltoallv_init", &from, counts, places, byte,
                               &to, counts, places, byte, self) &&
           Of::template Typed<Place>::arrive(suffix, "MPI_Ialltoallw", "MPI_Alltoallw_init", &from, counts,
                                             places, bytes, &to, counts, places, bytes, self) &&
           Of::Blocks::arrive(suffix, "MPI_Ineighbor_allgather", "MPI_Neighbor_allgather_init", &from, 0,
                              byte, &to, 0, byte, world) &&
           Of::Ragged::arrive(suffix, "MPI_Ineighbor_allgatherv", "MPI_Neighbor_allgatherv_init", &from, 0,
                              byte, &to, counts, places, byte, world) &&
           Of::Blocks::arrive(suffix, "MPI_Ineighbor_alltoall", "MPI_Neighbor_alltoall_init", &from, 0, byte,
                              &to, 0, byte, world) &&
           Of::Letters::arrive(suffix, "MPI_Ineighbor_alltoallv", "MPI_Neighbor_alltoallv_init", &from,
                               counts, places, byte, &to, counts, places, byte, world) &&
           Of::template Typed<MPI_Aint>::arrive(suffix, "MPI_Ineighbor_alltoallw",
                                                "MPI_Neighbor_alltoallw_init", &from, counts, addresses,
                                                bytes, &to, counts, addresses, bytes, world);
}

template <typename... Parameters>
using Blocking = int(Parameters...);

// Endings of Fortran's names, as compilers usually spell them, of calls whose native bindings reach no
// function in C but PMPI's: all of Open MPI's, and elsewhere those of mpi_f08 without a buffer.
#if defined(OPEN_MPI)
constexpr const char* past_c[] = {"_", "_f08_"};
constexpr const char* a_binding = "pmpi_wait_";
constexpr bool buffers_reach_c = false;
#else
constexpr const char* past_c[] = {"_f08_"};
constexpr const char* a_binding = "pmpir_wait_f08_";
constexpr bool buffers_reach_c = true;
#endif

// Whether this is what a program that is not position-independent has in the place of a function of another
// object whose address it takes: a jump to the first definition behind the program.
[[maybe_unused]] bool leads_on(void* function) {
    Dl_info object;
    void* symbol = nullptr;
    return dladdr1(function, &object, &symbol, RTLD_DL_SYMENT) != 0 && symbol != nullptr &&
           static_cast<const ElfW(Sym)*>(symbol)->st_shndx == SHN_UNDEF;
}

// What that is: the first definition behind the program, if it is another object's than ours; else null.
[[maybe_unused]] void* definition_behind(const char* name, const char*& object) {
    void* behind = nullptr;
    for (const char* file : LoadedFiles()) {
        Dl_info info;
        void* const found = symbol_of(file, name);  // of what it depends on, too
        if (found == nullptr || dladdr(found, &info) == 0 || std::strcmp(file, info.dli_fname) != 0) continue;
        object = info.dli_fname;
        behind = is_ours(object) ? nullptr : found;
        break;
    }
    dlerror();
    return behind;
}

// Whether nobody in front has one of these in Fortran: such a tool may have no names of C, and answer by the
// library's bindings. It is not called to find out: a name may be that of a routine which has nothing to do
// with MPI. Where the library's Fortran is not here nobody calls it. Of what the core object wraps.
bool nobody_has([[maybe_unused]] std::initializer_list<const char*> calls) {
#if !defined(MPI_ABI_VERSION)  // whose mpi_f08 is looked for in completions_reach_us()
    const bool is_here = dlsym(RTLD_DEFAULT, a_binding) != nullptr;
    dlerror();
    if (!is_here) return true;
    for (const char* const call : calls)
        for (const char* const end : past_c) {
            char name[64];
            const char* object = nullptr;
            std::snprintf(name, sizeof name, "mpi_%s%s", call, end);
            void* found = foreign_definition(name, object);
            if (found != nullptr && leads_on(found)) found = definition_behind(name, object);
            if (found == nullptr) continue;
            THALWEG_LOG_AT(info, "%s stands in front with %s; what needs that is left to MPI", object, name);
            return false;
        }
#endif
    return true;
}

}  // namespace

namespace thalweg {

// Nobody has neighbours here: a tool that hands such a call to the library gets an error at once. To be quiet
// on MPI_COMM_SELF would give it a handler of its own, which MPICH then calls in the place of the world's.
bool makers_reach_us() {
    const Host& mpi = *host();
    const QuietErrors quiet(mpi.comm_world, true);
    const MPI_Comm self = mpi.comm_self;
    return Forms<MPI_Comm>::arrive("", "MPI_Ibarrier", "MPI_Barrier_init", self) &&
           makers_arrive<int, int>("") && makers_arrive<MPI_Count, MPI_Aint>("_c");
}

// They are the bindings', which elsewhere call the function in C; of Open MPI's we hear nothing.
bool nobody_calls_past_us() {
#if defined(OPEN_MPI)
    const bool are_here = find_native("pmpi_wait") != nullptr || find_native("PMPI_WAIT") != nullptr;
    if (are_here && may_call_by_plain_names()) {
        THALWEG_LOG_AT(info, "calls from Fortran without an underscore (mpi_bcast) pass by; all is MPI's");
        return false;
    }
#endif
    return true;
}

// Open MPI tells whether that is switched on (mpiexec --with-ft ulfm). Of the MPICH family's libraries only
// the launcher knows.
bool nobody_recovers() {
#if defined(OPEN_MPI)
    const auto* const is_on = static_cast<const bool*>(find_native("ompi_ftmpi_enabled"));
    if (is_on != nullptr && *is_on && may_revoke_communicators()) {
        THALWEG_LOG_AT(info, "this program may revoke communicators (MPIX_Comm_revoke); all is MPI's");
        return false;
    }
#endif
    return true;
}

bool fortran_collectives_reach_us() {
    if (!nobody_calls_past_us() || !nobody_has({"barrier"})) return false;
    return buffers_reach_c ||
           nobody_has({"bcast", "allgather", "allgatherv", "allreduce", "reduce", "alltoall", "alltoallv",
                       "alltoallw", "neighbor_allgather", "neighbor_allgatherv", "neighbor_alltoall",
                       "neighbor_alltoallv", "neighbor_alltoallw"});
}

bool fortran_requests_reach_us() {
    if (!nobody_has({"wait", "test", "waitall", "testall", "waitany", "testany", "waitsome", "testsome",
                     "request_get_status", "start", "startall", "request_free", "ibarrier"}))
        return false;
    return buffers_reach_c ||
           nobody_has({"ibcast", "iallgather", "iallgatherv", "iallreduce", "ialltoall", "ialltoallv",
                       "ialltoallw", "ineighbor_allgather", "ineighbor_allgatherv", "ineighbor_alltoall",
                       "ineighbor_alltoallv", "ineighbor_alltoallw"});
}

bool questions_reach_us() {
    using All = int(int, const MPI_Request*, int*, MPI_Status*);
    using Some = int(int, const MPI_Request*, int*, int*, MPI_Status*);
    const MPI_Request none = host()->request_null;
    int first = 0, second = 0;
    if (find_native("PMPI_Request_get_status_any") != nullptr && may_ask_unseen()) {
        THALWEG_LOG_AT(info,
                       "MPI_Request_get_status_any and its like are called past Thalweg, whose -status.so "
                       "is not loaded; what needs them is left to MPI");
        return false;
    }
    return passes<All>("MPI_Request_get_status_all", 0, &none, &first, MPI_STATUSES_IGNORE) &&
           passes<Some>("MPI_Request_get_status_any", 0, &none, &first, &second, MPI_STATUS_IGNORE) &&
           passes<Some>("MPI_Request_get_status_some", 0, &none, &first, &second, MPI_STATUSES_IGNORE);
}

unsigned planners_wrapped() {
    unsigned wrapped = 0, bit = 1;
    for (const char* const name :
         {"MPI_Alltoallv_init", "MPI_Alltoallw_init", "MPI_Alltoallv_init_c", "MPI_Alltoallw_init_c"}) {
        if (is_wrapped(name)) wrapped |= bit;
        bit <<= 1;
    }
    return wrapped;
}

bool wraps_large_forms() { return is_wrapped("MPI_Bcast_c"); }

bool neighbours_reach_us() {
    using Of = Shapes<int, int, Blocking>;
    const Host& mpi = *host();
    const MPI_Comm world = mpi.comm_world;
    const MPI_Datatype byte = mpi.byte, bytes[1] = {byte};
    const int* const counts = none<int>;
    const MPI_Aint* const addresses = none<MPI_Aint>;
    const QuietErrors quiet(world, true);
    return arrives<Of::Blocks>("MPI_Neighbor_allgather", &from, 0, byte, &to, 0, byte, world) &&
           arrives<Of::Ragged>("MPI_Neighbor_allgatherv", &from, 0, byte, &to, counts, counts, byte, world) &&
           arrives<Of::Blocks>("MPI_Neighbor_alltoall", &from, 0, byte, &to, 0, byte, world) &&
           arrives<Of::Letters>("MPI_Neighbor_alltoallv", &from, counts, counts, byte, &to, counts, counts,
                                byte, world) &&
           arrives<Of::Typed<MPI_Aint>>("MPI_Neighbor_alltoallw", &from, counts, addresses, bytes, &to,
                                        counts, addresses, bytes, world);
}

bool large_forms_reach_us() {
    using Of = Shapes<MPI_Count, MPI_Aint, Blocking>;
    const Host& mpi = *host();
    const MPI_Comm self = mpi.comm_self, world = mpi.comm_world;
    const MPI_Datatype byte = mpi.byte, bytes[1] = {byte};
    const MPI_Count* const counts = none<MPI_Count>;
    const MPI_Aint* const places = none<MPI_Aint>;
    const QuietErrors quiet(world, true);
    return passes<Of::Broadcast>("MPI_Bcast_c", &to, 0, byte, 0, self) &&
           passes<Of::Blocks>("MPI_Allgather_c", &from, 0, byte, &to, 0, byte, self) &&
           passes<Of::Ragged>("MPI_Allgatherv_c", &from, 0, byte, &to, counts, places, byte, self) &&
           passes<Of::Reduction>("MPI_Allreduce_c", &from, &to, 0, byte, mpi.bor, self) &&
           passes<Of::Blocks>("MPI_Alltoall_c", &from, 0, byte, &to, 0, byte, self) &&
           passes<Of::Letters>("MPI_Alltoallv_c", &from, counts, places, byte, &to, counts, places, byte,
                               self) &&
           passes<Of::Typed<MPI_Aint>>("MPI_Alltoallw_c", &from, counts, places, bytes, &to, counts, places,
                                       bytes, self) &&
           passes<int(const void*, void*, MPI_Count, MPI_Datatype, MPI_Op, int, MPI_Comm)>(
               "MPI_Reduce_c", &from, &to, 0, byte, mpi.bor, 0, self) &&
           passes<Of::Blocks>("MPI_Neighbor_allgather_c", &from, 0, byte, &to, 0, byte, world) &&
           passes<Of::Ragged>("MPI_Neighbor_allgatherv_c", &from, 0, byte, &to, counts, places, byte,
                              world) &&
           passes<Of::Blocks>("MPI_Neighbor_alltoall_c", &from, 0, byte, &to, 0, byte, world) &&
           passes<Of::Letters>("MPI_Neighbor_alltoallv_c", &from, counts, places, byte, &to, counts, places,
                               byte, world) &&
           passes<Of::Typed<MPI_Aint>>("MPI_Neighbor_alltoallw_c", &from, counts, places, bytes, &to, counts,
                                       places, bytes, world);
}

// Of this process alone; of the world, where that is an error at once.
int creations_reach_us() {
    const Host& mpi = *host();
    const MPI_Comm self = mpi.comm_self, world = mpi.comm_world;
    const QuietErrors quiet(world, true);
    const MPI_Info no_info = mpi.info_null;
    const int one[1] = {1}, zero[1] = {0};
    int weights[1] = {1};
    MPI_Group group;
    if (mpi.Comm_group(self, &group) != MPI_SUCCESS) return 0;
    const bool all =
        makes_seen<int(MPI_Comm, MPI_Comm*)>("MPI_Comm_dup", self) &&
        makes_seen<int(MPI_Comm, MPI_Info, MPI_Comm*)>("MPI_Comm_dup_with_info", self, no_info) &&
        makes_seen<int(MPI_Comm, int, int, MPI_Comm*)>("MPI_Comm_split", self, 0, 0) &&
        makes_seen<int(MPI_Comm, int, int, MPI_Info, MPI_Comm*)>("MPI_Comm_split_type", self,
                                                                 MPI_COMM_TYPE_SHARED, 0, no_info) &&
        makes_seen<int(MPI_Comm, MPI_Group, MPI_Comm*)>("MPI_Comm_create", self, group) &&
        makes_seen<int(MPI_Comm, MPI_Group, int, MPI_Comm*)>("MPI_Comm_create_group", self, group, 0) &&
        makes_seen<int(MPI_Comm, int, MPI_Comm*)>("MPI_Intercomm_merge", world, 0) &&
        makes_seen<int(MPI_Comm, int, const int*, const int*, int, MPI_Comm*)>("MPI_Cart_create", self, 1,
                                                                               one, zero, 0) &&
        makes_seen<int(MPI_Comm, const int*, MPI_Comm*)>("MPI_Cart_sub", world, one) &&
        makes_seen<int(MPI_Comm, int, const int*, const int*, int, MPI_Comm*)>("MPI_Graph_create", self, 1,
                                                                               zero, zero, 0) &&
        makes_seen<int(MPI_Comm, int, const int*, const int*, const int*, const int*, MPI_Info, int,
                       MPI_Comm*)>("MPI_Dist_graph_create", self, 0, zero, zero, zero, weights, no_info, 0) &&
        makes_seen<int(MPI_Comm, int, const int*, const int*, int, const int*, const int*, MPI_Info, int,
                       MPI_Comm*)>("MPI_Dist_graph_create_adjacent", self, 0, zero, weights, 0, zero, weights,
                                   no_info, 0);
    mpi.Group_free(&group);
    return all;
}

}  // namespace thalweg
