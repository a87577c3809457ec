/* Communicators made, used and freed in a loop: `churn ITERATIONS [CALLS]`, CALLS broadcasts on each. Ours
 * cost no memory that the native library does not cost; prints what both cost in time. */
#include <malloc.h>

#include "check.h"

enum { bytes = 4096, ways = 3 };
static const char* const way[ways] = {"native", "auto", "linear"};

static int iterations = 2000, calls = 1, rounds = 4;

static void loop(int count) {
    static unsigned char data[bytes];
    for (int i = 0; i < count; ++i) {
        MPI_Comm comm;
        MPI_Comm_split(MPI_COMM_WORLD, 0, check_rank, &comm);
        for (int k = 0; k < calls; ++k) MPI_Bcast(data, bytes, MPI_BYTE, 0, comm);
        MPI_Comm_free(&comm);
    }
}

/* Bytes per iteration that stay allocated; microseconds per iteration to *us. */
static double growth(const char* algorithm, double* us) {
    set_option("THALWEG_BCAST", algorithm);
    loop(iterations / 10 + 60);
    MPI_Barrier(MPI_COMM_WORLD);
    const size_t before = mallinfo2().uordblks;
    const double begin = seconds_now();
    loop(iterations);
    *us = 1e6 * (seconds_now() - begin) / iterations;
    return ((double)mallinfo2().uordblks - (double)before) / iterations;
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, MPI_THREAD_SINGLE);
    if (argc > 1) iterations = atoi(argv[1]);
    if (argc > 2) calls = atoi(argv[2]);
    if (argc > 3) rounds = atoi(argv[3]);
    double least[ways] = {1e30, 1e30, 1e30};
    for (int i = 0; i < rounds; ++i) {
        double us[ways];
        for (int k = 0; k < ways; ++k) {
            const double grown = growth(way[k], &us[k]);
            if (grown < least[k]) least[k] = grown;
        }
        if (check_rank == 0)
            printf("%d broadcasts: native %.2f us, auto %.3f, forced %.3f of it\n", calls, us[0],
                   us[1] / us[0], us[2] / us[0]);
    }
    for (int k = 0; k < ways; ++k) {
        if (check_rank == 0) printf("%s: %.2f bytes stay per iteration\n", way[k], least[k]);
        CHECK(least[k] < least[0] + 8, "%s: %.1f bytes stay per iteration, %.1f with the native library",
              way[k], least[k], least[0]);
    }
    return check_end();
}
