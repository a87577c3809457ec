/* The MPI standard ABI under the name that every source includes. */
#ifndef THALWEG_ABI_MPI_H
#define THALWEG_ABI_MPI_H
#include <mpi_abi.h>
#endif
