/* An error handler that jumps out of a call that starts an operation: nothing of ours stays held, so that
 * MPI_Finalize closes what all operations share, which is the memory of the host here. */
#include <dirent.h>

#include "check.h"
#include "jumping.h"

enum { sent = 1000 }; /* where less is expected */
static unsigned char data[sent];

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

/* Rank 1 expects less than comes. From then on it has no other operation on `pair`. */
static void fail(MPI_Comm pair) {
    MPI_Request request;
    MPI_Comm_set_errhandler(pair, MPI_ERRORS_RETURN);
    MPI_Ibcast(data, sent, MPI_BYTE, 0, pair, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Barrier(pair);
    MPI_Ibcast(data, check_rank == 1 ? sent / 2 : sent, MPI_BYTE, 0, pair, &request);
    CHECK(was_accelerated(), "a broadcast was declined: %s", last_reason());
    const int code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK((code != MPI_SUCCESS) == (check_rank == 1), "a broadcast: class %d", class_of(code));
}

static __attribute__((noinline)) void jump_out_of_start(MPI_Comm pair) {
    static MPI_Request request;
    if (setjmp(back) == 0) MPI_Ibcast(data, sent, MPI_BYTE, 0, pair, &request);
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, MPI_THREAD_SINGLE);
    MPI_Comm pair;
    MPI_Errhandler jumps = jumping_handler();
    MPI_Comm_dup(MPI_COMM_WORLD, &pair);
    fail(pair);
    MPI_Comm_set_errhandler(pair, jumps);
    if (check_rank == 1) {
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
