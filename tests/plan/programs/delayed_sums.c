/* Sums of floating-point numbers while one rank comes late, in blocking and nonblocking calls that are all
 * taken: every rank gets the same bits, and they are printed, so that delayed_sums.py can compare launches.
 *
 *     delayed_sums first|last      which rank comes late
 */
#include "check.h"

enum { rounds = 3, late_us = 20000 };

static double term(int rank, int i) { return 1.0 / (1 + i + 7919 * rank); }

/* Terms that any order adds up to the same bits would show nothing. */
static void check_terms(int count) {
    int differ = 0;
    for (int i = 0; i < count; ++i) {
        double up = 0, down = 0;
        for (int rank = 0; rank < check_size; ++rank)
            up += term(rank, i), down += term(check_size - 1 - rank, i);
        differ += up != down;
    }
    CHECK(differ > count / 100, "of %d sums %d depend on the order", count, differ);
}

/* FNV-1a. */
static uint64_t digest(const unsigned char* data, size_t bytes) {
    uint64_t x = 0xcbf29ce484222325u;
    for (size_t i = 0; i < bytes; ++i) x = (x ^ data[i]) * 0x100000001b3u;
    return x;
}

static void add_up(MPI_Comm comm, int nonblocking, int count, int round, int late) {
    const size_t bytes = (size_t)count * sizeof(double);
    double *const own = malloc(bytes), *const sum = (double*)guarded_new(bytes);
    for (int i = 0; i < count; ++i) own[i] = term(check_rank, i);
    MPI_Barrier(MPI_COMM_WORLD);
    if (check_rank == late) usleep(late_us);
    const uint64_t before = looked_at();
    MPI_Request request = MPI_REQUEST_NULL;
    if (nonblocking)
        MPI_Iallreduce(own, sum, count, MPI_DOUBLE, MPI_SUM, comm, &request);
    else
        MPI_Allreduce(own, sum, count, MPI_DOUBLE, MPI_SUM, comm);
    if (expect_thalweg()) CHECK(looked_at() != before && was_accelerated(), "a sum: %s", last_reason());
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < count; ++i) {
        double exact = 0;
        for (int rank = 0; rank < check_size; ++rank) exact += term(rank, i);
        const double off = sum[i] > exact ? sum[i] - exact : exact - sum[i];
        CHECK(off < 1e-13 * exact, "a sum: element %d is %.17g, not %.17g", i, sum[i], exact);
    }
    const uint64_t mine = digest((const unsigned char*)sum, bytes);
    uint64_t all[64];
    MPI_Gather(&mine, 1, MPI_UINT64_T, all, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    for (int rank = 0; rank < check_size && check_rank == 0; ++rank)
        CHECK(all[rank] == mine, "round %d, %d doubles: rank %d has other bits", round, count, rank);
    if (check_rank == 0)
        printf("sum %s, %d doubles, round %d: %016llx\n", nonblocking ? "nonblocking" : "blocking", count,
               round, (unsigned long long)mine);
    guarded_free((unsigned char*)sum, bytes);
    free(own);
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, wanted_level());
    CHECK(check_size > 2 && check_size <= 64, "between 3 and 64 ranks");
    const int late = argc > 1 && strcmp(argv[1], "last") == 0 ? check_size - 1 : 0;
    const int counts[2] = {50000, 150001}; /* 0.4 and 1.2 MB */
    for (int i = 0; i < 2; ++i) check_terms(counts[i]);
    for (int nonblocking = 0; nonblocking < 2; ++nonblocking) {
        MPI_Comm twin;
        MPI_Comm_dup(MPI_COMM_WORLD, &twin);
        for (int i = 0; i < 2; ++i)
            for (int round = 0; round < rounds; ++round) add_up(twin, nonblocking, counts[i], round, late);
        MPI_Comm_free(&twin);
    }
    return check_end();
}
