/* A library that uses MPI on behalf of a program that does not know of it. */
#include <mpi.h>

int use_mpi(void);

int use_mpi(void) {
    int initialized = 0;
    MPI_Initialized(&initialized);
    return initialized;
}
