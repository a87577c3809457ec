/* What sets a communicator up, while one call of the MPI library fails on one rank (faults.c): all ranks go
 * on natively, or the job ends with MPI's error. It never hangs, and no byte is wrong.
 *
 * "split" instead: the program's own MPI_Comm_split fails on one rank, and the error is returned. */
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

int main(int argc, char** argv) {
    check_start(&argc, &argv, MPI_THREAD_SINGLE);
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
    return check_end();
}
