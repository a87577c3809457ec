/* Repeated alltoallvs, of which no rank knows the sizes on others: what the ranks tell one another
 * of the calls before decides by which algorithm a call runs, when it is not the library's. Large messages go
 * in pieces, small ones at once; in a loop of both each blocking call as is good for it; messages of which
 * few are much larger do not wait for each other. Of nonblocking calls the ranks speak in blocking
 * collectives. Every byte is checked. Nothing is asked for by name: the ranks are to be on hosts of their
 * own.
 */
#include "check.h"

enum { large = 80 << 10, small = 100, calls = 90 };

typedef int Bytes(int from, int to, int call);
static int all_large(int from, int to, int call) { return large + from * 16 + to + 0 * call; }
static int all_small(int from, int to, int call) { return small + from + to + 0 * call; }
/* A loop of three: counts, then data, twice. */
static int in_turns(int from, int to, int call) {
    return call % 3 == 0 ? all_small(from, to, call) : all_large(from, to, call);
}
static int one_sends_much_more(int from, int to, int call) {
    return from == 1 ? 8 * large : all_large(from, to, call);
}

static const char in_pieces[] = "pairwise:chunk_bytes=32K", at_once[] = "spread";
typedef const char* Way(int call);
static const char* by_pieces(int call) { return call >= 0 ? in_pieces : ""; }
static const char* by_spread(int call) { return call >= 0 ? at_once : ""; }
/* Left to the library. */
static const char* by_nobody(int call) { return call >= 0 ? "" : at_once; }
static const char* by_turns(int call) { return call % 3 == 0 ? at_once : in_pieces; }

/* Nonblocking ones, a barrier behind each: by spread at first, then by `way`. */
static void nonblocking(Bytes* bytes, Way* way, const char* what) {
    const size_t ranks = (size_t)check_size, room = 8 * (size_t)large;
    int* const counts = malloc(4 * ranks * sizeof(int));
    int *const sent = counts, *const at = counts + check_size, *const received = counts + 2 * check_size;
    unsigned char *const from = malloc(ranks * room), *const to = guarded_new(ranks * room);
    char last[128] = "";
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int call = 0; call < calls; ++call) {
        for (int peer = 0; peer < check_size; ++peer) {
            at[peer] = peer * (int)room;
            sent[peer] = bytes(check_rank, peer, call);
            received[peer] = bytes(peer, check_rank, call);
            fill(from + at[peer], (size_t)sent[peer], (unsigned)(call * 4096 + check_rank * 64 + peer));
        }
        memset(to, poison_value, ranks * room);
        MPI_Request request;
        MPI_Ialltoallv(from, sent, at, MPI_BYTE, to, received, at, MPI_BYTE, comm, &request);
        thalweg_last_call told;
        if (expect_thalweg() && look_last_call(&told, sizeof told) == 0)
            snprintf(last, sizeof last, "%s", told.accelerated ? told.algorithm : "");
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (int peer = 0; peer < check_size; ++peer)
            verify(to + at[peer], (size_t)received[peer], (unsigned)(call * 4096 + peer * 64 + check_rank),
                   what);
        MPI_Barrier(comm);
    }
    if (expect_thalweg())
        CHECK(strcmp(last, way(0)) == 0, "%s: the last went by %s, not by %s", what, last, way(0));
    MPI_Comm_free(&comm);
    guarded_free(to, ranks * room);
    free(from), free(counts);
}

static void repeat(Bytes* bytes, Way* way, const char* what) {
    const size_t ranks = (size_t)check_size, room = 8 * (size_t)large;
    int* const counts = malloc(4 * ranks * sizeof(int));
    int *const sent = counts, *const at = counts + check_size, *const received = counts + 2 * check_size;
    unsigned char *const from = malloc(ranks * room), *const to = guarded_new(ranks * room);
    int accelerated = 0;
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int call = 0; call < calls; ++call) {
        for (int peer = 0; peer < check_size; ++peer) {
            at[peer] = peer * (int)room;
            sent[peer] = bytes(check_rank, peer, call);
            received[peer] = bytes(peer, check_rank, call);
            fill(from + at[peer], (size_t)sent[peer], (unsigned)(call * 4096 + check_rank * 64 + peer));
        }
        memset(to, poison_value, ranks * room);
        MPI_Alltoallv(from, sent, at, MPI_BYTE, to, received, at, MPI_BYTE, comm);
        for (int peer = 0; peer < check_size; ++peer)
            verify(to + at[peer], (size_t)received[peer], (unsigned)(call * 4096 + peer * 64 + check_rank),
                   what);
        thalweg_last_call last;
        if (!expect_thalweg() || look_last_call(&last, sizeof last) != 0 || !last.accelerated) continue;
        ++accelerated;
        CHECK(strcmp(last.algorithm, way(call)) == 0, "%s, call %d: by %s, not by %s", what, call,
              last.algorithm, way(call));
    }
    if (expect_thalweg()) CHECK(accelerated >= 9, "%s: %d calls were taken", what, accelerated);
    MPI_Comm_free(&comm);
    guarded_free(to, ranks * room);
    free(from), free(counts);
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, wanted_level());
    repeat(all_large, by_pieces, "large messages");
    repeat(all_small, by_spread, "small messages");
    repeat(in_turns, by_turns, "both in turns");
    repeat(one_sends_much_more, by_spread, "uneven messages");
    nonblocking(all_large, by_pieces, "large nonblocking messages");
    nonblocking(all_small, by_nobody, "small nonblocking messages");
    nonblocking(one_sends_much_more, by_spread, "uneven nonblocking messages");
    return check_end();
}
