/* Preloaded in front of an MPI: every broadcast is delivered wrong on the receivers, in the way that SABOTAGE
 * names. The examples must notice; a program that does not is no test of anything. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

static void damage(void* buffer, MPI_Aint bytes, int root, MPI_Comm comm, const char* mode, void* before) {
    unsigned char* data = buffer;
    int rank;
    PMPI_Comm_rank(comm, &rank);
    /* Short messages carry lengths (mpi4py's pickles): damaging those would hang, not be noticed. */
    if (rank == root || bytes < 16) return;
    if (strcmp(mode, "flip") == 0) data[bytes - 1] ^= 1;                 /* the last bit of the last byte */
    if (strcmp(mode, "stale") == 0) memcpy(data, before, (size_t)bytes); /* nothing arrived */
    if (strcmp(mode, "swap") == 0) {                                     /* two halves exchanged */
        size_t half = (size_t)bytes / 2;
        memcpy(before, data, half);
        memmove(data, data + half, half);
        memcpy(data + half, before, half);
    }
    if (strcmp(mode, "overrun") == 0) data[bytes] ^= 1; /* one byte too far */
}

static MPI_Aint size_of(MPI_Count count, MPI_Datatype type) {
    MPI_Aint low, extent;
    PMPI_Type_get_extent(type, &low, &extent);
    return (MPI_Aint)count * extent;
}

static int sabotage(void* buffer, MPI_Count count, MPI_Datatype type, int root, MPI_Comm comm,
                    int (*real)(void*, MPI_Count, MPI_Datatype, int, MPI_Comm)) {
    const char* mode = getenv("SABOTAGE");
    MPI_Aint bytes = size_of(count, type);
    void* before = malloc((size_t)bytes + 1);
    if (!before) abort();
    memcpy(before, buffer, (size_t)bytes);
    int error = real(buffer, count, type, root, comm);
    if (mode && error == MPI_SUCCESS) damage(buffer, bytes, root, comm, mode, before);
    free(before);
    return error;
}

static int real_int(void* buffer, MPI_Count count, MPI_Datatype type, int root, MPI_Comm comm) {
    return PMPI_Bcast(buffer, (int)count, type, root, comm);
}

int MPI_Bcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm) {
    return sabotage(buffer, count, type, root, comm, real_int);
}

#if MPI_VERSION >= 4
static int real_count(void* buffer, MPI_Count count, MPI_Datatype type, int root, MPI_Comm comm) {
    return PMPI_Bcast_c(buffer, count, type, root, comm);
}

int MPI_Bcast_c(void* buffer, MPI_Count count, MPI_Datatype type, int root, MPI_Comm comm) {
    return sabotage(buffer, count, type, root, comm, real_count);
}
#endif
