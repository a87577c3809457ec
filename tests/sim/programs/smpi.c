/* What sim/smpi.py runs under SMPI: times one operation, from a common start to the last rank's end.
 *
 *     program OPERATION BYTES     ping (half a round trip), bcast, allgather (bytes of a block), barrier
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void operate(const char* what, char* in, char* out, int bytes, int rank) {
    if (strcmp(what, "ping") == 0) {
        if (rank == 0) MPI_Send(out, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
        if (rank == 1) MPI_Recv(out, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (strcmp(what, "bcast") == 0) {
        MPI_Bcast(out, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
    } else if (strcmp(what, "allgather") == 0) {
        MPI_Allgather(in, bytes, MPI_BYTE, out, bytes, MPI_BYTE, MPI_COMM_WORLD);
    } else {
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

int main(int argc, char** argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const int bytes = argc > 2 ? atoi(argv[2]) : 0;
    char* in = malloc((size_t)bytes + 1);
    char* out = malloc((size_t)bytes * (size_t)size + 1);
    /* The clock of a simulation is common to all ranks: all sleep until the same time, because a barrier lets
       them go at different ones. */
    double start = MPI_Wtime(), last_start, end, last_end;
    MPI_Allreduce(&start, &last_start, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    const double left = last_start + 0.5 - MPI_Wtime();
    const struct timespec sleep = {0, (long)(left * 1e9)};
    nanosleep(&sleep, NULL);
    start = MPI_Wtime();
    operate(argv[1], in, out, bytes, rank);
    end = MPI_Wtime();
    MPI_Reduce(&start, &last_start, 1, MPI_DOUBLE, MPI_MIN, 0, MPI_COMM_WORLD);
    MPI_Reduce(&end, &last_end, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("%.12g\n", last_end - last_start);
    free(in);
    free(out);
    MPI_Finalize();
    return 0;
}
