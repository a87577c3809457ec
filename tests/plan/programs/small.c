/* What Thalweg costs where it has nothing to give: 10^4 split/free pairs and a million small broadcasts,
 * through us and past us (PMPI), interleaved. The median over all pairs of rounds must keep the limits of
 * the promise: 1.1 times, and 3 % or 150 ns.
 *
 *   small [PAIRS [CALLS]]
 *   small taken [PAIRS]    pairs only, around a broadcast that pays for the set-up and is ours: tests/lab */
#include "check.h"

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

enum { pairs_of_rounds = 151 };

/* Pairs of a round through us and one past us, either first by turns; the slowest rank counts. Every
 * rank sees the same times, and judges all of them at once: a busy machine spoils single pairs, not the
 * median of their ratios. Returns whether it is within the limits. */
static int keeps(const char* what, double (*round)(int, int), int repeats, double factor, double slack) {
    enum { pairs = pairs_of_rounds };
    static double mine[2][pairs], most[2][pairs], ratio[pairs], more[pairs];
    for (int i = 0; i < pairs; ++i)
        for (int turn = 0; turn < 2; ++turn) {
            const int through = (turn + i) % 2;
            mine[through][i] = round(through, repeats);
        }
    MPI_Allreduce(mine, most, 2 * pairs, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    for (int i = 0; i < pairs; ++i) {
        ratio[i] = most[1][i] / most[0][i];
        more[i] = most[1][i] - most[0][i];
    }
    const double times = median(ratio, pairs), longer = median(more, pairs), past = median(most[0], pairs);
    if (check_rank == 0)
        printf("%s: %.3f us past Thalweg, through it %.3f times that, %.3f us more\n", what, 1e6 * past,
               times, 1e6 * longer);
    return times <= factor || longer <= slack;
}

/* What a machine that changes its pace makes of them it does not make of all attempts. */
static void judge(const char* what, double (*round)(int, int), int repeats, double factor, double slack) {
    enum { attempts = 3 };
    int kept = 0;
    for (int attempt = 0; !kept && attempt < attempts; ++attempt)
        kept = keeps(what, round, repeats, factor, slack);
    CHECK(kept, "%s: more than %.2f times as long as natively, and %.3f us more, in all of %d attempts", what,
          factor, 1e6 * slack, (int)attempts);
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, MPI_THREAD_SINGLE);
    if (argc > 1 && strcmp(argv[1], "taken") == 0) {
        judge("split, broadcast and free", taken_round,
              1 + (argc > 2 ? atoi(argv[2]) : 200) / pairs_of_rounds, 1.10, 0);
        return check_end();
    }
    const int pairs = argc > 1 ? atoi(argv[1]) : 10000, calls = argc > 2 ? atoi(argv[2]) : 1000000;
    judge("split and free", split_round, 1 + pairs / pairs_of_rounds, 1.10, 0);
    judge("64-byte broadcast", bcast_round, 1 + calls / pairs_of_rounds, 1.03, 150e-9);
    return check_end();
}
