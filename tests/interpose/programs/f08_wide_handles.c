/* Intel MPI's mpi_f08 for the standard ABI, whose handles have eight bytes, called as Intel's compilers call
 * it: broadcasts and barriers that do not block. Thalweg once took the handles for four bytes, and the
 * program ended in MPI_Wait. No more than that, because the library itself ends in some other calls.
 *
 *     f08_wide_handles [c]    c: C starts MPI, so that Thalweg is there, and sets the communicator up
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>

/* A descriptor of an array as Intel Fortran passes it ("Handle Fortran Array Descriptors" in its guide). */
typedef struct Descriptor {
    void* base;
    intptr_t element_bytes, offset, flags, rank, reserved, extent, stride_bytes, lower_bound;
} Descriptor;

void mpi_init_thread_f08_(int* required, int* provided, int* error);
void mpi_finalize_f08_(int* error);
void mpi_comm_rank_f08_(intptr_t* comm, int* rank, int* error);
void mpi_barrier_f08_(intptr_t* comm, int* error);
void mpi_ibarrier_f08_(intptr_t* comm, intptr_t* request, int* error);
void mpi_wait_f08_(intptr_t* request, MPI_Status* status, int* error);
void mpi_ibcast_f08ts_(Descriptor*, int* count, intptr_t* type, int* root, intptr_t* comm, intptr_t* request,
                       int* error);

enum { n = 1000, at_once = 4, rounds = 4 };
static int data[at_once][n];

int main(int argc, char** argv) {
    int level = MPI_THREAD_MULTIPLE, provided, rank, error, count = n, root = 0, wrong = 0;
    intptr_t world = (intptr_t)MPI_COMM_WORLD, type = (intptr_t)MPI_INT, requests[at_once + 1];
    MPI_Status status;
    const int starts_in_c = argc > 1;
    if (starts_in_c) {
        MPI_Init_thread(&argc, &argv, level, &provided);
        MPI_Bcast(data, at_once * n, MPI_INT, root, MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
    } else {
        mpi_init_thread_f08_(&level, &provided, &error);
    }
    mpi_comm_rank_f08_(&world, &rank, &error);
    for (int round = 0; round < rounds; ++round) {
        for (int k = 0; k < at_once; ++k) {
            for (int i = 0; i < n; ++i) data[k][i] = rank == root ? i + k + round : -1;
            Descriptor whole = {data[k], sizeof(int), 0, 0, 1, 0, n, sizeof(int), 1};
            mpi_ibcast_f08ts_(&whole, &count, &type, &root, &world, &requests[k], &error);
        }
        requests[at_once] = INTPTR_MAX; /* half a handle is none */
        mpi_ibarrier_f08_(&world, &requests[at_once], &error);
        for (int k = 0; k <= at_once; ++k) {
            mpi_wait_f08_(&requests[k], &status, &error);
            wrong += error != 0 || requests[k] != (intptr_t)MPI_REQUEST_NULL;
        }
        for (int k = 0; k < at_once; ++k)
            for (int i = 0; i < n; ++i) wrong += data[k][i] != i + k + round;
        mpi_barrier_f08_(&world, &error); /* where ours would be set up */
        if (starts_in_c) MPI_Barrier(MPI_COMM_WORLD);
    }
    if (wrong) printf("rank %d wrong %d\n", rank, wrong);
    if (rank == 0 && !wrong) printf("done\n");
    if (starts_in_c)
        MPI_Finalize();
    else
        mpi_finalize_f08_(&error);
    return wrong != 0;
}
