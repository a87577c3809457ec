/* What each rank sends its neighbours of a topology by which collective, where it lies, and what must lie
 * there when it has come. */
#ifndef NEIGHBOUR_BLOCKS_H
#define NEIGHBOUR_BLOCKS_H

#include "topologies.h"

enum { most_ints = 40 };

typedef enum { allgather, allgatherv, alltoall, alltoallv, alltoallw, kinds } Kind;
static const char* const names[] = {"allgather", "allgatherv", "alltoall", "alltoallv", "alltoallw"};

static int ints_of(Kind kind, int same, int rank, int block) {
    const unsigned mix = (unsigned)(rank * 37 + block * 11 + same);
    if (kind == allgather || kind == alltoall) return same;
    if (kind == allgatherv) return (int)(mix - (unsigned)(block * 11)) % most_ints;
    return (int)(mix % 3 == 0 ? 0 : mix % most_ints);
}
static int value_of(Kind kind, int rank, int block, int round, int i) {
    if (kind == allgather || kind == allgatherv) block = 0;
    return rank * 1000003 + block * 30011 + round * 997 + i * 3 + 1;
}

/* Buffers with room for the largest block, and one int between blocks that nobody may touch. Of an alltoallw
 * what is sent are columns of a matrix: every third int. */
typedef struct {
    int counts[most_edges], places[most_edges], memory[most_edges * (3 * most_ints + 1) + 1];
    MPI_Aint far[most_edges];
    MPI_Datatype types[most_edges];
} Side;
static Side sent, received;
static int expected[sizeof received.memory / sizeof(int)];

static void lay_out(const Topology* t, Kind kind, int same) {
    const int gathers = kind == allgather || kind == allgatherv;
    const int column = 3;
    for (int block = 0, place = 0; block < t->out; ++block) {
        const int count = ints_of(kind, same, t->rank, gathers ? 0 : block);
        sent.counts[block] = count;
        sent.places[block] = gathers ? 0 : place;
        if (kind == alltoallw) {
            const int sizes[2] = {count > 0 ? count : 1, column}, sub[2] = {count > 0 ? count : 1, 1};
            const int begin[2] = {0, 1};
            MPI_Type_create_subarray(2, sizes, sub, begin, MPI_ORDER_C, MPI_INT, &sent.types[block]);
            MPI_Type_commit(&sent.types[block]);
            sent.far[block] = (MPI_Aint)place * (MPI_Aint)sizeof(int);
            sent.counts[block] = count > 0;
            place += column * count;
        } else {
            place += count + (kind == alltoallv);
        }
    }
    /* Backwards where a call says where. */
    int place = 0;
    for (int turn = 0; turn < t->in; ++turn) {
        const int placed = kind == allgatherv || kind == alltoallv || kind == alltoallw;
        const int block = placed ? t->in - 1 - turn : turn;
        int from, their_block;
        const int known = origin_of(t, block, &from, &their_block);
        /* Beyond a border there is somebody to ask for any number. */
        const int count = known ? ints_of(kind, same, from, gathers ? 0 : their_block) : same;
        received.counts[block] = count;
        received.places[block] = place;
        received.far[block] = (MPI_Aint)place * (MPI_Aint)sizeof(int);
        received.types[block] = MPI_INT;
        place += count + placed;
    }
}

/* Of an exchange that is to come: what is sent, and what must lie there afterwards. */
static void expect(const Topology* t, Kind kind, int same, int round) {
    const int words = (int)(sizeof received.memory / sizeof(int));
    for (int i = 0; i < words; ++i) received.memory[i] = expected[i] = -7 - round;
    for (int block = 0; block < t->in; ++block) {
        int from, their_block;
        if (!origin_of(t, block, &from, &their_block)) continue;
        for (int i = 0; i < received.counts[block]; ++i)
            expected[received.places[block] + i] = value_of(kind, from, their_block, round, i);
    }
    for (int block = 0; block < t->out; ++block) {
        if (kind == alltoallw) {
            const int ints = ints_of(kind, same, t->rank, block);
            for (int i = 0; i < ints; ++i)
                sent.memory[(int)(sent.far[block] / (MPI_Aint)sizeof(int)) + 3 * i + 1] =
                    value_of(kind, t->rank, block, round, i);
        } else {
            for (int i = 0; i < sent.counts[block]; ++i)
                sent.memory[sent.places[block] + i] = value_of(kind, t->rank, block, round, i);
        }
    }
}

static void verify_received(const Topology* t, const char* what) {
    const int words = (int)(sizeof received.memory / sizeof(int));
    for (int i = 0; i < words; ++i)
        CHECK(received.memory[i] == expected[i], "%s, %s of %d: byte %d is wrong: %d, not %d", what,
              t->is_grid ? "a grid" : "a graph", t->size, 4 * i, received.memory[i], expected[i]);
}
/* What lay_out() made. */
static void free_types(const Topology* t, Kind kind) {
    for (int block = 0; kind == alltoallw && block < t->out; ++block) MPI_Type_free(&sent.types[block]);
}

#endif
