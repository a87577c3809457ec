/* Repeated alltoallvs, of which no rank knows the sizes on others: what the ranks tell one another
 * of the calls before decides by which algorithm a call runs, when it is not the library's. Large messages go
 * in pieces, small ones at once; in a loop of both each blocking call as is good for it; messages of which
 * few are much larger do not wait for each other. Of nonblocking calls the ranks speak in blocking
 * collectives. Every byte is checked. Nothing is asked for by name: the ranks are to be on hosts of their
 * own.
 */
#include "check.h"

enum { large = 136 << 10, small = 100, calls = 90 };

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

/* What a loop exchanges, call by call: `bytes` from each rank to each, on a communicator of its own. */
typedef struct {
    size_t room; /* of each message */
    int *sent, *at, *received;
    unsigned char *from, *to;
    MPI_Comm comm;
} Loop;

static Loop loop_new(void) {
    const size_t ranks = (size_t)check_size;
    Loop loop = {8 * (size_t)large,
                 malloc(ranks * sizeof(int)),
                 malloc(ranks * sizeof(int)),
                 malloc(ranks * sizeof(int)),
                 NULL,
                 NULL,
                 MPI_COMM_NULL};
    loop.from = malloc(ranks * loop.room);
    loop.to = guarded_new(ranks * loop.room);
    MPI_Comm_dup(MPI_COMM_WORLD, &loop.comm);
    return loop;
}

static void loop_free(Loop* loop) {
    MPI_Comm_free(&loop->comm);
    guarded_free(loop->to, (size_t)check_size * loop->room);
    free(loop->from), free(loop->sent), free(loop->at), free(loop->received);
}

static unsigned seed_of(int call, int from, int to) { return (unsigned)(call * 4096 + from * 64 + to); }

static void loop_fill(Loop* loop, Bytes* bytes, int call) {
    for (int peer = 0; peer < check_size; ++peer) {
        loop->at[peer] = peer * (int)loop->room;
        loop->sent[peer] = bytes(check_rank, peer, call);
        loop->received[peer] = bytes(peer, check_rank, call);
        fill(loop->from + loop->at[peer], (size_t)loop->sent[peer], seed_of(call, check_rank, peer));
    }
    memset(loop->to, poison_value, (size_t)check_size * loop->room);
}

static void loop_verify(const Loop* loop, int call, const char* what) {
    for (int peer = 0; peer < check_size; ++peer)
        verify(loop->to + loop->at[peer], (size_t)loop->received[peer], seed_of(call, peer, check_rank),
               what);
}

/* What the program calls behind each nonblocking one: where the ranks can tell one another of those. */
typedef void Meeting(MPI_Comm comm);
static void barrier(MPI_Comm comm) { MPI_Barrier(comm); }
/* Ours, and asked for by name, so that none is left to the library. */
static void exchange(MPI_Comm comm) {
    int given[64], got[64];
    for (int peer = 0; peer < check_size; ++peer) given[peer] = 100 * check_rank + peer;
    set_option("THALWEG_ALLTOALLV", "spread");
    MPI_Alltoall(given, 1, MPI_INT, got, 1, MPI_INT, comm);
    if (expect_thalweg()) CHECK(was_accelerated(), "an exchange between: %s", last_reason());
    set_option("THALWEG_ALLTOALLV", NULL);
    for (int peer = 0; peer < check_size; ++peer)
        CHECK(got[peer] == 100 * peer + check_rank, "an exchange between: %d from %d", got[peer], peer);
}

/* Nonblocking ones, a meeting behind each: by spread at first, then by `way`. */
static void nonblocking(Bytes* bytes, Way* way, Meeting* meet, const char* what) {
    Loop loop = loop_new();
    char last[128] = "";
    for (int call = 0; call < calls; ++call) {
        loop_fill(&loop, bytes, call);
        MPI_Request request;
        MPI_Ialltoallv(loop.from, loop.sent, loop.at, MPI_BYTE, loop.to, loop.received, loop.at, MPI_BYTE,
                       loop.comm, &request);
        thalweg_last_call told;
        if (expect_thalweg() && look_last_call(&told, sizeof told) == 0)
            snprintf(last, sizeof last, "%s", told.accelerated ? told.algorithm : "");
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        loop_verify(&loop, call, what);
        meet(loop.comm);
    }
    if (expect_thalweg())
        CHECK(strcmp(last, way(0)) == 0, "%s: the last went by %s, not by %s", what, last, way(0));
    loop_free(&loop);
}

/* Behind the first communicators it is known what a set-up took, and calls wait until it would have paid:
 * where something else held it up, for long. */
static void repeat(Bytes* bytes, Way* way, const char* what) {
    enum { enough = 9, most_calls = 3000 };
    Loop loop = loop_new();
    int accelerated = expect_thalweg() ? 0 : enough;
    for (int call = 0; call < calls || (accelerated < enough && call < most_calls); ++call) {
        loop_fill(&loop, bytes, call);
        MPI_Alltoallv(loop.from, loop.sent, loop.at, MPI_BYTE, loop.to, loop.received, loop.at, MPI_BYTE,
                      loop.comm);
        loop_verify(&loop, call, what);
        thalweg_last_call last;
        if (!expect_thalweg() || look_last_call(&last, sizeof last) != 0 || !last.accelerated) continue;
        ++accelerated;
        CHECK(strcmp(last.algorithm, way(call)) == 0, "%s, call %d: by %s, not by %s", what, call,
              last.algorithm, way(call));
    }
    CHECK(accelerated >= enough, "%s: %d calls were taken", what, accelerated);
    loop_free(&loop);
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, wanted_level());
    repeat(all_large, by_pieces, "large messages");
    repeat(all_small, by_spread, "small messages");
    repeat(in_turns, by_turns, "both in turns");
    repeat(one_sends_much_more, by_spread, "uneven messages");
    nonblocking(all_large, by_pieces, barrier, "large nonblocking messages");
    nonblocking(all_small, by_nobody, barrier, "small nonblocking messages");
    nonblocking(one_sends_much_more, by_spread, barrier, "uneven nonblocking messages");
    nonblocking(all_large, by_pieces, exchange, "large nonblocking messages between exchanges of ours");
    return check_end();
}
