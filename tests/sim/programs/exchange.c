/* What an exchange of all pairs takes whose ranks sleep until an instant of their shared clock, as those of
 * thalweg-bench do where they outnumber the cores, and what of it is whose: one line of JSON per size.
 * Everybody posts all receives and then all sends, both in the order of ranks. Seconds; of every figure the
 * least and the median of the rounds. last_begins: from the instant until the last rank runs; whole: until
 * the last rank is done; recv, send: of a core for posting one message, mean of a rank's and of the ranks. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { LAST_BEGINS, WHOLE, RECV, SEND, FIGURES, MOST_RANKS = 16, MOST_BYTES = 1 << 16, ROUNDS = 40 };

static double seconds_of(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int ascending(const void* a, const void* b) {
    const double x = *(const double*)a, y = *(const double*)b;
    return (x > y) - (x < y);
}

static void nap_until_complete(MPI_Request* request) {
    for (int done = 0; !done; done || usleep(200)) MPI_Test(request, &done, MPI_STATUS_IGNORE);
}

static double agree_on_instant(void) {
    MPI_Request request;
    double instant;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    nap_until_complete(&request);
    instant = seconds_of(CLOCK_MONOTONIC) + 0.006;
    MPI_Iallreduce(MPI_IN_PLACE, &instant, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD, &request);
    nap_until_complete(&request);
    return instant;
}

static void exchange(int rank, int size, int bytes, double* at) {
    static char in[MOST_RANKS][MOST_BYTES], out[MOST_RANKS][MOST_BYTES];
    MPI_Request requests[2 * MOST_RANKS];
    int count = 0;
    const double instant = agree_on_instant();
    const struct timespec until = {(time_t)instant, (long)((instant - (double)(time_t)instant) * 1e9)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) != 0) {
    }
    at[LAST_BEGINS] = seconds_of(CLOCK_MONOTONIC) - instant;
    double begin = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
    for (int peer = 0; peer < size; ++peer)
        if (peer != rank) MPI_Irecv(out[peer], bytes, MPI_BYTE, peer, 0, MPI_COMM_WORLD, &requests[count++]);
    at[RECV] = (seconds_of(CLOCK_PROCESS_CPUTIME_ID) - begin) / (size - 1);
    begin = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
    for (int peer = 0; peer < size; ++peer)
        if (peer != rank) MPI_Isend(in[peer], bytes, MPI_BYTE, peer, 0, MPI_COMM_WORLD, &requests[count++]);
    at[SEND] = (seconds_of(CLOCK_PROCESS_CPUTIME_ID) - begin) / (size - 1);
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    at[WHOLE] = seconds_of(CLOCK_MONOTONIC) - instant;
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    const char* names[FIGURES] = {"last_begins", "whole", "recv", "send"};
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int bytes = 256; bytes <= MOST_BYTES && size <= MOST_RANKS; bytes *= bytes < 16384 ? 4 : 2) {
        double figures[FIGURES][ROUNDS];
        for (int round = 0; round < ROUNDS; ++round) {
            double at[FIGURES], most[FIGURES], sum[FIGURES];
            MPI_Request request;
            exchange(rank, size, bytes, at);
            MPI_Ibarrier(MPI_COMM_WORLD, &request);
            nap_until_complete(&request);
            MPI_Allreduce(at, most, FIGURES, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
            MPI_Allreduce(at, sum, FIGURES, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
            for (int i = 0; i < FIGURES; ++i)
                figures[i][round] = i == RECV || i == SEND ? sum[i] / size : most[i];
        }
        if (rank != 0) continue;
        printf("{\"bytes\": %d", bytes);
        for (int i = 0; i < FIGURES; ++i) {
            qsort(figures[i], ROUNDS, sizeof(double), ascending);
            printf(", \"%s_seconds\": [%.7f, %.7f]", names[i], figures[i][0], figures[i][ROUNDS / 2]);
        }
        printf("}\n");
        fflush(stdout);
    }
    MPI_Finalize();
    return 0;
}
