/* What sets a communicator up, while one call of the MPI library fails on one rank (faults.c): all ranks go
 * on natively, or the job ends with MPI's error. It never hangs, and no byte is wrong.
 *
 * "split" instead: the program's own MPI_Comm_split fails on one rank, and the error is returned. "group":
 * one rank cannot tell whose the ranks are among which a communicator was made. "outside": one that is not in
 * the communicator has its error of the one that it was made of. "request": one rank has no request for a
 * plan. */
#include "check.h"

static void gather(MPI_Comm comm, unsigned seed, int nonblocking) {
    enum { bytes = 20000 };
    int rank, size;
    MPI_Request request;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    unsigned char* const own = guarded_new(bytes);
    unsigned char* const all = guarded_new((size_t)size * bytes);
    fill(own, bytes, seed + (unsigned)rank);
    if (nonblocking) {
        MPI_Iallgather(own, bytes, MPI_BYTE, all, bytes, MPI_BYTE, comm, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
        MPI_Allgather(own, bytes, MPI_BYTE, all, bytes, MPI_BYTE, comm);
    }
    for (int i = 0; i < size; ++i) verify(all + i * bytes, bytes, seed + (unsigned)i, "an allgather");
    guarded_free(own, bytes);
    guarded_free(all, (size_t)size * bytes);
}

static void broadcast(MPI_Comm comm, unsigned seed) {
    enum { bytes = 100000 };
    int rank;
    MPI_Comm_rank(comm, &rank);
    unsigned char* const data = guarded_new(bytes);
    if (rank == 0) fill(data, bytes, seed);
    MPI_Bcast(data, bytes, MPI_BYTE, 0, comm);
    verify(data, bytes, seed, "a broadcast");
    guarded_free(data, bytes);
}

/* Plans on a graph that is set up for the first of them; nothing where the library has none. */
static void plans(unsigned seed) {
    enum { bytes = 3000 };
    int (*init)(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, MPI_Comm, MPI_Info, MPI_Request*);
    *(void**)&init = dlsym(RTLD_DEFAULT, "MPI_Neighbor_alltoall_init");
    if (init == NULL) return;
    const int below = (check_rank + check_size - 1) % check_size, above = (check_rank + 1) % check_size;
    const int one = 1;
    MPI_Comm ring;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &below, &one, 1, &above, &one, MPI_INFO_NULL, 0, &ring);
    unsigned char* const own = guarded_new(bytes);
    unsigned char* const others = guarded_new(bytes);
    for (unsigned plan = 0; plan < 2; ++plan) {
        MPI_Request request;
        init(own, bytes, MPI_BYTE, others, bytes, MPI_BYTE, ring, MPI_INFO_NULL, &request);
        for (unsigned round = 0; round < 2; ++round) {
            fill(own, bytes, seed + 7 * round + (unsigned)check_rank);
            MPI_Start(&request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            verify(others, bytes, seed + 7 * round + (unsigned)below, "a plan");
        }
        MPI_Request_free(&request);
    }
    guarded_free(own, bytes);
    guarded_free(others, bytes);
    MPI_Comm_free(&ring);
}

static int split(void) {
    MPI_Comm part = MPI_COMM_NULL;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    const int failed = MPI_Comm_split(MPI_COMM_WORLD, 0, check_rank, &part) != MPI_SUCCESS;
    int anywhere = 0;
    MPI_Allreduce(&failed, &anywhere, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(anywhere == 1, "MPI_Comm_split failed on %d ranks", anywhere);
    /* Nobody has the communicator where one rank has not; another one is made, and set up. */
    MPI_Comm_split(MPI_COMM_WORLD, 0, check_rank, &part);
    gather(part, 5, 1);
    CHECK(was_accelerated(), "a communicator made after that: %s", last_reason());
    MPI_Comm_free(&part);
    return check_end();
}

static int have_failed(void) {
    int (*faults)(void);
    *(void**)&faults = dlsym(RTLD_DEFAULT, "thalweg_test_faults");
    return faults == NULL ? -1 : faults();
}

/* All ranks have a plan of ours, or none has: the others would wait for one that has not when they start. */
static int request(void) {
    enum { bytes = 3000 };
    int (*init)(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, MPI_Comm, MPI_Info, MPI_Request*);
    *(void**)&init = dlsym(RTLD_DEFAULT, "MPI_Allgather_init");
    if (init == NULL) SKIP("the MPI library has no plans");
    unsigned char* const own = guarded_new(bytes);
    unsigned char* const all = guarded_new((size_t)check_size * bytes);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (unsigned plan = 0; plan < 2; ++plan) {
        MPI_Request made;
        if (plan == 0) setenv("THALWEG_TEST_FAULT", "Recv_init:1:1", 1);
        const int code =
            init(own, bytes, MPI_BYTE, all, bytes, MPI_BYTE, MPI_COMM_WORLD, MPI_INFO_NULL, &made);
        unsetenv("THALWEG_TEST_FAULT");
        CHECK(code == MPI_SUCCESS, "plan %u fails on this rank", plan);
        CHECK(have_failed() == (check_rank == 1), "it was not to fail here, or has not");
        CHECK(was_accelerated() == (plan == 1), "plan %u: %s", plan, last_reason());
        fill(own, bytes, plan + (unsigned)check_rank);
        MPI_Start(&made);
        MPI_Wait(&made, MPI_STATUS_IGNORE);
        for (int i = 0; i < check_size; ++i) verify(all + i * bytes, bytes, plan + (unsigned)i, "a plan");
        MPI_Request_free(&made);
    }
    guarded_free(own, bytes);
    guarded_free(all, (size_t)check_size * bytes);
    return check_end();
}

static int group(void) {
    MPI_Comm twin;
    setenv("THALWEG_TEST_FAULT", "Comm_group:1:1", 1);
    MPI_Comm_dup(MPI_COMM_WORLD, &twin);
    unsetenv("THALWEG_TEST_FAULT");
    CHECK(have_failed() == (check_rank == 1), "it was not to fail here, or has not");
    gather(twin, 5, 1);
    CHECK(was_accelerated(), "a communicator made meanwhile: %s", last_reason());
    MPI_Comm_free(&twin);
    return check_end();
}

static int heard;
static MPI_Comm heard_on;
static void hear(MPI_Comm* comm, int* code, ...) {
    (void)code;
    ++heard;
    heard_on = *comm;
}

static int outside(void) {
    const int victim = 1;
    MPI_Comm parent, part;
    MPI_Group all, some;
    MPI_Errhandler hearing;
    MPI_Comm_dup(MPI_COMM_WORLD, &parent);
    MPI_Comm_create_errhandler(hear, &hearing);
    MPI_Comm_set_errhandler(parent, hearing);
    MPI_Comm_group(parent, &all);
    MPI_Group_excl(all, 1, &victim, &some);
    setenv("THALWEG_TEST_FAULT", "Allreduce:1:1", 1);
    MPI_Comm_create(parent, some, &part);
    unsetenv("THALWEG_TEST_FAULT");
    CHECK(have_failed() == (check_rank == victim), "it was not to fail here, or has not");
    CHECK(heard == (check_rank == victim), "the error handler ran %d times", heard);
    if (heard) CHECK(heard_on == parent, "it ran for another communicator");
    CHECK((part == MPI_COMM_NULL) == (check_rank == victim), "a rank has the wrong communicator");
    if (part != MPI_COMM_NULL) {
        gather(part, 5, 1);
        CHECK(was_accelerated(), "a communicator of the others: %s", last_reason());
        MPI_Comm_free(&part);
    }
    MPI_Group_free(&all);
    MPI_Group_free(&some);
    MPI_Errhandler_free(&hearing);
    MPI_Comm_free(&parent);
    return check_end();
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, MPI_THREAD_SINGLE);
    if (argc > 1 && strcmp(argv[1], "outside") == 0) return outside();
    if (argc > 1 && strcmp(argv[1], "group") == 0) return group();
    if (argc > 1 && strcmp(argv[1], "request") == 0) return request();
    if (argc > 1 && strcmp(argv[1], "split") == 0) return split();
    for (unsigned i = 0; i < 3; ++i) {
        broadcast(MPI_COMM_WORLD, i);
        gather(MPI_COMM_WORLD, 10 * i, 0);
        gather(MPI_COMM_WORLD, 20 * i, 1);
    }
    MPI_Comm twin;
    MPI_Comm_dup(MPI_COMM_WORLD, &twin);
    for (unsigned i = 0; i < 3; ++i) {
        gather(twin, 30 * i, 1);
        broadcast(twin, i);
    }
    MPI_Comm_free(&twin);
    plans(3);
    return check_end();
}
