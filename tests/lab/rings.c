/* Allgathers on a grid of one dimension, each of whose ranks has a host with two links to itself, and what
 * the busiest link carried of them, headers and acknowledgements included. Every byte that arrives is
 * checked.
 */
#include "links.h"

enum { block = 64 << 10, first = 2, calls = 10 }; /* those before the first find their peers */

int main(int argc, char** argv) {
    check_start(&argc, &argv, MPI_THREAD_SINGLE);
    const int dims[1] = {check_size}, periods[1] = {1};
    const size_t all = (size_t)check_size * block;
    unsigned char* const sent = guarded_new(block);
    unsigned char* const got = guarded_new(all);
    unsigned long long bytes[2] = {0, 0}, busiest = 0;
    MPI_Comm grid;
    MPI_Request request;
    MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &grid);
    for (int call = 0; call < calls; ++call) {
        fill(sent, block, (unsigned)(100 * call + check_rank));
        memset(got, poison_value, all);
        MPI_Barrier(grid);
        if (call == first)
            for (int rail = 0; rail < 2; ++rail) bytes[rail] = sent_over(rail);
        MPI_Iallgather(sent, block, MPI_BYTE, got, block, MPI_BYTE, grid, &request);
        if (call >= first) CHECK(was_accelerated(), "call %d: %s", call, last_reason());
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (int rank = 0; rank < check_size; ++rank)
            verify(got + (size_t)rank * block, block, (unsigned)(100 * call + rank), "an allgather");
    }
    MPI_Barrier(MPI_COMM_WORLD); /* the others have all of it */
    for (int rail = 0; rail < 2; ++rail) bytes[rail] = sent_over(rail) - bytes[rail];
    if (bytes[0] < bytes[1]) bytes[0] = bytes[1];
    MPI_Reduce(bytes, &busiest, 1, MPI_UNSIGNED_LONG_LONG, MPI_MAX, 0, MPI_COMM_WORLD);
    if (check_rank == 0)
        printf("busiest %llu of %llu\n", busiest, (calls - first) * (check_size - 1ull) * block);
    MPI_Comm_free(&grid);
    guarded_free(sent, block);
    guarded_free(got, all);
    return check_end();
}
