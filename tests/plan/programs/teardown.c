/* Ways to end, with what Thalweg has alive at the end: its thread, a plan, communicators, requests. None of
 * them hangs, and the job ends as it does without us (same.py).
 *
 *   unfreed     MPI_Finalize with a plan that was never freed, and with communicators
 *   exit        exit() without MPI_Finalize, nothing pending
 *   pending     exit() without MPI_Finalize, in the middle of an operation
 *   abort       MPI_Abort in the middle of an operation
 *   children [descriptors]    children that leave by exit(), run another program, or are asked how many
 *                             descriptors they were given
 */
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { bytes = 400000 };

typedef int AllgatherInit(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, MPI_Comm, MPI_Info,
                          MPI_Request*);

static unsigned char *own, *all;

static void start(MPI_Comm comm, MPI_Request* request) {
    fill(own, bytes, (unsigned)check_rank);
    MPI_Iallgather(own, bytes, MPI_BYTE, all, bytes, MPI_BYTE, comm, request);
    if (expect_thalweg()) CHECK(was_accelerated(), "native: %s", last_reason());
}

static void end(MPI_Request* request) {
    MPI_Wait(request, MPI_STATUS_IGNORE);
    for (int rank = 0; rank < check_size; ++rank)
        verify(all + (size_t)rank * bytes, bytes, (unsigned)rank, "an allgather");
}

static void unfreed(void) {
    AllgatherInit* init;
    *(void**)&init = dlsym(RTLD_DEFAULT, "MPI_Allgather_init");
    MPI_Comm twin, half;
    MPI_Comm_dup(MPI_COMM_WORLD, &twin);
    MPI_Comm_split(MPI_COMM_WORLD, check_rank % 2, 0, &half);
    MPI_Request request;
    MPI_Ibarrier(twin, &request); /* asks for the set-up, */
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Barrier(twin); /* and gives the place for it */
    MPI_Barrier(half);
    start(twin, &request);
    end(&request);
    if (init == NULL) return;
    init(own, bytes, MPI_BYTE, all, bytes, MPI_BYTE, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    if (!expect_thalweg()) return; /* those of old libraries are not ours to judge */
    CHECK(was_accelerated(), "native: %s", last_reason());
    for (int i = 0; i < 3; ++i) {
        MPI_Start(&request);
        end(&request);
    }
}

static int status_of(pid_t child) {
    int status = -1;
    CHECK(child > 0 && waitpid(child, &status, 0) == child, "no child");
    CHECK(WIFEXITED(status), "a child ended with %x", (unsigned)status);
    return WEXITSTATUS(status);
}

/* Descriptors that another program inherits; what the launcher and MPI leave open are counted too. */
static int inherited(void) {
    int lines = 0;
    FILE* const listing = popen("ls /proc/self/fd", "r");
    for (int c; (c = fgetc(listing)) != EOF;) lines += c == '\n';
    pclose(listing);
    return lines;
}

static void children(int counts) {
    MPI_Request request;
    start(MPI_COMM_WORLD, &request);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) exit(7);
    CHECK(status_of(child) == 7, "a child that calls exit()");
    child = fork();
    if (child == 0) {
        execl("/bin/sh", "sh", "-c", "exit 9", (char*)NULL);
        _exit(1);
    }
    CHECK(status_of(child) == 9, "a child that runs another program");
    if (check_rank == 0 && counts) printf("%d descriptors are inherited\n", inherited());
    end(&request);
    start(MPI_COMM_WORLD, &request);
    end(&request);
}

int main(int argc, char** argv) {
    const char* const way = argc > 1 ? argv[1] : "unfreed";
    check_start(&argc, &argv, wanted_level());
    own = guarded_new(bytes);
    all = guarded_new((size_t)bytes * (size_t)check_size);
    MPI_Request request;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    start(MPI_COMM_WORLD, &request);
    end(&request);
    if (strcmp(way, "unfreed") == 0) {
        unfreed();
        return check_end();
    }
    if (strcmp(way, "children") == 0) {
        children(argc > 2);
        return check_end();
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (strcmp(way, "exit") != 0) start(MPI_COMM_WORLD, &request);
    if (strcmp(way, "abort") == 0 && check_rank == check_size - 1) MPI_Abort(MPI_COMM_WORLD, 3);
    if (strcmp(way, "abort") == 0) end(&request);
    exit(5);
}
