/* The program's error handler runs as often for a wrong call as it does without Thalweg.
 *
 *     handled            handles that are no communicator's or no type's, in C
 *     handled fortran    the same in Fortran, by the names that its compilers use
 */
#include <strings.h>

#include "check.h"
#include "fortran.h"

enum { ranks = 8, block = 3000 };
static char sent[ranks * block], received[ranks * block];
static int counts[ranks], places[ranks];
static MPI_Aint addresses[ranks];
static int handled;
static MPI_Datatype types[ranks];

static void count_it(MPI_Comm* comm, int* code, ...) {
    (void)comm, (void)code;
    ++handled;
}

/* Each call by its own name and by the one that nothing stands in front of. */
#define CALL(name, arguments) \
    case __COUNTER__ - first: \
        *what = #name;        \
        return native ? P##name arguments : name arguments;

static int call_c(int which, int native, MPI_Comm comm, MPI_Datatype type, const char** what) {
    enum { first = __COUNTER__ + 1 };
    MPI_Comm copy = comm;
    MPI_Request request = MPI_REQUEST_NULL;
    for (int i = 0; i < ranks; ++i) types[i] = type;
    switch (which) {
        CALL(MPI_Bcast, (sent, block, type, 0, comm))
        CALL(MPI_Allgather, (sent, block, type, received, block, type, comm))
        CALL(MPI_Allgatherv, (sent, block, type, received, counts, places, type, comm))
        CALL(MPI_Allreduce, (sent, received, block, type, MPI_BOR, comm))
        CALL(MPI_Alltoall, (sent, block, type, received, block, type, comm))
        CALL(MPI_Alltoallv, (sent, counts, places, type, received, counts, places, type, comm))
        CALL(MPI_Alltoallw, (sent, counts, places, types, received, counts, places, types, comm))
        CALL(MPI_Neighbor_allgather, (sent, block, type, received, block, type, comm))
        CALL(MPI_Neighbor_allgatherv, (sent, block, type, received, counts, places, type, comm))
        CALL(MPI_Neighbor_alltoall, (sent, block, type, received, block, type, comm))
        CALL(MPI_Neighbor_alltoallv, (sent, counts, places, type, received, counts, places, type, comm))
        CALL(MPI_Neighbor_alltoallw,
             (sent, counts, addresses, types, received, counts, addresses, types, comm))
        CALL(MPI_Ibcast, (sent, block, type, 0, comm, &request))
        CALL(MPI_Iallgather, (sent, block, type, received, block, type, comm, &request))
        CALL(MPI_Iallgatherv, (sent, block, type, received, counts, places, type, comm, &request))
        CALL(MPI_Iallreduce, (sent, received, block, type, MPI_BOR, comm, &request))
        CALL(MPI_Ialltoall, (sent, block, type, received, block, type, comm, &request))
        CALL(MPI_Ialltoallv, (sent, counts, places, type, received, counts, places, type, comm, &request))
        CALL(MPI_Ialltoallw, (sent, counts, places, types, received, counts, places, types, comm, &request))
        CALL(MPI_Ineighbor_allgather, (sent, block, type, received, block, type, comm, &request))
        CALL(MPI_Ineighbor_alltoallv,
             (sent, counts, places, type, received, counts, places, type, comm, &request))
        CALL(MPI_Ineighbor_alltoallw,
             (sent, counts, addresses, types, received, counts, addresses, types, comm, &request))
        CALL(MPI_Reduce, (sent, received, block, type, MPI_BOR, 0, comm))
        /* What has no type. */
        CALL(MPI_Barrier, (comm))
        CALL(MPI_Ibarrier, (comm, &request))
        CALL(MPI_Comm_dup, (comm, &copy))
        CALL(MPI_Comm_split, (comm, 0, 0, &copy))
        CALL(MPI_Comm_free, (&copy))
        CALL(MPI_Comm_disconnect, (&copy))
    }
    return *what = NULL, MPI_SUCCESS;
}

