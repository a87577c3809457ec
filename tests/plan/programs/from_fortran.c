/* Calls from Fortran, by the names that its compilers use, and what comes beside them, after or inside them.
 *
 *     from_fortran inside    calls of an error handler that runs inside a call from Fortran
 *     from_fortran same      the same call on the same communicator, in C, by the handler and after it
 *     from_fortran freed     what the program frees in Fortran while it is active
 *     from_fortran mixed     communicators that one rank makes in Fortran, and the others in C
 *     from_fortran started   a plan that is over before its start in Fortran returns
 *     from_fortran counted   a plan that fails among others, in mpi_f08, which counts from 0 in MPICH 4.0
 */
#include <setjmp.h>

#include "check.h"

#if defined(MPI_ABI_VERSION)
int main(void) { SKIP("its header knows no Fortran"); }
#else
#include "fortran.h"

enum { block = 3000 };
static char received[block];

static void broadcast_in_fortran(MPI_Comm comm, MPI_Fint root) {
    MPI_Fint handle = MPI_Comm_c2f(comm), type = MPI_Type_c2f(MPI_BYTE), count = block, code;
    void (*call)();
    *(void**)&call = fortran("mpi_bcast", 0);
    call(received, &count, &type, &root, &handle, &code);
}

static MPI_Comm apart;
static int called;
static void call_from_handler(MPI_Comm* comm, int* code, ...) {
    (void)comm, (void)code;
    ++called;
    meet_on(apart);
    CHECK(was_accelerated() == expect_thalweg(), "an allreduce of a handler is native: %s", last_reason());
    broadcast_in_fortran(apart, 0);
    CHECK(was_accelerated() == expect_thalweg(), "its broadcast is native: %s", last_reason());
}

/* One rank alone has its error: the others come to what its handler calls by themselves. */
static void calls_of_a_handler(void) {
    MPI_Errhandler calling;
    MPI_Comm_create_errhandler(call_from_handler, &calling);
    MPI_Comm_dup(MPI_COMM_WORLD, &apart);
    for (int which = 0; which < 2; ++which) {
        MPI_Comm comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        MPI_Comm_set_errhandler(comm, calling);
        meet_on(apart);
        if (check_rank == 1) {
            MPI_Fint handle = MPI_Comm_c2f(comm), type = MPI_Type_c2f(MPI_BYTE), count = block;
            MPI_Fint root = -5, request, code;
            void (*call)();
            *(void**)&call = fortran(which == 0 ? "mpi_bcast" : "mpi_ibcast", 0);
            if (which == 0)
                call(received, &count, &type, &root, &handle, &code);
            else
                call(received, &count, &type, &root, &handle, &request, &code);
            CHECK(called == which + 1, "the handler ran %d times", called);
        } else {
            meet_on(apart);
            broadcast_in_fortran(apart, 0);
        }
        meet_on(apart);
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
    if (setjmp(back) == 0) broadcast_in_fortran(comm, -5);
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
    meet_on(MPI_COMM_WORLD);
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
            meet_on(comm);
            meet_on(MPI_COMM_WORLD);
            MPI_Comm_free(&comm);
        }
}

/* A tool in front, which Fortran's binding calls, and which waits for what was started. */
static int waits_in_start;
int MPI_Start(MPI_Request* request) {
    int (*next)(MPI_Request*);
    *(void**)&next = dlsym(RTLD_NEXT, "MPI_Start");
    const int code = next(request);
    for (int flag = !waits_in_start || code != MPI_SUCCESS; !flag;)
        MPI_Request_get_status(*request, &flag, MPI_STATUS_IGNORE);
    return code;
}

typedef int BcastInit(void*, int, MPI_Datatype, int, MPI_Comm, MPI_Info, MPI_Request*);

