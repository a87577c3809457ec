/* A program with a profiling library inside: its MPI_Init comes before that of anything preloaded. */
#include <mpi.h>

int MPI_Init(int* argc, char*** argv) { return PMPI_Init(argc, argv); }

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    return MPI_Finalize();
}
