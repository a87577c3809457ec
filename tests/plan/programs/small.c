/* What Thalweg costs where it has nothing to give: 10^4 split/free pairs and a million small broadcasts,
 * through us and past us (PMPI), interleaved. The median of the rounds must agree within the limits of
 * the promise: 1.1 times, and 3 % or 150 ns.
 *
 *   small [PAIRS [CALLS]]
 *   small taken [PAIRS]    pairs only, around a broadcast that pays for the set-up and is ours: tests/lab */
#include "check.h"

static int by_value(const void* a, const void* b) {
    const double x = *(const double*)a, y = *(const double*)b;
    return (x > y) - (x < y);
}
static double median(double* values, int count) {
    qsort(values, count, sizeof *values, by_value);
    return values[count / 2];
}

static double split_round(int through, int pairs) {
    char data[64] = "";
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = seconds_now();
    for (int i = 0; i < pairs; ++i) {
        MPI_Comm comm;
        if (through) {
            MPI_Comm_split(MPI_COMM_WORLD, 0, check_rank, &comm);
            MPI_Bcast(data, sizeof data, MPI_BYTE, 0, comm);
            MPI_Comm_free(&comm);
        } else {
            PMPI_Comm_split(MPI_COMM_WORLD, 0, check_rank, &comm);
            PMPI_Bcast(data, sizeof data, MPI_BYTE, 0, comm);
            PMPI_Comm_free(&comm);
        }
    }
    return (seconds_now() - begin) / pairs;
}

/* A broadcast large enough to be the first and the last on its communicator: it pays for the set-up, and is
 * ours. Between hosts only, because inside one the native library is faster. */
static double taken_round(int through, int pairs) {
    enum { bytes = 1 << 20 };
    static unsigned char data[bytes];
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = seconds_now();
    for (int i = 0; i < pairs; ++i) {
        MPI_Comm comm;
        if (check_rank == 0) data[0] = data[bytes - 1] = (unsigned char)i;
        if (through) {
            MPI_Comm_split(MPI_COMM_WORLD, 0, check_rank, &comm);
            MPI_Bcast(data, bytes, MPI_BYTE, 0, comm);
            CHECK(was_accelerated(), "native: %s", last_reason());
            MPI_Comm_free(&comm);
        } else {
            PMPI_Comm_split(MPI_COMM_WORLD, 0, check_rank, &comm);
            PMPI_Bcast(data, bytes, MPI_BYTE, 0, comm);
            PMPI_Comm_free(&comm);
        }
        CHECK(data[0] == (unsigned char)i && data[bytes - 1] == (unsigned char)i, "wrong bytes");
    }
    return (seconds_now() - begin) / pairs;
}

static double bcast_round(int through, int calls) {
    char data[64] = "";
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = seconds_now();
    if (through)
        for (int i = 0; i < calls; ++i) MPI_Bcast(data, sizeof data, MPI_BYTE, 0, MPI_COMM_WORLD);
    else
        for (int i = 0; i < calls; ++i) PMPI_Bcast(data, sizeof data, MPI_BYTE, 0, MPI_COMM_WORLD);
    return (seconds_now() - begin) / calls;
}

/* Rounds alternate; the slowest rank counts. Every rank returns the same. */
static void compare(double (*round)(int, int), int repeats, int rounds, double* with, double* without) {
    double mine[2][101], most[2][101];
    for (int i = 0; i < rounds; ++i)
        for (int turn = 0; turn < 2; ++turn) {
            const int through = (turn + i) % 2;
            mine[through][i] = round(through, repeats);
        }
    MPI_Allreduce(mine, most, 2 * 101, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    *with = median(most[1], rounds);
    *without = median(most[0], rounds);
}

/* A busy machine can spoil comparisons: they are made again before they count as lost. All ranks see the same
 * medians and go the same way. */
static void judge(const char* what, double (*round)(int, int), int repeats, double factor, double slack) {
    double with = 0, without = 0;
    for (int attempt = 0; attempt < 10; ++attempt) {
        compare(round, repeats, 51, &with, &without);
        if (check_rank == 0)
            printf("%s: %.3f us through Thalweg, %.3f us past it\n", what, 1e6 * with, 1e6 * without);
        if (with <= factor * without || with <= without + slack) break;
    }
    CHECK(with <= factor * without || with <= without + slack, "%s: %.3f us, native %.3f us", what,
          1e6 * with, 1e6 * without);
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, MPI_THREAD_SINGLE);
    if (argc > 1 && strcmp(argv[1], "taken") == 0) {
        judge("split, broadcast and free", taken_round, (argc > 2 ? atoi(argv[2]) : 200) / 50, 1.10, 0);
        return check_end();
    }
    const int pairs = argc > 1 ? atoi(argv[1]) : 10000, calls = argc > 2 ? atoi(argv[2]) : 1000000;
    judge("split and free", split_round, pairs / 50, 1.10, 0);
    judge("64-byte broadcast", bcast_round, calls / 50, 1.03, 150e-9);
    return check_end();
}
