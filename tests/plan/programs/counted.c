/* A known number of nonblocking operations of each kind; report.py looks for them in the report. */
#include <unistd.h>

#include "check.h"

static void add(void* in, void* inout, int* count, MPI_Datatype* type) {
    (void)type;
    for (int i = 0; i < *count; ++i) ((int*)inout)[i] += ((int*)in)[i];
}

int main(int argc, char** argv) {
    enum { bytes = 100000 };
    check_start(&argc, &argv, wanted_level());
    unsigned char* const data = guarded_new(bytes);
    unsigned char* const all = guarded_new((size_t)bytes * (size_t)check_size);
    MPI_Request request;
    MPI_Op own;
    int value = check_rank, sum = 0;
    MPI_Op_create(add, 1, &own);
    for (int i = 0; i < 6; ++i) {
        MPI_Ibarrier(MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (i == 0) MPI_Barrier(MPI_COMM_WORLD);
    }
    for (int i = 0; i < 4; ++i) {
        MPI_Ibcast(data, bytes, MPI_BYTE, 0, MPI_COMM_WORLD, &request);
        usleep(2000);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    for (int i = 0; i < 3; ++i) {
        MPI_Iallgather(data, bytes, MPI_BYTE, all, bytes, MPI_BYTE, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    for (int i = 0; i < 2; ++i) {
        MPI_Iallreduce(&value, &sum, 1, MPI_INT, own, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Op_free(&own);
    guarded_free(data, bytes);
    guarded_free(all, (size_t)bytes * (size_t)check_size);
    return check_end();
}
