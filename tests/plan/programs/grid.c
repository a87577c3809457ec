/* The broadcasts of a dense solver: many small ones of derived types on the rows and columns of a grid of
 * processes, which stay native; for them nothing is set up on those communicators, and nothing stays in
 * memory per call.
 *
 *   grid [CALLS]
 */
#include <malloc.h>

#define TRAPPED                                                                                            \
    "Comm_create", "Comm_split", "Comm_dup", "Comm_create_group", "Group_incl", "Win_create", "Allreduce", \
        "Allgather", "Alltoall", "Barrier", "Send_init", "Comm_set_attr", "Comm_create_keyval",            \
        "Iallreduce", "Ibcast", "Ibarrier"
#include "set_up_calls.h"

enum { rows = 2, lead = 40, most_columns = 24 };

/* A block of a matrix that lies in a larger one, column after column. */
static double matrix[lead * most_columns], wanted[lead * most_columns];

static double value(int call, int row, int column) { return call * 1000.0 + row * 30 + column + 0.25; }

static void put(double* into, int call, int columns, int high) {
    for (int column = 0; column < columns; ++column)
        for (int row = 0; row < high; ++row) into[column * lead + row] = value(call, row, column);
}

static void broadcast(MPI_Comm comm, int call) {
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    const int high = 1 + call % 30, columns = 1 + call % 7, root = call % size;
    MPI_Datatype block;
    MPI_Type_vector(columns, high, lead, MPI_DOUBLE, &block);
    MPI_Type_commit(&block);
    for (size_t i = 0; i < sizeof matrix / sizeof *matrix; ++i) matrix[i] = wanted[i] = -1;
    put(wanted, call, columns, high);
    if (rank == root) put(matrix, call, columns, high);
    MPI_Bcast(matrix, 1, block, root, comm);
    for (size_t i = 0; i < sizeof matrix / sizeof *matrix; ++i)
        CHECK(matrix[i] == wanted[i], "call %d: byte %zu is wrong: %g, not %g", call, 8 * i, matrix[i],
              wanted[i]);
    MPI_Type_free(&block);
}

/* A root waits for nobody: if nobody ever waited for all others, one could get so far ahead that the library
 * keeps megabytes of messages that were not asked for yet (Open MPI 5.0.11). By messages, as collectives are
 * trapped. */
static void meet(void) {
    char token = 0;
    const int first = check_rank == 0 ? 1 : 0, last = check_rank == 0 ? check_size - 1 : 0;
    for (int part = 0; part < 2; ++part)
        for (int peer = first; peer <= last; ++peer) {
            if ((part == 0) == (check_rank == 0))
                MPI_Recv(&token, 1, MPI_CHAR, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            else
                MPI_Send(&token, 1, MPI_CHAR, peer, 0, MPI_COMM_WORLD);
        }
}

static void all_calls(MPI_Comm row, MPI_Comm column, int calls) {
    for (int call = 0; call < calls; ++call) {
        broadcast(call % 2 ? row : column, call);
        if (call % 50 == 49) meet();
    }
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, MPI_THREAD_SINGLE);
    const int calls = argc > 1 ? atoi(argv[1]) : 160000;
    CHECK(check_size % rows == 0, "an even number of ranks, please");
    MPI_Comm row, column;
    MPI_Comm_split(MPI_COMM_WORLD, check_rank / rows, check_rank, &row);
    MPI_Comm_split(MPI_COMM_WORLD, check_rank % rows, check_rank, &column);
    check_traps();
    set_traps(); /* from the first call on */
    all_calls(row, column, 200);
    const size_t before = mallinfo2().uordblks;
    all_calls(row, column, calls);
    lift_traps();
    const size_t after = mallinfo2().uordblks;
    /* The library's pools grow by a piece now and then. */
    CHECK(after < before + (128u << 10) + 8u * (unsigned)calls, "%zu bytes stay after %d calls",
          after - before, calls);
    if (expect_thalweg()) CHECK(!was_accelerated(), "a small broadcast is ours");
    MPI_Comm_free(&row);
    MPI_Comm_free(&column);
    return check_end();
}
