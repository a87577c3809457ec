/* The program's error handler runs as often for a wrong call as it does without Thalweg, and what it calls of
 * MPI is seen as the program's.
 *
 *     handled            handles that are no communicator's or no type's, in C
 *     handled fortran    the same in Fortran, by the names that its compilers use
 *     handled inside     calls of a handler that runs inside a call from Fortran
 *     handled same       the same call on the same communicator, in C, by the handler and after it has left
 *     handled freed      what the program frees in Fortran while it is active
 *     handled mixed      communicators that one rank makes in Fortran, and the others in C
 */
#include <setjmp.h>
#include <strings.h>

#include "check.h"

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

static int class_of(int code) {
    int class = MPI_SUCCESS;
    MPI_Error_class(code, &class);
    return class;
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
static void* fortran(const char* name, int native) {
    char symbol[64];
    snprintf(symbol, sizeof symbol, "%s%s_", native ? "p" : "", name);
    void* const found = dlsym(RTLD_DEFAULT, symbol);
    CHECK(found != NULL, "no %s", symbol);
    return found;
}

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

static void agree_on(MPI_Comm comm) {
    int sum = 0;
    MPI_Allreduce(&check_rank, &sum, 1, MPI_INT, MPI_SUM, comm);
    CHECK(sum == check_size * (check_size - 1) / 2, "a sum of %d", sum);
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
        agree_on(all);
        if (check_rank == 1 && !is_made_by("MPICH Version:      5")) MPI_Comm_free(&all);
        agree_on(MPI_COMM_WORLD);
        agree_on(good);
        agree_on(grid);
        MPI_Comm_free(&grid);
        MPI_Comm_free(&good);
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
    MPI_Errhandler_free(&counting);
}

#if !defined(MPI_ABI_VERSION)
static MPI_Comm apart;
static int called;
static void call_from_handler(MPI_Comm* comm, int* code, ...) {
    (void)comm, (void)code;
    const char* what;
    ++called;
    agree_on(apart);
    CHECK(was_accelerated() == expect_thalweg(), "an allreduce of a handler is native: %s", last_reason());
    call_fortran(0, 0, apart, MPI_BYTE, &what);
    CHECK(was_accelerated() == expect_thalweg(), "its %s is native: %s", what, last_reason());
}

/* One rank alone has its error: the others come to what its handler calls by themselves. */
static void calls_of_a_handler(void) {
    MPI_Errhandler calling;
    MPI_Comm_create_errhandler(call_from_handler, &calling);
    MPI_Comm_dup(MPI_COMM_WORLD, &apart);
    for (int which = 0; which < 2; ++which) {
        MPI_Comm comm;
        const char* what;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        MPI_Comm_set_errhandler(comm, calling);
        agree_on(apart);
        if (check_rank == 1) {
            MPI_Fint handle = MPI_Comm_c2f(comm), type = MPI_Type_c2f(MPI_BYTE), count = block;
            MPI_Fint root = -5, request, code;
            void (*call)();
            *(void**)&call = fortran(which == 0 ? "mpi_bcast" : "mpi_ibcast", 0);
            if (which == 0)
                call(sent, &count, &type, &root, &handle, &code);
            else
                call(sent, &count, &type, &root, &handle, &request, &code);
            CHECK(called == which + 1, "the handler ran %d times", called);
        } else {
            agree_on(apart);
            call_fortran(0, 0, apart, MPI_BYTE, &what);
        }
        agree_on(apart);
        MPI_Comm_free(&comm);
    }
    MPI_Comm_free(&apart);
    MPI_Errhandler_free(&calling);
}

static jmp_buf back;
static int leaves;
static __attribute__((noinline)) void broadcast(MPI_Comm comm, const char* when) {
    memset(received, check_rank == 0, block);
    MPI_Bcast(received, block, MPI_BYTE, 0, comm);
    CHECK(was_accelerated() == expect_thalweg(), "a broadcast %s is native: %s", when, last_reason());
    CHECK(received[block - 1] == 1, "a broadcast %s: %d", when, received[block - 1]);
}
static void broadcast_in_handler(MPI_Comm* comm, int* code, ...) {
    (void)code;
    ++called;
    if (leaves) longjmp(back, 1);
    broadcast(*comm, "of a handler");
}
/* Below every frame of the call that was left. */
static __attribute__((noinline)) void broadcast_deeper(MPI_Comm comm) {
    volatile char room[100000];
    room[0] = room[sizeof room - 1] = 0;
    broadcast(comm, "after the handler");
    room[1] = 0;
}
static __attribute__((noinline)) void broadcast_wrongly(MPI_Comm comm) {
    MPI_Fint handle = MPI_Comm_c2f(comm), type = MPI_Type_c2f(MPI_BYTE), count = block, root = -5, code;
    void (*call)();
    *(void**)&call = fortran("mpi_bcast", 0);
    if (setjmp(back) == 0) call(received, &count, &type, &root, &handle, &code);
}

static void same_call_of_a_handler(void) {
    MPI_Errhandler calling;
    MPI_Comm comm;
    MPI_Comm_create_errhandler(broadcast_in_handler, &calling);
    for (leaves = 0; leaves < 2; ++leaves) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        MPI_Comm_set_errhandler(comm, calling);
        broadcast(comm, "before the error");
        if (check_rank == 1) {
            broadcast_wrongly(comm);
            CHECK(called == leaves + 1, "the handler ran %d times", called);
            if (leaves) broadcast_deeper(comm);
        } else {
            broadcast(comm, "beside the error");
        }
        broadcast(comm, "in the end");
        MPI_Comm_free(&comm);
    }
    MPI_Errhandler_free(&calling);
}

