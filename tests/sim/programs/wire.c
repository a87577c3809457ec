/* What a library does with two large messages at once, and with an answer to the first of them: rank 0 sends
 * A and B to rank 1, which sends as much back as soon as A is there. One line of JSON per size, seconds since
 * both left a barrier, the least of several rounds: when A and B are at rank 1, when rank 0 may go on from
 * its sends, when it has the answer. Times of two ranks are compared: both must read one clock, as hosts of
 * the lab do. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { A, B, SENT, ANSWERED, TIMES, ROUNDS = 9 };

static void ask(char* a, char* b, char* back, int bytes, double begin, double* at) {
    MPI_Request answer, sends[2];
    MPI_Irecv(back, bytes, MPI_BYTE, 1, 2, MPI_COMM_WORLD, &answer);
    MPI_Isend(a, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &sends[0]);
    MPI_Isend(b, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &sends[1]);
    MPI_Waitall(2, sends, MPI_STATUSES_IGNORE);
    at[SENT] = MPI_Wtime() - begin;
    MPI_Wait(&answer, MPI_STATUS_IGNORE);
    at[ANSWERED] = MPI_Wtime() - begin;
}

static void answer(char* a, char* b, int bytes, double begin, double* at) {
    MPI_Request recvs[2], back = MPI_REQUEST_NULL;
    MPI_Irecv(a, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &recvs[0]);
    MPI_Irecv(b, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &recvs[1]);
    for (int done = 0; done < 2; ++done) {
        int which;
        MPI_Waitany(2, recvs, &which, MPI_STATUS_IGNORE);
        at[which] = MPI_Wtime() - begin;
        if (which == A) MPI_Isend(a, bytes, MPI_BYTE, 0, 2, MPI_COMM_WORLD, &back);
    }
    MPI_Wait(&back, MPI_STATUS_IGNORE);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const int most = 1 << 19;
    char *a = calloc(most, 1), *b = calloc(most, 1), *back = calloc(most, 1);
    for (int bytes = 1 << 15; bytes <= most; bytes *= 2) {
        double least[TIMES] = {1e9, 1e9, 1e9, 1e9};
        for (int round = 0; round < ROUNDS; ++round) {
            double at[TIMES] = {0, 0, 0, 0}, all[TIMES];
            MPI_Barrier(MPI_COMM_WORLD);
            usleep(20000); /* the shaper's bucket is full again */
            MPI_Barrier(MPI_COMM_WORLD);
            const double begin = MPI_Wtime();
            if (rank == 0) ask(a, b, back, bytes, begin, at);
            if (rank == 1) answer(a, b, bytes, begin, at);
            MPI_Allreduce(at, all, TIMES, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
            for (int i = 0; i < TIMES && round > 0; ++i) least[i] = all[i] < least[i] ? all[i] : least[i];
        }
        if (rank == 0)
            printf(
                "{\"bytes\": %d, \"first_seconds\": %.6f, \"second_seconds\": %.6f, \"sent_seconds\": %.6f, "
                "\"answered_seconds\": %.6f}\n",
                bytes, least[A], least[B], least[SENT], least[ANSWERED]);
    }
    MPI_Finalize();
    return 0;
}
