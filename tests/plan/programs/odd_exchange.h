/* An exchange of blocks whose lengths all differ, with bytes between them that nobody may write: what a
 * program gives to MPI_Alltoallv and MPI_Alltoallw, and whether every byte came. */
#ifndef ODD_EXCHANGE_H
#define ODD_EXCHANGE_H

#include "check.h"

static int count_of(int from, int to) { return (from * 7 + to * 3) % 5 * 40 + (from + to) % 3; }
static unsigned seed_of(int from, int to, int turn) { return (unsigned)(turn * 10007 + from * 101 + to); }

typedef struct Exchange {
    unsigned char *send, *receive;
    int *counts[2], *places[2], total[2];
    MPI_Datatype* types;
} Exchange;

static Exchange exchange_new(int size, int rank) {
    Exchange made;
    for (int side = 0; side < 2; ++side) {
        made.counts[side] = malloc(sizeof(int) * (size_t)size);
        made.places[side] = malloc(sizeof(int) * (size_t)size);
        made.total[side] = 0;
        for (int peer = 0; peer < size; ++peer) {
            made.counts[side][peer] = side == 0 ? count_of(rank, peer) : count_of(peer, rank);
            made.places[side][peer] = made.total[side];
            made.total[side] += made.counts[side][peer] + 3;
        }
    }
    made.types = malloc(sizeof(MPI_Datatype) * (size_t)size);
    for (int peer = 0; peer < size; ++peer) made.types[peer] = MPI_BYTE;
    made.send = guarded_new((size_t)made.total[0]);
    made.receive = guarded_new((size_t)made.total[1]);
    return made;
}

static void exchange_fill(const Exchange* exchange, int size, int rank, int turn) {
    memset(exchange->receive, poison_value, (size_t)exchange->total[1]);
    for (int peer = 0; peer < size; ++peer)
        fill(exchange->send + exchange->places[0][peer], (size_t)exchange->counts[0][peer],
             seed_of(rank, peer, turn));
}

static void exchange_verify(const Exchange* exchange, int size, int rank, int turn, const char* what) {
    for (int peer = 0; peer < size; ++peer) {
        const unsigned char* const got = exchange->receive + exchange->places[1][peer];
        verify(got, (size_t)exchange->counts[1][peer], seed_of(peer, rank, turn), what);
        for (int gap = 0; gap < 3; ++gap)
            CHECK(got[exchange->counts[1][peer] + gap] == poison_value, "%s: a byte between two blocks",
                  what);
    }
}

static void exchange_free(Exchange* exchange) {
    guarded_free(exchange->send, (size_t)exchange->total[0]);
    guarded_free(exchange->receive, (size_t)exchange->total[1]);
    for (int side = 0; side < 2; ++side) {
        free(exchange->counts[side]);
        free(exchange->places[side]);
    }
    free(exchange->types);
}

#endif
