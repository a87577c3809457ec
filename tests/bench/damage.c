/* Preloaded: the last byte that MPI_Alltoallv received is flipped. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>

int PMPI_Alltoallv(const void* in, const int send_counts[], const int send_at[], MPI_Datatype send_type,
                   void* out, const int counts[], const int at[], MPI_Datatype type, MPI_Comm comm) {
    int (*native)(const void*, const int[], const int[], MPI_Datatype, void*, const int[], const int[],
                  MPI_Datatype, MPI_Comm);
    int (*size_of)(MPI_Comm, int*);
    *(void**)&native = dlsym(RTLD_NEXT, "PMPI_Alltoallv");
    *(void**)&size_of = dlsym(RTLD_NEXT, "PMPI_Comm_size");
    const int error = native(in, send_counts, send_at, send_type, out, counts, at, type, comm);
    int size = 0;
    size_of(comm, &size);
    if (size > 0 && counts[size - 1] > 0) ((unsigned char*)out)[at[size - 1] + counts[size - 1] - 1] ^= 1;
    return error;
}
