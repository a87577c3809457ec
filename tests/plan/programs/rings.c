/* Grids whose periodic dimensions have two ranks, or one: both neighbours of a rank are the same rank. Some
 * MPI libraries put what comes from them elsewhere than the standard says. Whatever this one does, it does in
 * every call: blocks do not change places in the middle of a run, whoever runs the calls.
 *
 *     rings CALLS
 */
#include "check.h"

enum { dimensions = 2, blocks = 2 * dimensions, words = 512 };

/* By block, whose it is: rank * blocks + block of the sender. */
static int first[blocks], from[blocks][words], to[blocks][words];

static void call(MPI_Comm grid, int nonblocking) {
    for (int block = 0; block < blocks; ++block)
        for (int i = 0; i < words; ++i) {
            from[block][i] = check_rank * blocks + block;
            to[block][i] = -1;
        }
    if (nonblocking) {
        MPI_Request request;
        MPI_Ineighbor_alltoall(from, words, MPI_INT, to, words, MPI_INT, grid, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
        MPI_Neighbor_alltoall(from, words, MPI_INT, to, words, MPI_INT, grid);
    }
}

static void repeat(int height, int nonblocking, int calls) {
    int dims[dimensions] = {height, check_size / height}, periods[dimensions] = {1, 1};
    MPI_Comm grid;
    MPI_Cart_create(MPI_COMM_WORLD, dimensions, dims, periods, 0, &grid);
    for (int k = 0; k < calls; ++k) {
        call(grid, nonblocking);
        for (int block = 0; block < blocks; ++block) {
            if (k == 0) first[block] = to[block][0];
            for (int i = 0; i < words; ++i)
                CHECK(to[block][i] == first[block],
                      "a grid of %d times %d, call %d: block %d, byte %d is wrong: %d, in the first call %d",
                      dims[0], dims[1], k, block, 4 * i, to[block][i], first[block]);
        }
        /* Here a communicator is set up for what does not block. */
        if (k % 4 == 0) MPI_Barrier(grid);
        if (k % 4 == 2) MPI_Bcast(from, words, MPI_INT, 0, grid);
    }
    MPI_Comm_free(&grid);
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, MPI_THREAD_SINGLE);
    const int calls = argc > 1 ? atoi(argv[1]) : 40;
    for (int nonblocking = 0; nonblocking < 2; ++nonblocking) {
        repeat(check_size % 2 == 0 ? 2 : 1, nonblocking, calls);
        repeat(1, nonblocking, calls);
    }
    return check_end();
}
