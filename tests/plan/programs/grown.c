/* Nonblocking exchanges between the ranks of a ring, of which each knows its own sizes only: small ones are
 * the MPI library's from the set-up on; when those of one rank grow, all ranks take them behind the next
 * blocking collective in which they may agree, and none before; when they shrink, they leave them again.
 * Every byte is checked.
 *
 *     grown
 */
#include "check.h"

enum { small = 512, large = 200 << 10, neighbours = 2 };

static MPI_Comm ring;
static int below, above;
static unsigned call = 0;
static unsigned char *sent, *received;

/* What a rank sends in each direction. */
static int bytes_of(int rank, int grown) { return grown && rank == 0 ? large : small; }
static unsigned seed_of(int from, int upwards) {
    return (call * 64 + (unsigned)from) * 2 + (unsigned)upwards;
}

/* Returns whether Thalweg had the exchange, the same on all ranks. */
static int exchange(int grown) {
    const int from_below = bytes_of(below, grown), from_above = bytes_of(above, grown);
    const int bytes = bytes_of(check_rank, grown);
    const int send_counts[neighbours] = {bytes, bytes}, send_at[neighbours] = {0, bytes};
    const int counts[neighbours] = {from_below, from_above}, at[neighbours] = {0, from_below};
    fill(sent, (size_t)bytes, seed_of(check_rank, 0));
    fill(sent + bytes, (size_t)bytes, seed_of(check_rank, 1));
    memset(received, poison_value, neighbours * large);
    MPI_Request request;
    MPI_Ineighbor_alltoallv(sent, send_counts, send_at, MPI_BYTE, received, counts, at, MPI_BYTE, ring,
                            &request);
    const int taken = was_accelerated();
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    verify(received, (size_t)from_below, seed_of(below, 1), "from below");
    verify(received + from_below, (size_t)from_above, seed_of(above, 0), "from above");
    for (int i = from_below + from_above; i < neighbours * large; ++i)
        if (received[i] != poison_value) FAIL("call %u wrote byte %d behind what it received", call, i);
    ++call;
    return taken;
}

static void exchange_all(int calls, int grown, int expected) {
    for (int i = 0; i < calls; ++i) {
        const int taken = exchange(grown);
        if (expect_thalweg())
            CHECK(taken == expected, "call %u was %s (%s)", call - 1, taken ? "taken" : "native",
                  last_reason());
    }
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, wanted_level());
    const int periodic = 1;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &check_size, &periodic, 0, &ring);
    MPI_Cart_shift(ring, 0, 1, &below, &above);
    sent = guarded_new(neighbours * large);
    received = guarded_new(neighbours * large);
    exchange_all(2, 0, 0); /* nothing is set up */
    meet_on(ring);
    exchange_all(14, 0, 0);
    meet_on(ring);
    exchange_all(2, 1, 0); /* others do not know yet that rank 0 has more */
    meet_on(ring);         /* and do not ask before there are 32 calls */
    exchange_all(30, 1, 0);
    meet_on(ring);
    exchange_all(24, 1, 1);
    exchange_all(40, 0, 1); /* 64 */
    meet_on(ring);          /* in which calls were large */
    exchange_all(128, 0, 1);
    meet_on(ring);
    exchange_all(10, 0, 0);
    guarded_free(sent, neighbours * large);
    guarded_free(received, neighbours * large);
    MPI_Comm_free(&ring);
    return check_end();
}
