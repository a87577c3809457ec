/* An error handler that jumps out of a call that starts an operation: nothing of ours stays held, so that
 * MPI_Finalize closes what all operations share, which is the memory of the host here. Or out of the native
 * call that completes a message, beside an operation of ours that has failed: the next call tells of that. */
#include <dirent.h>
#include <setjmp.h>

#include "check.h"

enum { sent = 1000 }; /* where less is expected */
static unsigned char data[sent];
static jmp_buf back;
static volatile int heard;

static void jump(MPI_Comm* comm, int* code, ...) {
    (void)comm, (void)code;
    ++heard;
    longjmp(back, 1);
}

/* Descriptors of this process's of memory that Thalweg has made. */
static int memories(void) {
    int found = 0;
    DIR* const all = opendir("/proc/self/fd");
    for (const struct dirent* each; all != NULL && (each = readdir(all)) != NULL;) {
        char name[64] = "";
        found += readlinkat(dirfd(all), each->d_name, name, sizeof name - 1) > 0 &&
                 strstr(name, "memfd:thalweg") != NULL;
    }
    if (all != NULL) closedir(all);
    return found;
}

/* Rank 1 expects less than comes. From then on it starts no other operation on `pair` that runs. */
static void start_wrong(MPI_Comm pair, MPI_Request* request) {
    MPI_Comm_set_errhandler(pair, MPI_ERRORS_RETURN);
    MPI_Ibcast(data, sent, MPI_BYTE, 0, pair, request);
    MPI_Wait(request, MPI_STATUS_IGNORE);
    MPI_Barrier(pair);
    MPI_Ibcast(data, check_rank == 1 ? sent / 2 : sent, MPI_BYTE, 0, pair, request);
    CHECK(was_accelerated(), "a broadcast was declined: %s", last_reason());
}

static void fail(MPI_Request* request) {
    const int code = MPI_Wait(request, MPI_STATUS_IGNORE);
    CHECK(class_of(code) == (check_rank == 1 ? MPI_ERR_TRUNCATE : MPI_SUCCESS), "a broadcast: class %d",
          class_of(code));
    CHECK(*request == MPI_REQUEST_NULL, "a request is left");
}

static __attribute__((noinline)) void jump_out_of_start(MPI_Comm pair) {
    static MPI_Request request;
    if (setjmp(back) == 0) MPI_Ibcast(data, sent, MPI_BYTE, 0, pair, &request);
}

static __attribute__((noinline)) void jump_out_of_waitany(MPI_Request* requests) {
    static int index;
    if (setjmp(back) == 0) MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE);
}

/* A message to oneself that is longer than its receive is found first. Of whom the handler hears, and so who
 * may jump, is the library's choice. */
static void beside_a_message(MPI_Errhandler jumps) {
    MPI_Comm pair;
    static MPI_Request requests[2];
    static char to[2], from;
    MPI_Comm_dup(MPI_COMM_WORLD, &pair);
    start_wrong(pair, &requests[1]);
    if (check_rank == 1) {
        for (int over = 0; !over;) MPI_Request_get_status(requests[1], &over, MPI_STATUS_IGNORE);
        MPI_Irecv(&from, 1, MPI_BYTE, 1, 4, MPI_COMM_WORLD, &requests[0]);
        MPI_Send(to, 2, MPI_BYTE, 1, 4, MPI_COMM_WORLD);
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, jumps);
        MPI_Comm_set_errhandler(MPI_COMM_SELF, jumps);
        heard = 0;
        jump_out_of_waitany(requests);
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
        MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
        CHECK(heard == 1, "the handler ran %d times", heard);
        CHECK(requests[1] != MPI_REQUEST_NULL, "the call has completed both");
    }
    fail(&requests[1]);
    MPI_Comm_free(&pair);
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, MPI_THREAD_SINGLE);
    MPI_Comm pair;
    MPI_Errhandler jumps;
    MPI_Request request;
    MPI_Comm_create_errhandler(jump, &jumps);
    beside_a_message(jumps);
    MPI_Comm_dup(MPI_COMM_WORLD, &pair);
    start_wrong(pair, &request);
    fail(&request);
    MPI_Comm_set_errhandler(pair, jumps);
    if (check_rank == 1) {
        heard = 0;
        jump_out_of_start(pair);
        CHECK(heard == 1, "the handler ran %d times", heard);
    }
    CHECK(memories() > 0, "no memory of the host is open");
    MPI_Errhandler_free(&jumps);
    check_end(); /* with `pair` still there */
    if (memories() == 0) return 0;
    fprintf(stderr, "rank %d: %d descriptors of ours are open behind MPI_Finalize\n", check_rank, memories());
    return 1;
}