#if !defined(MPI_ABI_VERSION) /* whose header knows no Fortran */
/* All arguments are addresses there, and what is passed beyond the last one is not looked at. */
#define FORTRAN(name, ...)                       \
    case __COUNTER__ - first: {                  \
        *what = #name;                           \
        int code = MPI_SUCCESS;                  \
        void (*call)();                          \
        *(void**)&call = fortran(#name, native); \
        call(__VA_ARGS__, &code);                \
        return code;                             \
    }

static int call_fortran(int which, int native, MPI_Comm made, MPI_Datatype of, const char** what) {
    enum { first = __COUNTER__ + 1 };
    MPI_Fint comm = MPI_Comm_c2f(made), type = MPI_Type_c2f(of), operation = MPI_Op_c2f(MPI_BOR);
    MPI_Fint some_types[ranks], request, root = 0, count = block;
    for (int i = 0; i < ranks; ++i) some_types[i] = type;
    switch (which) {
        FORTRAN(mpi_bcast, sent, &count, &type, &root, &comm)
        FORTRAN(mpi_allgather, sent, &count, &type, received, &count, &type, &comm)
        FORTRAN(mpi_allreduce, sent, received, &count, &type, &operation, &comm)
        FORTRAN(mpi_alltoall, sent, &count, &type, received, &count, &type, &comm)
        FORTRAN(mpi_alltoallv, sent, counts, places, &type, received, counts, places, &type, &comm)
        FORTRAN(mpi_alltoallw, sent, counts, places, some_types, received, counts, places, some_types, &comm)
        FORTRAN(mpi_neighbor_alltoallv, sent, counts, places, &type, received, counts, places, &type, &comm)
        FORTRAN(mpi_neighbor_alltoallw, sent, counts, addresses, some_types, received, counts, addresses,
                some_types, &comm)
        FORTRAN(mpi_ibcast, sent, &count, &type, &root, &comm, &request)
        FORTRAN(mpi_ialltoallw, sent, counts, places, some_types, received, counts, places, some_types, &comm,
                &request)
        FORTRAN(mpi_ineighbor_alltoallw, sent, counts, addresses, some_types, received, counts, addresses,
                some_types, &comm, &request)
        FORTRAN(mpi_barrier, &comm)
        FORTRAN(mpi_comm_free, &comm)
    }
    return *what = NULL, MPI_SUCCESS;
}

#else
#define call_fortran call_c
#endif

typedef int Call(int which, int native, MPI_Comm comm, MPI_Datatype type, const char** what);

static void compare(Call* call, MPI_Comm comm, MPI_Datatype type, const char* of) {
    for (int which = 0;; ++which) {
        int codes[2], times[2];
        const char* what = NULL;
        for (int ours = 0; ours < 2; ++ours) {
            handled = 0;
            codes[ours] = class_of(call(which, !ours, comm, type, &what));
            times[ours] = handled;
        }
        if (what == NULL || (type != MPI_BYTE && strcasecmp(what, "MPI_Barrier") == 0)) break;
        CHECK(codes[0] == codes[1], "%s of %s gives class %d, and %d without Thalweg", what, of, codes[1],
              codes[0]);
        CHECK(times[0] == times[1], "%s of %s: the error handler ran %d times, and %d times without Thalweg",
              what, of, times[1], times[0]);
    }
}

static void wrong_handles(Call* call) {
    MPI_Errhandler counting;
    MPI_Comm_create_errhandler(count_it, &counting);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, counting);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, counting);
    for (int wanted = 0; wanted < 2; ++wanted) {
        MPI_Comm good, grid, stale;
        MPI_Request request;
        const int periodic = 1;
        MPI_Comm_dup(MPI_COMM_WORLD, &good);
        MPI_Cart_create(MPI_COMM_WORLD, 1, &check_size, &periodic, 0, &grid);
        MPI_Comm_set_errhandler(good, counting);
        MPI_Comm_set_errhandler(grid, counting);
        /* A set-up is wanted from here on. */
        if (wanted) {
            MPI_Ibcast(sent, block, MPI_BYTE, 0, good, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        if (check_rank == 1) {
            compare(call, MPI_COMM_NULL, MPI_BYTE, "no communicator");
            MPI_Comm_dup(MPI_COMM_SELF, &stale);
            const MPI_Comm left = stale;
            MPI_Comm_free(&stale);
            compare(call, left, MPI_BYTE, "a communicator that was freed");
        }
        /* Where a handler returns, MPICH 5 goes on with what it has refused. */
        if (!is_made_by("MPICH Version:      5")) compare(call, grid, MPI_DATATYPE_NULL, "no type");
        /* Nobody frees the world. */
        MPI_Comm all = MPI_COMM_WORLD;
        meet_on(all);
        if (check_rank == 1 && !is_made_by("MPICH Version:      5")) MPI_Comm_free(&all);
        meet_on(MPI_COMM_WORLD);
        meet_on(good);
        meet_on(grid);
        MPI_Comm_free(&grid);
        MPI_Comm_free(&good);
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
    MPI_Errhandler_free(&counting);
}

int main(int argc, char** argv) {
    const int in_fortran = argc > 1 && strcmp(argv[1], "fortran") == 0;
    check_start(&argc, &argv, MPI_THREAD_MULTIPLE);
    for (int i = 0; i < ranks; ++i) counts[i] = block, places[i] = i * block, addresses[i] = i * block;
    if (in_fortran) load_fortran();
    alarm(100);
    wrong_handles(in_fortran ? call_fortran : call_c);
    return check_end();
}
