/* The buffers of ragged exchanges: blocks of ints with holes between them, forwards or backwards, that know
 * what belongs there. */
#ifndef RAGGED_BLOCKS_H
#define RAGGED_BLOCKS_H

#include "check.h"

/* Ints that rank `from` has for rank `to`. */
typedef struct {
    int unit;   /* of ints */
    int sparse; /* one pair in so many has any */
} Shape;
static int count_of(const Shape* shape, int from, int to) {
    const unsigned mix = (unsigned)(from * 31 + to * 17 + from * to * 7 + 5);
    if (mix % (unsigned)shape->sparse != 0) return 0;
    return (int)(mix % 5) * shape->unit + (from == to ? 1 : 0);
}
static int value_of(int from, int to, int round, int i) {
    return (from * 64 + to) * 1000003 + round * 8191 + i * 3;
}

/* One side of an exchange: blocks of ints, from the last rank's to the first's where `backwards`, with holes;
 * `stride` ints from one element to the next. */
typedef struct {
    int *counts, *places, *data, total, stride;
} Blocks;

static Blocks blocks_new(const Shape* shape, int sends, int backwards, int stride) {
    Blocks blocks;
    blocks.counts = malloc((size_t)check_size * sizeof(int));
    blocks.places = malloc((size_t)check_size * sizeof(int));
    blocks.total = 2;
    blocks.stride = stride;
    for (int i = 0; i < check_size; ++i) {
        const int peer = backwards ? check_size - 1 - i : i;
        blocks.counts[peer] = sends ? count_of(shape, check_rank, peer) : count_of(shape, peer, check_rank);
        blocks.places[peer] = blocks.total;
        blocks.total += blocks.counts[peer] + (backwards ? 1 : 0);
    }
    blocks.data = malloc((size_t)(blocks.total + 1) * (size_t)stride * sizeof(int));
    return blocks;
}
static void blocks_free(Blocks* blocks) {
    free(blocks->counts);
    free(blocks->places);
    free(blocks->data);
}
static void poison(Blocks* blocks) {
    for (int i = 0; i < (blocks->total + 1) * blocks->stride; ++i) blocks->data[i] = -7;
}
static void put(Blocks* blocks, int round) {
    for (int to = 0; to < check_size; ++to)
        for (int i = 0; i < blocks->counts[to]; ++i)
            blocks->data[(blocks->places[to] + i) * blocks->stride] = value_of(check_rank, to, round, i);
}
static void verify_blocks(Blocks* blocks, int round, const char* what) {
    int* const wanted = malloc((size_t)(blocks->total + 1) * (size_t)blocks->stride * sizeof(int));
    for (int i = 0; i < (blocks->total + 1) * blocks->stride; ++i) wanted[i] = -7;
    for (int from = 0; from < check_size; ++from)
        for (int i = 0; i < blocks->counts[from]; ++i)
            wanted[(blocks->places[from] + i) * blocks->stride] = value_of(from, check_rank, round, i);
    for (int i = 0; i < (blocks->total + 1) * blocks->stride; ++i)
        CHECK(blocks->data[i] == wanted[i], "%s, round %d: byte %d is wrong: %d, not %d", what, round, 4 * i,
              blocks->data[i], wanted[i]);
    free(wanted);
}

static void widen(const int* counts, const int* places, MPI_Count** large, MPI_Aint** far) {
    *large = malloc((size_t)check_size * sizeof(MPI_Count));
    *far = malloc((size_t)check_size * sizeof(MPI_Aint));
    for (int i = 0; i < check_size; ++i) (*large)[i] = counts[i], (*far)[i] = places[i];
}

#endif
