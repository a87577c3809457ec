/* Exchanges on one host that wrappers pass on by themselves, of every call or of a trial's (with
 * tried_exchanges.json): an algorithm that is asked for has the next one, and a communicator is set up in one
 * of them where a nonblocking call waits for that. Ordinary and large counts by turns: all ranks count alike.
 */
#include "check.h"

enum { bytes = 64, most_ranks = 8, warm = 200, most_rounds = 10 };

typedef int LargeAlltoallv(const void*, const MPI_Count*, const MPI_Aint*, MPI_Datatype, void*,
                           const MPI_Count*, const MPI_Aint*, MPI_Datatype, MPI_Comm);
static LargeAlltoallv* large; /* null where the library has none */

static unsigned char from[most_ranks * bytes], to[most_ranks * bytes];
static unsigned seed;

static unsigned seed_of(int sender, int receiver) { return seed * 64 + (unsigned)(sender * 8 + receiver); }

static int is_ours(MPI_Comm comm, int of_large_counts) {
    int size, rank, counts[most_ranks], places[most_ranks];
    MPI_Count large_counts[most_ranks];
    MPI_Aint large_places[most_ranks];
    MPI_Comm_size(comm, &size);
    MPI_Comm_rank(comm, &rank);
    CHECK(size <= most_ranks, "too many ranks");
    ++seed;
    memset(to, poison_value, sizeof to);
    for (int peer = 0; peer < size; ++peer) {
        fill(from + peer * bytes, bytes, seed_of(rank, peer));
        large_counts[peer] = counts[peer] = bytes;
        large_places[peer] = places[peer] = peer * bytes;
    }
    const uint64_t before = looked_at();
    if (of_large_counts && large != NULL)
        large(from, large_counts, large_places, MPI_BYTE, to, large_counts, large_places, MPI_BYTE, comm);
    else
        MPI_Alltoallv(from, counts, places, MPI_BYTE, to, counts, places, MPI_BYTE, comm);
    const int ours = looked_at() != before && was_accelerated();
    for (int peer = 0; peer < size; ++peer) verify(to + peer * bytes, bytes, seed_of(peer, rank), "a block");
    return ours;
}

static void pass_on(MPI_Comm comm) {
    for (int call = 0; call < warm; ++call) CHECK(!is_ours(comm, call % 3 == 2), "call %d was ours", call);
}

/* A wrapper has the calls of one communicator to itself: of that which goes on calling, whoever was first. */
static void pass_unseen(MPI_Comm comm) {
    enum { calls = 100, most_seen = 80 };
    int seen = 0;
    for (int call = 0; call < calls; ++call) {
        const uint64_t before = looked_at();
        CHECK(!is_ours(comm, 0), "call %d was ours", call);
        seen += looked_at() != before;
    }
    CHECK(seen <= most_seen, "%d of %d calls were looked at", seen, calls);
}

/* The first of them on `comm` is native, and says that the communicator is to be set up. */
static void meets(MPI_Comm comm) {
    static unsigned char blocks[most_ranks * bytes];
    int round = 0, ours = 0;
    while (!ours && round++ < most_rounds) {
        MPI_Request request;
        fill(from, bytes, (unsigned)check_rank);
        MPI_Iallgather(from, bytes, MPI_BYTE, blocks, bytes, MPI_BYTE, comm, &request);
        ours = was_accelerated();
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (int rank = 0; rank < check_size; ++rank)
            verify(blocks + rank * bytes, bytes, (unsigned)rank, "a gathered block");
        is_ours(comm, 0);
    }
    if (expect_thalweg()) CHECK(ours, "no exchange was where the communicator is set up: %s", last_reason());
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, MPI_THREAD_SINGLE);
    large = (LargeAlltoallv*)dlsym(RTLD_DEFAULT, "MPI_Alltoallv_c");
    MPI_Comm twin;
    MPI_Comm_dup(MPI_COMM_WORLD, &twin);
    const MPI_Comm comms[] = {MPI_COMM_WORLD, twin};
    for (int i = 0; i < 2; ++i) {
        pass_on(comms[i]);
        set_option("THALWEG_ALLTOALLV", "spread");
        for (int call = 0; call < 3; ++call)
            CHECK(is_ours(comms[i], call == 2) == expect_thalweg(), "asked for: %s", last_reason());
        set_option("THALWEG_ALLTOALLV", "native");
        CHECK(!is_ours(comms[i], 0), "the native library was asked for");
        set_option("THALWEG_ALLTOALLV", NULL);
        pass_on(comms[1 - i]);
        pass_unseen(comms[1 - i]);
        pass_on(comms[i]);
        pass_unseen(comms[i]);
    }
    MPI_Comm_free(&twin);
    set_option("THALWEG_ALLGATHER", "ring");
    for (int i = 0; i < 2; ++i) {
        MPI_Comm_dup(MPI_COMM_WORLD, &twin);
        if (i == 1) pass_on(twin);
        meets(twin);
        pass_on(twin);
        MPI_Comm_free(&twin);
    }
    return check_end();
}