/* It is started once, on the rank with the tool as on the root. */
static void started_in_fortran(void) {
    enum { bytes = 60000, rounds = 3 };
    static unsigned char data[bytes];
    BcastInit* init;
    MPI_Request plan;
    *(void**)&init = find_or_skip("MPI_Bcast_init");
    init(data, bytes, MPI_BYTE, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &plan);
    CHECK(was_accelerated() == expect_thalweg(), "a plan is native: %s", last_reason());
    for (unsigned round = 0; round < rounds; ++round) {
        memset(data, poison_value, bytes);
        if (check_rank == 0) fill(data, bytes, round);
        if (check_rank == 1) {
            MPI_Fint handle = MPI_Request_c2f(plan), code = MPI_SUCCESS;
            void (*call)();
            *(void**)&call = fortran("mpi_start", 0);
            waits_in_start = 1;
            call(&handle, &code);
            waits_in_start = 0;
            CHECK(code == MPI_SUCCESS, "a start: %d", code);
        } else {
            MPI_Start(&plan);
        }
        CHECK(MPI_Wait(&plan, MPI_STATUS_IGNORE) == MPI_SUCCESS, "a plan has failed");
        verify(data, bytes, round, "a plan that was over at once");
    }
    MPI_Request_free(&plan);
}

/* Rank 1 expects less than comes. Where the plan is in the list tells a count from 0 from one from 1. */
static void counted_in_f08(void) {
    enum { bytes = 1000 };
    void (*wait_any)(), (*wait_some)();
    BcastInit* init;
    *(void**)&init = find_or_skip("MPI_Bcast_init");
    find_or_skip("pmpir_waitany_f08_");
    *(void**)&wait_any = fortran("mpi_waitany_f08", 0);
    *(void**)&wait_some = fortran("mpi_waitsome_f08", 0);
    /* What libraries of the MPICH family find wrong in our messages they tell the world's handler, too. */
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    for (int turn = 0; turn < 4; ++turn) {
        const int at = turn % 2, some = turn / 2, wrong = check_rank == 1;
        MPI_Comm comm;
        MPI_Request plan;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
        init(received, wrong ? bytes / 2 : bytes, MPI_BYTE, 0, comm, MPI_INFO_NULL, &plan);
        CHECK(was_accelerated() == expect_thalweg(), "a plan is native: %s", last_reason());
        MPI_Start(&plan);
        MPI_Fint requests[2] = {MPI_Request_c2f(MPI_REQUEST_NULL), MPI_Request_c2f(MPI_REQUEST_NULL)};
        MPI_Fint count = 2, index = -1, done = 0, indices[2] = {-1, -1}, code = MPI_SUCCESS;
        MPI_Status statuses[2];
        requests[at] = MPI_Request_c2f(plan);
        if (some)
            wait_some(&count, requests, &done, indices, statuses, &code);
        else
            wait_any(&count, requests, &index, statuses, &code);
        int class = class_of(code);
        if (some && class == MPI_ERR_IN_STATUS) class = class_of(statuses[0].MPI_ERROR);
        CHECK(class == (wrong ? MPI_ERR_TRUNCATE : MPI_SUCCESS), "mpi_f08, a plan at %d of %s: class %d", at,
              some ? "some" : "any", class);
        MPI_Request_free(&plan);
        MPI_Comm_free(&comm);
    }
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char** argv) {
    const char* const way = argc > 1 ? argv[1] : "";
    /* With threads MPICH 4 ends a job whose handler calls MPI. */
    const int inside = strcmp(way, "inside") == 0, same = strcmp(way, "same") == 0;
    check_start(&argc, &argv, inside || same ? MPI_THREAD_SINGLE : MPI_THREAD_MULTIPLE);
    load_fortran();
    alarm(100);
    if (inside)
        calls_of_a_handler();
    else if (same)
        same_call_of_a_handler();
    else if (strcmp(way, "freed") == 0)
        freed_in_fortran();
    else if (strcmp(way, "mixed") == 0)
        mixed_languages();
    else if (strcmp(way, "started") == 0)
        started_in_fortran();
    else if (strcmp(way, "counted") == 0)
        counted_in_f08();
    else
        FAIL("from_fortran inside, same, freed, mixed, started or counted, not '%s'", way);
    return check_end();
}
#endif
