/* MPI behind a library: a plugin linked with MPI, which loader.c opens with RTLD_LOCAL, as Python opens its
 * modules. */
#include <mpi.h>
#include <stdio.h>

int plugin_main(void) {
    int rank, size, wrong = 0;
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    static char data[70000];
    for (int round = 0; round < 5; ++round) {
        for (int i = 0; i < 70000; ++i) data[i] = (char)(rank == 0 ? i * 7 + round : 0);
        MPI_Bcast(data, 70000, MPI_CHAR, 0, MPI_COMM_WORLD);
        for (int i = 0; i < 70000; ++i) wrong += data[i] != (char)(i * 7 + round);
    }
    MPI_Finalize();
    if (rank == 0 && !wrong) printf("done on %d ranks\n", size);
    return wrong != 0;
}
