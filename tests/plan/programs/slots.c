/* A ring whose ranks exchange by leaders of their hosts (THALWEG_ALLTOALLV=node_leader), of whose sizes the
 * ranks agree in blocking calls now and then: nonblocking and blocking calls whose messages grow beyond what
 * was agreed on, and beyond what ever travels together, shrink, and vanish; one rank alone changes its
 * buffers; another algorithm is asked for in between. Every byte is checked, and by what each call ran.
 *
 *     slots
 */
#include "check.h"

enum { most = 24 << 10, neighbours = 2, buffers = 3 };

static MPI_Comm ring;
static int below, above;
static unsigned call = 0;
static unsigned char *sent[buffers], *received;

/* Ranks differ, and a rank sends more upwards. */
static int bytes_of(int rank, int bytes, int upwards) { return bytes == 0 ? 0 : bytes + 3 * rank + upwards; }
static unsigned seed_of(int from, int upwards) {
    return (call * 64 + (unsigned)from) * 2 + (unsigned)upwards;
}

static void exchange(int bytes, int blocking, const char* by) {
    unsigned char* const send = sent[check_rank == 0 ? call % buffers : 0];
    const int send_counts[neighbours] = {bytes_of(check_rank, bytes, 0), bytes_of(check_rank, bytes, 1)};
    const int send_at[neighbours] = {0, send_counts[0]};
    const int counts[neighbours] = {bytes_of(below, bytes, 1), bytes_of(above, bytes, 0)};
    const int at[neighbours] = {0, counts[0]};
    for (int up = 0; up < neighbours; ++up)
        fill(send + send_at[up], (size_t)send_counts[up], seed_of(check_rank, up));
    memset(received, poison_value, neighbours * most);
    MPI_Request request = MPI_REQUEST_NULL;
    if (blocking)
        MPI_Neighbor_alltoallv(send, send_counts, send_at, MPI_BYTE, received, counts, at, MPI_BYTE, ring);
    else
        MPI_Ineighbor_alltoallv(send, send_counts, send_at, MPI_BYTE, received, counts, at, MPI_BYTE, ring,
                                &request);
    thalweg_last_call last;
    if (expect_thalweg() && look_last_call(&last, sizeof last) == 0)
        CHECK(strcmp(last.algorithm, by) == 0, "call %u of %d bytes ran by '%s', not '%s' (%s)", call, bytes,
              last.algorithm, by, last.reason);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    verify(received, (size_t)counts[0], seed_of(below, 1), "from below");
    verify(received + at[1], (size_t)counts[1], seed_of(above, 0), "from above");
    for (int i = counts[0] + counts[1]; i < neighbours * most; ++i)
        if (received[i] != poison_value) FAIL("call %u wrote byte %d behind what it received", call, i);
    ++call;
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, wanted_level());
    const int periodic = 1;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &check_size, &periodic, 0, &ring);
    MPI_Cart_shift(ring, 0, 1, &below, &above);
    for (int i = 0; i < buffers; ++i) sent[i] = guarded_new(neighbours * most);
    received = guarded_new(neighbours * most);
    const char* const leaders = "node_leader";
    exchange(100, 0, ""); /* nothing is set up */
    meet_on(ring);
    const int sizes[] = {100, 700, 100, 16000, 20000, 100, 0, 700};
    for (int phase = 0; phase < (int)(sizeof sizes / sizeof *sizes); ++phase) {
        for (int i = 0; i < 40; ++i) {
            exchange(sizes[phase], i % 10 > 6, leaders);
            if (i % 8 == 0) meet_on(ring);
        }
        set_option("THALWEG_ALLTOALLV", "spread");
        exchange(sizes[phase], 0, "spread");
        exchange(sizes[phase], 1, "spread");
        set_option("THALWEG_ALLTOALLV", leaders);
    }
    return check_end();
}
