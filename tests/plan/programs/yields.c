/* Where ranks sleep while they wait, none of our waits yields its core: not while the network is measured, a
 * communicator is set up or the job ends, though others come late. A yield hands the core for a slice or two
 * to whatever else wants it; on busy cores a link that was measured by yields looked slower than any.
 *
 * The ranks are to be on hosts of their own, and to wait asleep. This program's sched_yield is everybody's.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "check.h"

enum { bytes = 100000, late_us = 30000 };

static int yields = 0; /* of ours, by the thread that calls MPI */
/* The agent may hold what drives a channel, and have lost its core: that one is given way to, a few times
 * where others want the cores. A wait that yields does so thousands of times. */
enum { few = 100 };

int sched_yield(void) {
    Dl_info from;
    if (syscall(SYS_gettid) == getpid() && dladdr(__builtin_return_address(0), &from) != 0 &&
        strstr(from.dli_fname, "libthalweg") != NULL)
        ++yields;
    return (int)syscall(SYS_sched_yield);
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, wanted_level());
    static unsigned char data[bytes];
    for (unsigned round = 0; round < 10 && (round == 0 || !was_accelerated()); ++round) {
        if (check_rank == 0) fill(data, bytes, round);
        MPI_Bcast(data, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
        verify(data, bytes, round, "a broadcast");
    }
    if (expect_thalweg()) CHECK(was_accelerated(), "native: %s", last_reason());
    CHECK(yields < few, "%d yields while the network was measured", yields);

    MPI_Comm ring;
    const int circular = 1;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &check_size, &circular, 0, &ring);
    unsigned char sent[2][4096], received[2][4096];
    for (unsigned round = 0; round < 5; ++round) {
        MPI_Request request;
        if (check_rank == 0) usleep(late_us);
        fill(sent[0], sizeof sent, round);
        const uint64_t seen = looked_at();
        MPI_Ineighbor_alltoall(sent, 4096, MPI_BYTE, received, 4096, MPI_BYTE, ring, &request);
        if (expect_thalweg() && round > 0) /* the first asks for the set-up */
            CHECK(looked_at() != seen && was_accelerated(), "exchange %u: %s", round, last_reason());
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Barrier(ring); /* where the communicator is set up */
    }
    CHECK(yields < few, "%d yields in exchanges with a rank that was late", yields);
    MPI_Comm_free(&ring);
    yields = 0;
    if (check_rank == 0) usleep(late_us);
    const int result = check_end();
    if (yields < few) return result;
    fprintf(stderr, "rank %d: %d yields while the job ended\n", check_rank, yields);
    return 1;
}
