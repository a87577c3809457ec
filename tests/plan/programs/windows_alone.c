/* Calls of the MPI library fail on one rank alone (faults.c) while ranks make a persistent alltoall over
 * windows: then all of them exchange messages, and none waits for another; the next plan has a window again,
 * unless some ranks have one that the others lack.
 *
 *     windows_alone         windows that are not made, freed or locked, and places that are not exchanged
 *     windows_alone CALL    this one of the agreements of a second plan: the job ends with the error
 */
#include "check.h"

enum { count = 300, most = 8, rounds = 3 };

typedef int AlltoallInit(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, MPI_Comm, MPI_Info,
                         MPI_Request*);
static AlltoallInit* alltoall_init;
static int (*faults)(void);
static void (*count_anew)(void);

static int by_windows(void) {
    thalweg_last_call call;
    return look_last_call != NULL && look_last_call(&call, sizeof call) == 0 && call.accelerated &&
           strncmp(call.algorithm, "rma_", 4) == 0;
}

static int value_of(int from, int to, int round, int i) { return (from * 64 + to) * 1000 + round * 300 + i; }

/* A plan on `comm`, which is started and freed; `fault` happens as it is made. */
static void plan(MPI_Comm comm, const char* fault, int windows, const char* what) {
    static int from[most * count], to[most * count];
    MPI_Request request;
    const int before = faults();
    count_anew();
    if (fault != NULL) setenv("THALWEG_TEST_FAULT", fault, 1);
    const int code = alltoall_init(from, count, MPI_INT, to, count, MPI_INT, comm, MPI_INFO_NULL, &request);
    unsetenv("THALWEG_TEST_FAULT");
    CHECK(code == MPI_SUCCESS, "%s: class %d", what, class_of(code));
    CHECK(faults() - before == (fault != NULL && check_rank == 1), "%s: %d calls failed", what,
          faults() - before);
    CHECK(was_accelerated() && by_windows() == windows, "%s: by windows: %d; %s", what, by_windows(),
          last_reason());
    for (int round = 0; round < rounds; ++round) {
        for (int i = 0; i < check_size * count; ++i) {
            from[i] = value_of(check_rank, i / count, round, i % count);
            to[i] = -1;
        }
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (int i = 0; i < check_size * count; ++i)
            CHECK(to[i] == value_of(i / count, check_rank, round, i % count), "%s, round %d: int %d is wrong",
                  what, round, i);
    }
    MPI_Request_free(&request);
}

static void disagree(const char* call) {
    char fault[32];
    snprintf(fault, sizeof fault, "Allreduce:%s:1", call);
    plan(MPI_COMM_WORLD, NULL, 1, "a plan");
    plan(MPI_COMM_WORLD, fault, 1, "a plan that ranks do not agree on");
}

int main(int argc, char** argv) {
    alarm(100);
    check_start(&argc, &argv, wanted_level());
    *(void**)&alltoall_init = find_or_skip("MPI_Alltoall_init");
    *(void**)&faults = dlsym(RTLD_DEFAULT, "thalweg_test_faults");
    *(void**)&count_anew = dlsym(RTLD_DEFAULT, "thalweg_test_count_anew");
    CHECK(faults != NULL && count_anew != NULL && check_size <= most, "there is nothing that fails");
    if (argc > 1) return disagree(argv[1]), check_end();
    const char* const way = getenv("THALWEG_ALLTOALLV");
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    plan(comm, NULL, 1, "a first plan");
    plan(comm, "Alltoall:1:1", 0, "where the blocks are");
    plan(comm, NULL, 1, "behind that");
    plan(comm, "Win_free:1:1", 0, "a window that is not freed");
    plan(comm, NULL, 1, "behind that one");
    if (way != NULL && strcmp(way, "rma_lock") == 0) {
        plan(comm, "Win_lock:1:1", 0, "a window that is not locked");
        plan(comm, NULL, 1, "behind the lock");
    }
    plan(comm, "Win_create:1:1", 0, "a window that is not made");
    plan(comm, NULL, 0, "where one rank has no window");
    MPI_Comm_free(&comm);
    plan(MPI_COMM_WORLD, NULL, 1, "on another communicator");
    return check_end();
}
