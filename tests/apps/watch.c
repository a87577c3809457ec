/* Put in front of a program by LD_PRELOAD: counts its calls of the functions below, and damages what it
 * receives where WATCH_DAMAGE names a function: from the third call on, one bit of the last bytes that rank 0
 * received. Prints at the end, on rank 0: "calls MPI_Allgather 12" and so on. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { allgather, iallgather, test, wait, alltoallv, watched };
static const char* const names[watched] = {"MPI_Allgather", "MPI_Iallgather", "MPI_Test", "MPI_Wait",
                                           "MPI_Alltoallv"};
static long calls[watched];

enum { damage_from = 3 };

static int damages(int function) {
    const char* const name = getenv("WATCH_DAMAGE");
    int rank = 1;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank == 0 && name != NULL && strcmp(name, names[function]) == 0 && calls[function] >= damage_from;
}

int MPI_Allgather(const void* send, int count, MPI_Datatype type, void* receive, int receive_count,
                  MPI_Datatype receive_type, MPI_Comm comm) {
    ++calls[allgather];
    int code = PMPI_Allgather(send, count, type, receive, receive_count, receive_type, comm);
    if (damages(allgather)) {
        /* A high bit of the mantissa of the last double of the last rank. */
        int ranks = 1, size = 1;
        PMPI_Comm_size(comm, &ranks);
        PMPI_Type_size(receive_type, &size);
        ((unsigned char*)receive)[(size_t)ranks * (size_t)receive_count * (size_t)size - 2] ^= 4;
    }
    return code;
}

int MPI_Iallgather(const void* send, int count, MPI_Datatype type, void* receive, int receive_count,
                   MPI_Datatype receive_type, MPI_Comm comm, MPI_Request* request) {
    ++calls[iallgather];
    return PMPI_Iallgather(send, count, type, receive, receive_count, receive_type, comm, request);
}

int MPI_Test(MPI_Request* request, int* done, MPI_Status* status) {
    ++calls[test];
    return PMPI_Test(request, done, status);
}

int MPI_Wait(MPI_Request* request, MPI_Status* status) {
    ++calls[wait];
    return PMPI_Wait(request, status);
}

int MPI_Alltoallv(const void* send, const int send_counts[], const int send_at[], MPI_Datatype type,
                  void* receive, const int receive_counts[], const int receive_at[],
                  MPI_Datatype receive_type, MPI_Comm comm) {
    ++calls[alltoallv];
    int code = PMPI_Alltoallv(send, send_counts, send_at, type, receive, receive_counts, receive_at,
                              receive_type, comm);
    if (damages(alltoallv)) *(unsigned char*)receive ^= 1;
    return code;
}

int MPI_Finalize(void) {
    int rank = 0;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; rank == 0 && i < watched; i++) printf("calls %s %ld\n", names[i], calls[i]);
    fflush(stdout);
    return PMPI_Finalize();
}
