/* The smallest MPI program with a broadcast. */
#include <mpi.h>

int main(int argc, char** argv) {
    int value = 1;
    MPI_Init(&argc, &argv);
    MPI_Bcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Finalize();
    return value == 1 ? 0 : 1;
}
