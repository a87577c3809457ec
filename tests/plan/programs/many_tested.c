/* MPI_Testall, which wants no statuses, of an operation of ours in front of more receives than a library
 * looks at at once: as many as the program is told, or 130. MPICH calls no function of the generalized
 * request then that the operation is, and gives its handle to others: by and by to a later operation of ours,
 * which is completed all the same.
 * "no_memory": MPI_Testall finds none for what it lends the library, so that this does not happen. */
#define _GNU_SOURCE
#include "check.h"
#include "our_object.h"

extern void* __libc_malloc(size_t);

static int fails; /* what the thread that tests asks for in code of ours */
static pid_t tester;
static long injected;

void* malloc(size_t bytes) {
    const uintptr_t caller = (uintptr_t)__builtin_return_address(0);
    if (!fails || caller < ours_begin || caller >= ours_end || gettid() != tester)
        return __libc_malloc(bytes);
    ++injected;
    return NULL;
}

enum { most = 130, rounds = 100, bytes = 100, tag = 5 };

int main(int argc, char** argv) {
    alarm(100);
    const int no_memory = argc > 1 && strcmp(argv[1], "no_memory") == 0;
    dl_iterate_phdr(find_ours, NULL);
    tester = gettid();
    check_start(&argc, &argv, MPI_THREAD_MULTIPLE);
    const int receives = argc > 1 && !no_memory ? atoi(argv[1]) : most;
    CHECK(receives > 0 && receives <= most, "%d receives", receives);
    static unsigned char data[bytes];
    MPI_Request requests[1 + most];
    MPI_Ibcast(data, bytes, MPI_BYTE, 0, MPI_COMM_WORLD, &requests[0]); /* asks for the set-up */
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    for (unsigned round = 0; round < rounds; ++round) {
        memset(data, poison_value, bytes);
        if (check_rank == 0) fill(data, bytes, round);
        MPI_Ibcast(data, bytes, MPI_BYTE, 0, MPI_COMM_WORLD, &requests[0]);
        if (expect_thalweg() && check_size > 1) CHECK(was_accelerated(), "declined: %s", last_reason());
        for (int i = 1; i <= receives; ++i)
            MPI_Irecv(NULL, 0, MPI_BYTE, check_rank, tag, MPI_COMM_WORLD, &requests[i]);
        for (int i = 1; i <= receives; ++i) MPI_Send(NULL, 0, MPI_BYTE, check_rank, tag, MPI_COMM_WORLD);
        fails = no_memory;
        for (int flag = 0; !flag;) MPI_Testall(1 + receives, requests, &flag, MPI_STATUSES_IGNORE);
        fails = 0;
        for (int i = 0; i <= receives; ++i)
            CHECK(requests[i] == MPI_REQUEST_NULL, "round %u: request %d is left", round, i);
        verify(data, bytes, round, "a broadcast in front of many receives");
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int i = 0; i <= receives; ++i)
        MPI_Irecv(NULL, 0, MPI_BYTE, check_rank, tag, MPI_COMM_WORLD, &requests[i]);
    for (int i = 0; i <= receives; ++i) {
        const int code = MPI_Cancel(&requests[i]);
        CHECK(code == MPI_SUCCESS, "receive %d is not cancelled: class %d", i, class_of(code));
        MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
    }
    if (no_memory && expect_thalweg() && check_size > 1) CHECK(injected > 0, "no memory was asked for");
    return check_end();
}
