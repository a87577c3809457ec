/* What Thalweg costs where it has nothing to give: 10^4 split/free pairs and a million small broadcasts,
 * through us and past us (PMPI), interleaved. The median of the rounds must agree within the limits of
 * design.md. */
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

int main(int argc, char** argv) {
    check_start(&argc, &argv, MPI_THREAD_SINGLE);
    const int pairs = argc > 1 ? atoi(argv[1]) : 10000, calls = argc > 2 ? atoi(argv[2]) : 1000000;
    double with, without;
    memset(&with, 0, sizeof with);
    compare(split_round, pairs / 50, 51, &with, &without);
    if (check_rank == 0) printf("split/free: %.2f us with, %.2f us without\n", 1e6 * with, 1e6 * without);
    CHECK(with <= 1.10 * without, "split/free pairs cost %.2f us, native %.2f", 1e6 * with, 1e6 * without);
    compare(bcast_round, calls / 50, 51, &with, &without);
    if (check_rank == 0)
        printf("64-byte broadcast: %.0f ns with, %.0f ns without\n", 1e9 * with, 1e9 * without);
    CHECK(with <= 1.03 * without || with <= without + 150e-9, "a small broadcast costs %.0f ns, native %.0f",
          1e9 * with, 1e9 * without);
    return check_end();
}
