/* Neighbourhood exchanges that are called again and again with the same arguments, and with arguments that
 * only look the same: datatypes that were freed and made anew with other strides, in the same variable and
 * perhaps with the same handle; buffers that were freed and allocated again; more different calls than are
 * kept; a communicator that is freed while a call is pending.
 *
 *     again [traps]   a call like the one before makes no datatype
 */
#include "algorithm_wanted.h"
#include "set_up_calls.h"

enum { columns = 5, rows = 300, kept = 12, rounds = 40 };

typedef struct {
    MPI_Comm comm;
    MPI_Datatype out[2], in[2]; /* a column of the matrix each */
    int sent[2], received[2];   /* which */
} Ring;

static const int ones[2] = {1, 1};
static const MPI_Aint zeros[2] = {0, 0};

/* To the rank above and from the one below, twice: the k-th edge meets the k-th. */
static MPI_Comm make_ring(void) {
    const int below = (check_rank + check_size - 1) % check_size, above = (check_rank + 1) % check_size;
    const int from[2] = {below, below}, to[2] = {above, above};
    MPI_Comm comm;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, from, MPI_UNWEIGHTED, 2, to, MPI_UNWEIGHTED,
                                   MPI_INFO_NULL, 0, &comm);
    return comm;
}

static MPI_Datatype column(int which) {
    const int all[2] = {rows, columns}, part[2] = {rows, 1}, begin[2] = {0, which};
    MPI_Datatype type;
    MPI_Type_create_subarray(2, all, part, begin, MPI_ORDER_C, MPI_INT, &type);
    MPI_Type_commit(&type);
    return type;
}

static void make_types(Ring* ring, int round) {
    for (int i = 0; i < 2; ++i) {
        ring->sent[i] = (round + 2 * i) % columns;
        ring->received[i] = (3 * round + 1 + i) % columns;
        ring->out[i] = column(ring->sent[i]);
        ring->in[i] = column(ring->received[i]);
    }
}

static void free_types(Ring* ring) {
    for (int i = 0; i < 2; ++i) {
        MPI_Type_free(&ring->out[i]);
        MPI_Type_free(&ring->in[i]);
    }
}

/* All bytes differ from round to round: what an earlier one left is wrong. */
static int value(int rank, int round, int row, int which) {
    return (int)((unsigned)(rank * 1000003 + round * 10007 + row * columns + which) * 2654435761u);
}

static void fill_cells(int* from, int* to, int round) {
    for (int row = 0; row < rows; ++row)
        for (int which = 0; which < columns; ++which) {
            from[row * columns + which] = value(check_rank, round, row, which);
            to[row * columns + which] = -1;
        }
}

static void verify_cells(const Ring* ring, const int* to, int round) {
    const int below = (check_rank + check_size - 1) % check_size;
    for (int row = 0; row < rows; ++row)
        for (int which = 0; which < columns; ++which) {
            int wanted = -1;
            for (int i = 0; i < 2; ++i)
                if (ring->received[i] == which) wanted = value(below, round, row, ring->sent[i]);
            CHECK(to[row * columns + which] == wanted, "round %d, row %d, column %d: %d is not %d", round,
                  row, which, to[row * columns + which], wanted);
        }
}

static void expect_taken(void) {
    if (getenv("THALWEG_TEST_TAKEN") != NULL && expect_thalweg())
        CHECK(was_accelerated(), "native: %s", last_reason());
}

static int as_wanted[2]; /* blocking, nonblocking */

static void exchange(const Ring* ring, int* from, int* to, int waits) {
    if (!waits) {
        MPI_Neighbor_alltoallw(from, ones, zeros, ring->out, to, ones, zeros, ring->in, ring->comm);
        expect_taken();
        as_wanted[0] += ran_as_wanted();
        return;
    }
    MPI_Request request;
    MPI_Ineighbor_alltoallw(from, ones, zeros, ring->out, to, ones, zeros, ring->in, ring->comm, &request);
    expect_taken();
    as_wanted[1] += ran_as_wanted();
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, wanted_level());
    const int traps = argc > 1 && expect_thalweg();
    if (traps) check_traps();
    const size_t bytes = sizeof(int) * rows * columns;
    Ring ring = {.comm = make_ring()};
    int *from = malloc(bytes), *to = malloc(bytes);
    /* The same call. */
    make_types(&ring, 0);
    for (int round = 0; round < rounds; ++round) {
        fill_cells(from, to, round);
        const int last = round == rounds - 1;
        if (last && traps) set_traps();
        exchange(&ring, from, to, round % 2 && !last);
        if (last && traps) lift_traps();
        verify_cells(&ring, to, round);
    }
    free_types(&ring);
    /* Others. */
    for (int round = 0; round < rounds; ++round) {
        make_types(&ring, round);
        fill_cells(from, to, round);
        exchange(&ring, from, to, round % 3);
        verify_cells(&ring, to, round);
        free_types(&ring);
        if (round % 4 == 3) {
            free(from), free(to);
            to = malloc(bytes);
            from = malloc(bytes);
        }
    }
    /* More than are kept, in turns. */
    make_types(&ring, 1);
    int* many[kept];
    for (int i = 0; i < kept; ++i) many[i] = malloc(bytes);
    for (int round = 0; round < 3 * kept; ++round) {
        fill_cells(from, many[round % kept], round);
        exchange(&ring, from, many[round % kept], 1);
        verify_cells(&ring, many[round % kept], round);
    }
    for (int i = 0; i < kept; ++i) free(many[i]);
    /* Pending while the communicator and the types go. */
    MPI_Request request;
    fill_cells(from, to, 7);
    MPI_Ineighbor_alltoallw(from, ones, zeros, ring.out, to, ones, zeros, ring.in, ring.comm, &request);
    MPI_Comm_free(&ring.comm);
    free_types(&ring);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    verify_cells(&ring, to, 7);
    free(from), free(to);
    expect_some_as_wanted(as_wanted[0], "blocking");
    expect_some_as_wanted(as_wanted[1], "nonblocking");
    return check_end();
}