/* One of rank 1's, which starts later. The class of what freeing it returned. */
static int free_active(int native, unsigned char* data, int bytes) {
    int class = MPI_SUCCESS;
    MPI_Request request;
    if (check_rank != 0) {
        if (check_rank == 1) MPI_Recv(NULL, 0, MPI_BYTE, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        (native ? PMPI_Ibcast : MPI_Ibcast)(data, bytes, MPI_BYTE, 1, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else if (native) {
        PMPI_Ibcast(data, bytes, MPI_BYTE, 1, MPI_COMM_WORLD, &request);
        class = class_of(PMPI_Request_free(&request));
    } else {
        MPI_Fint comm = MPI_Comm_c2f(MPI_COMM_WORLD), type = MPI_Type_c2f(MPI_BYTE), root = 1, handle, code;
        void (*call)();
        *(void**)&call = fortran("mpi_ibcast", 0);
        call(data, &bytes, &type, &root, &comm, &handle, &code);
        CHECK(was_accelerated() == expect_thalweg(), "an ibcast is native: %s", last_reason());
        *(void**)&call = fortran("mpi_request_free", 0);
        call(&handle, &code);
        class = class_of(code);
        request = MPI_Request_f2c(handle);
    }
    if (check_rank == 0) {
        MPI_Send(NULL, 0, MPI_BYTE, 1, 3, MPI_COMM_WORLD);
        if (request != MPI_REQUEST_NULL) MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    return class;
}

static void freed_in_fortran(void) {
    enum { times = 30, bytes = 100000 };
    static unsigned char data[times][bytes]; /* where what was freed may still arrive */
    int wanted = 0;
    MPI_Request request;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Ibcast(data, 1, MPI_BYTE, 0, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    agree_on(MPI_COMM_WORLD);
    for (int i = 0; i < times; ++i) {
        if (check_rank == 1) fill(data[i], bytes, (unsigned)i);
        const int class = free_active(i == 0, data[i], bytes);
        if (i == 0) wanted = class;
        CHECK(class == wanted, "free: class %d, natively %d", class, wanted);
        for (int more = 0; more < 5; ++more) {
            int mine = check_rank, sum;
            MPI_Iallreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            CHECK(sum == check_size * (check_size - 1) / 2, "a sum of %d", sum);
        }
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    for (int i = 0; i < times; ++i) {
        const double until = seconds_now() + 30;
        /* Whatever call of MPI comes by. */
        for (int flag = 0; data[i][bytes - 1] != pattern(bytes - 1, (unsigned)i) && seconds_now() < until;) {
            MPI_Iprobe(MPI_ANY_SOURCE, 99, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
            MPI_Ibarrier(MPI_COMM_SELF, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        verify(data[i], bytes, (unsigned)i, "what was freed");
    }
}

/* Ranks that agree do it equally often, in whatever language they call. */
static void mixed_languages(void) {
    MPI_Fint parent = MPI_Comm_c2f(MPI_COMM_WORLD), zero = 0;
    for (int split = 0; split < 2; ++split)
        for (int times = 0; times < 3; ++times) {
            MPI_Comm comm;
            if (check_rank == 1) {
                MPI_Fint made, code;
                void (*call)();
                *(void**)&call = fortran(split ? "mpi_comm_split" : "mpi_comm_dup", 0);
                if (split)
                    call(&parent, &zero, &zero, &made, &code);
                else
                    call(&parent, &made, &code);
                CHECK(code == MPI_SUCCESS, "Fortran: %d", code);
                comm = MPI_Comm_f2c(made);
                MPI_Recv(NULL, 0, MPI_BYTE, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            } else {
                if (split)
                    MPI_Comm_split(MPI_COMM_WORLD, 0, 0, &comm);
                else
                    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
                /* Rank 1 may agree on something with nobody. */
                if (check_rank == 0) MPI_Ssend(NULL, 0, MPI_BYTE, 1, 4, MPI_COMM_WORLD);
            }
            agree_on(comm);
            agree_on(MPI_COMM_WORLD);
            MPI_Comm_free(&comm);
        }
}

#else
static void calls_of_a_handler(void) {}
static void mixed_languages(void) {}
static void same_call_of_a_handler(void) {}
static void freed_in_fortran(void) {}
#endif

int main(int argc, char** argv) {
    const char* const way = argc > 1 ? argv[1] : "";
    /* With threads MPICH 4 ends a job whose handler calls MPI. */
    const int inside = strcmp(way, "inside") == 0, same = strcmp(way, "same") == 0;
    check_start(&argc, &argv, inside || same ? MPI_THREAD_SINGLE : MPI_THREAD_MULTIPLE);
    for (int i = 0; i < ranks; ++i) counts[i] = block, places[i] = i * block, addresses[i] = i * block;
    if (*way != '\0') {
        const char* const libraries[] = {is_open_mpi() ? "libmpi_mpifh.so.40" : "libmpichfort.so.12",
                                         "libmpifort.so.12"};
        void* library = NULL;
        for (int i = 0; i < (is_open_mpi() ? 1 : 2) && library == NULL; ++i)
            library = dlopen(libraries[i], RTLD_NOW | RTLD_GLOBAL);
        if (library == NULL) SKIP("this MPI has no Fortran");
    }
    alarm(100);
    if (inside)
        calls_of_a_handler();
    else if (same)
        same_call_of_a_handler();
    else if (strcmp(way, "freed") == 0)
        freed_in_fortran();
    else if (strcmp(way, "mixed") == 0)
        mixed_languages();
    else
        wrong_handles(*way != '\0' ? call_fortran : call_c);
    return check_end();
}
