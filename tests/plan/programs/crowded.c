/* Four threads of each rank are in collectives, each on a communicator of its own, where all of them share a
 * few cores: a thread that waits in ours must neither keep a core from those that it waits for nor hear late
 * what came for it. By turns the same calls are the native library's and ours; ours take no longer than a few
 * times as long. Every result is checked, and where the environment asks for an algorithm that ours are.
 *
 * crowded [ROUNDS [FACTOR]]
 */
#include <pthread.h>

#include "check.h"

enum { threads = 4, most_bytes = 32768, most_attempts = 10, turns = 3 };

static const char* const variables[] = {"THALWEG_BCAST", "THALWEG_ALLGATHER", "THALWEG_ALLREDUCE",
                                        "THALWEG_ALLTOALLV"};
static const int sizes[] = {8, 512, 8192, most_bytes};
static int rounds = 10;
static int natively; /* whose turn it is */

struct Worker {
    MPI_Comm comm;
    int index;
    unsigned char *in, *out;
    pthread_t thread;
};

static void verify_blocks(const struct Worker* worker, int bytes, unsigned round, const char* what) {
    for (int from = 0; from < check_size; ++from)
        for (int at = 0; at<bytes; at += bytes> 64 ? bytes - 1 : 1)
            if (worker->out[(size_t)from * (size_t)bytes + (size_t)at] !=
                pattern((size_t)at, round + (unsigned)from))
                FAIL("%s, thread %d, round %u: byte %d of rank %d is wrong", what, worker->index, round, at,
                     from);
}

/* What all ranks receive from this one. */
static void fill_block(const struct Worker* worker, int bytes, unsigned round) {
    fill(worker->in, (size_t)bytes, round + (unsigned)check_rank);
    memset(worker->out, poison_value, (size_t)bytes * (size_t)check_size);
}

static void run_round(const struct Worker* worker, int bytes, unsigned round) {
    const MPI_Comm comm = worker->comm;
    MPI_Request request;
    fill_block(worker, bytes, round);
    const uint64_t seen = looked_at();
    MPI_Allgather(worker->in, bytes, MPI_BYTE, worker->out, bytes, MPI_BYTE, comm);
    if (expect_thalweg() && !natively && getenv("THALWEG_ALLGATHER") != NULL &&
        (looked_at() == seen || !was_accelerated()))
        FAIL("an allgather, thread %d, round %u, is native: %s", worker->index, round, last_reason());
    verify_blocks(worker, bytes, round, "an allgather");

    fill_block(worker, bytes, round + 1);
    MPI_Iallgather(worker->in, bytes, MPI_BYTE, worker->out, bytes, MPI_BYTE, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    verify_blocks(worker, bytes, round + 1, "an iallgather");

    for (int to = 0; to < check_size; ++to)
        fill(worker->in + (size_t)to * (size_t)bytes, (size_t)bytes, round + 2 + (unsigned)check_rank);
    memset(worker->out, poison_value, (size_t)bytes * (size_t)check_size);
    MPI_Alltoall(worker->in, bytes, MPI_BYTE, worker->out, bytes, MPI_BYTE, comm);
    verify_blocks(worker, bytes, round + 2, "an alltoall");

    const int root = (int)(round % (unsigned)check_size);
    memset(worker->out, poison_value, (size_t)bytes);
    if (check_rank == root) fill(worker->out, (size_t)bytes, round);
    MPI_Bcast(worker->out, bytes, MPI_BYTE, root, comm);
    verify(worker->out, (size_t)bytes, round, "a broadcast");

    const int count = bytes / (int)sizeof(int);
    int *const own = (int*)worker->in, *const sums = (int*)worker->out;
    for (int i = 0; i < count; ++i) own[i] = check_rank + i + (int)round;
    MPI_Allreduce(own, sums, count, MPI_INT, MPI_SUM, comm);
    for (int i = 0; i < count; ++i)
        if (sums[i] != check_size * (i + (int)round) + check_size * (check_size - 1) / 2)
            FAIL("an allreduce, thread %d, round %u: sum %d is wrong, byte 0", worker->index, round, i);
    MPI_Barrier(comm);
}

static void* work(void* argument) {
    const struct Worker* const worker = argument;
    for (int round = 0; round < rounds; ++round)
        run_round(worker, sizes[round % 4], (unsigned)(round * threads + worker->index));
    return NULL;
}

static double seconds_of(struct Worker* workers) {
    double longest = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = seconds_now();
    for (int i = 1; i < threads; ++i) pthread_create(&workers[i].thread, NULL, work, &workers[i]);
    work(&workers[0]);
    for (int i = 1; i < threads; ++i) pthread_join(workers[i].thread, NULL);
    const double spent = seconds_now() - begin;
    MPI_Allreduce(&spent, &longest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return longest;
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, MPI_THREAD_MULTIPLE);
    if (argc > 1) rounds = atoi(argv[1]);
    const double factor = argc > 2 ? atof(argv[2]) : 3, slack = 0.2;
    struct Worker workers[threads];
    for (int i = 0; i < threads; ++i) {
        workers[i].index = i;
        workers[i].in = malloc((size_t)most_bytes * (size_t)check_size);
        workers[i].out = malloc((size_t)most_bytes * (size_t)check_size);
        MPI_Comm_dup(MPI_COMM_WORLD, &workers[i].comm);
    }
    char asked[4][64];
    for (int i = 0; i < 4; ++i) {
        const char* const text = getenv(variables[i]);
        snprintf(asked[i], sizeof asked[i], "%s", text != NULL ? text : "auto");
    }
    double native[turns], ours[turns];
    int slow = 1;
    seconds_of(workers); /* set up */
    for (int attempt = 0; slow && attempt < most_attempts;
         ++attempt) { /* others may be busy on this machine */
        for (int turn = 0; turn < turns; ++turn) {
            for (int i = 0; i < 4; ++i) set_option(variables[i], "native");
            natively = 1;
            native[turn] = seconds_of(workers);
            for (int i = 0; i < 4; ++i) set_option(variables[i], asked[i]);
            natively = 0;
            ours[turn] = seconds_of(workers);
        }
        const double by_them = median(native, turns), by_us = median(ours, turns);
        slow = by_us > factor * by_them + slack;
        if (check_rank == 0)
            printf(
                "%d threads of each rank: %.3f s (%.3f to %.3f), the native library %.3f s (%.3f to %.3f)\n",
                threads, by_us, ours[0], ours[turns - 1], by_them, native[0], native[turns - 1]);
    }
    CHECK(!slow, "threads that share their cores wait too long for one another");
    for (int i = 0; i < threads; ++i) {
        MPI_Comm_free(&workers[i].comm);
        free(workers[i].in);
        free(workers[i].out);
    }
    return check_end();
}
