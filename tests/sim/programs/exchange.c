/* What an exchange of all pairs takes whose ranks sleep until an instant of their shared clock, as those of
 * thalweg-bench do where they outnumber the cores, and what of it is whose: one line of JSON per size.
 * Everybody posts all receives and then all sends, both in the order of ranks. Seconds; of every figure the
 * least and the median of the rounds. last_begins: from the instant until the last rank runs; whole: until
 * the last rank is done; recv, send: of a core for posting one message, mean of a rank's and of the ranks. */
#include "instants.h"

enum { LAST_BEGINS, WHOLE, RECV, SEND, FIGURES, MOST_RANKS = 16, MOST_BYTES = 1 << 16, ROUNDS = 40 };

static int exchanges;

static void exchange(int rank, int size, int bytes, double* at) {
    static char in[MOST_RANKS][MOST_BYTES], out[MOST_RANKS][MOST_BYTES];
    MPI_Request requests[2 * MOST_RANKS];
    int count = 0;
    const int number = ++exchanges;
    for (int peer = 0; peer < size; ++peer) {
        memset(in[peer], letter(rank, peer, number), (size_t)bytes);
        memset(out[peer], -1, (size_t)bytes);
    }
    const double instant = agree_on_instant(MPI_COMM_WORLD);
    sleep_until(instant);
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
    for (int peer = 0; peer < size; ++peer)
        if (peer != rank) check(out[peer], bytes, letter(peer, rank, number));
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
