/* Times native broadcasts: one JSON line per size. broadcast_time SAMPLES BYTES… ; the time of a call is that
   of its slowest rank, from a common barrier. Every byte is checked. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int compare(const void* a, const void* b) {
    const double x = *(const double*)a, y = *(const double*)b;
    return (x > y) - (x < y);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank, wrong = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const int samples = argc > 1 ? atoi(argv[1]) : 5;
    double* seconds = malloc(sizeof(double) * samples);
    for (int arg = 2; arg < argc; ++arg) {
        const int bytes = atoi(argv[arg]);
        unsigned char* buffer = malloc(bytes);
        for (int sample = -1; sample < samples; ++sample) { /* the first one warms up */
            for (int i = 0; i < bytes; ++i) buffer[i] = rank ? 0xAA : (unsigned char)(i * 7 + sample);
            MPI_Barrier(MPI_COMM_WORLD);
            const double start = MPI_Wtime();
            MPI_Bcast(buffer, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
            double mine = MPI_Wtime() - start, slowest;
            MPI_Reduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
            for (int i = 0; i < bytes; ++i) wrong |= buffer[i] != (unsigned char)(i * 7 + sample);
            if (sample >= 0) seconds[sample] = slowest;
        }
        free(buffer);
        if (rank == 0) {
            qsort(seconds, samples, sizeof(double), compare);
            printf("{\"bytes\": %d, \"samples\": %d, \"min_s\": %.9f, \"median_s\": %.9f}\n", bytes, samples,
                   seconds[0], seconds[samples / 2]);
            fflush(stdout);
        }
    }
    int any = 0;
    MPI_Reduce(&wrong, &any, 1, MPI_INT, MPI_LOR, 0, MPI_COMM_WORLD);
    if (any) fprintf(stderr, "broadcast_time: wrong bytes\n");
    free(seconds);
    MPI_Finalize();
    return any;
}
