/* Preloaded: the last byte that MPI_Alltoallv or MPI_Neighbor_alltoallw (on a distributed graph) received is
 * flipped, and that of the first MPI_Bcast of 3000 bytes, which a bench makes before it takes any sample.
 *
 * With BENCH_DAMAGE_ELSEWHERE=N the N-th MPI_Neighbor_alltoallw flips a byte in the middle of the array,
 * which no face of a grid that does not go round has, and nothing else is flipped.
 *
 * With BENCH_REFUSES_CONTROLS set no control variable can be written, as many of Open MPI 4.1.4's. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdlib.h>

int MPI_T_cvar_write(MPI_T_cvar_handle handle, const void* value) {
    int (*native)(MPI_T_cvar_handle, const void*);
    *(void**)&native = dlsym(RTLD_NEXT, "MPI_T_cvar_write");
    return getenv("BENCH_REFUSES_CONTROLS") != NULL ? MPI_T_ERR_CVAR_SET_NEVER : native(handle, value);
}

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

int PMPI_Neighbor_alltoallw(const void* in, const int send_counts[], const MPI_Aint send_at[],
                            const MPI_Datatype send_types[], void* out, const int counts[],
                            const MPI_Aint at[], const MPI_Datatype types[], MPI_Comm comm) {
    int (*native)(const void*, const int[], const MPI_Aint[], const MPI_Datatype[], void*, const int[],
                  const MPI_Aint[], const MPI_Datatype[], MPI_Comm);
    int (*degrees_of)(MPI_Comm, int*, int*, int*);
    int (*extent_of)(MPI_Datatype, MPI_Aint*, MPI_Aint*);
    *(void**)&native = dlsym(RTLD_NEXT, "PMPI_Neighbor_alltoallw");
    *(void**)&degrees_of = dlsym(RTLD_NEXT, "PMPI_Dist_graph_neighbors_count");
    *(void**)&extent_of = dlsym(RTLD_NEXT, "PMPI_Type_get_true_extent");
    const int error = native(in, send_counts, send_at, send_types, out, counts, at, types, comm);
    int from = 0, to = 0, weighted = 0;
    degrees_of(comm, &from, &to, &weighted);
    const char* const elsewhere = getenv("BENCH_DAMAGE_ELSEWHERE");
    if (elsewhere != NULL) {
        static int calls;
        if (++calls != atoi(elsewhere) || from == 0) return error;
        MPI_Aint begin = 0, extent = 0;
        *(void**)&extent_of = dlsym(RTLD_NEXT, "PMPI_Type_get_extent");
        extent_of(types[0], &begin, &extent);
        ((unsigned char*)out)[extent / 2] ^= 1;
    } else if (from > 0) {
        MPI_Aint begin = 0, extent = 0;
        extent_of(types[from - 1], &begin, &extent);
        ((unsigned char*)out)[at[from - 1] + begin + extent - 1] ^= 1;
    }
    return error;
}

int PMPI_Bcast(void* data, int count, MPI_Datatype type, int root, MPI_Comm comm) {
    static int damaged;
    int (*native)(void*, int, MPI_Datatype, int, MPI_Comm);
    int (*size_of)(MPI_Datatype, int*); /* MPI_BYTE is an object of Open MPI's, and the command has no MPI */
    *(void**)&native = dlsym(RTLD_NEXT, "PMPI_Bcast");
    *(void**)&size_of = dlsym(RTLD_NEXT, "PMPI_Type_size");
    const int error = native(data, count, type, root, comm);
    int size = 0;
    if (count == 3000 && !damaged && size_of(type, &size) == MPI_SUCCESS && size == 1) {
        damaged = 1;
        ((unsigned char*)data)[count - 1] ^= 1;
    }
    return error;
}
