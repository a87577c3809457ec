/* Exchanges that are repeated with more buffers in turn than are kept, or with another one in every call:
 * what was made of their counts is used again, so they take less of the heap than exchanges with counts that
 * are new. What was made of memory of last resort is not kept. And the staged faces of exchanges that are
 * kept stay within THALWEG_PLAN_MEMORY.
 *
 *     turns LOW HIGH      with eight staged exchanges the process has grown by LOW to HIGH MiB
 */
#include "allocation_count.h"

enum { edges = 16, room = 4096, buffers = 12, calls = 100 };
enum { faces = 2, blocks = 1 << 16, kept = 8 };

/* All edges to the rank above and from the one below: the k-th meets the k-th. */
static MPI_Comm make_ring(int degree) {
    int from[edges], to[edges];
    for (int i = 0; i < degree; ++i) {
        from[i] = (check_rank + check_size - 1) % check_size;
        to[i] = (check_rank + 1) % check_size;
    }
    MPI_Comm comm;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, degree, from, MPI_UNWEIGHTED, degree, to, MPI_UNWEIGHTED,
                                   MPI_INFO_NULL, 0, &comm);
    return comm;
}

/* Each edge carries `count` ints. Returns how often memory was asked for. */
static unsigned long exchange(MPI_Comm ring, int count, int round, int* to) {
    static int from[edges * room];
    int counts[edges], places[edges];
    MPI_Request request;
    for (int i = 0; i < edges; ++i) {
        counts[i] = count;
        places[i] = i * room;
        for (int k = 0; k < count; ++k) {
            from[i * room + k] = check_rank * 100003 + round * 101 + i * room + k;
            to[i * room + k] = -1;
        }
    }
    from_us = 0;
    counting = 1;
    MPI_Ineighbor_alltoallv(from, counts, places, MPI_INT, to, counts, places, MPI_INT, ring, &request);
    if (expect_thalweg()) CHECK(was_accelerated(), "native: %s", last_reason());
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    counting = 0;
    const int below = (check_rank + check_size - 1) % check_size;
    for (int i = 0; i < edges; ++i)
        for (int k = 0; k < count; ++k)
            CHECK(to[i * room + k] == below * 100003 + round * 101 + i * room + k,
                  "round %d, edge %d, int %d", round, i, k);
    return from_us;
}

static void check_heap(MPI_Comm ring) {
    static int to[edges * room + calls];
    int* in_turn[buffers];
    unsigned long made = 0, turns = 0, others = 0;
    for (int i = 0; i < buffers; ++i) in_turn[i] = malloc(edges * room * sizeof(int));
    for (int i = 0; i < 10; ++i) made += exchange(ring, 8 + i, i, to);
    for (int i = 0; i < 2 * buffers; ++i) exchange(ring, 5, i, in_turn[i % buffers]);
    for (int i = 0; i < calls; ++i) turns += exchange(ring, 5, i, in_turn[i % buffers]);
    for (int i = 0; i < calls; ++i) others += exchange(ring, 5, i, to + i);
    printf("rank %d: new counts take %lu allocations, %d buffers in turn %lu, another in every call %lu\n",
           check_rank, made / 10, buffers, turns / calls, others / calls);
    if (expect_thalweg()) {
        CHECK(2 * turns / calls < made / 10, "%lu allocations in %d calls", turns, calls);
        CHECK(2 * others / calls < made / 10, "%lu allocations in %d calls", others, calls);
    }
    /* What a call without memory makes is lent from the reserve: it is not kept, so the next call makes it
     * anew, and the one after that finds it. */
    refusing = 1;
    exchange(ring, 19, 0, to);
    refusing = 0;
    const unsigned long anew = exchange(ring, 19, 1, to), found = exchange(ring, 19, 2, to);
    printf("rank %d: without memory, then %lu allocations, then %lu\n", check_rank, anew, found);
    if (expect_thalweg()) CHECK(2 * found < anew, "%lu and %lu allocations", anew, found);
    for (int i = 0; i < buffers; ++i) free(in_turn[i]);
}

/* Four doubles of every eight, 2 MiB a face, where the receive buffer is another one in every call. */
static void check_growth(MPI_Comm ring, long low, long high) {
    enum { face = 8 * blocks, all = faces * face + 8 * kept };
    static double from[all], to[all];
    const int ones[faces] = {1, 1};
    const MPI_Aint places[faces] = {0, face * sizeof(double)};
    MPI_Datatype half;
    MPI_Type_vector(blocks, 4, 8, MPI_DOUBLE, &half);
    MPI_Type_commit(&half);
    const MPI_Datatype types[faces] = {half, half};
    const int below = (check_rank + check_size - 1) % check_size;
    long before = 0;
    for (int round = 0; round < 2 * kept; ++round) {
        double* const begin = to + 8 * (round % kept);
        for (int i = 0; i < all; ++i) from[i] = 1e7 * check_rank + 1e6 * round + i, to[i] = -1;
        const uint64_t seen = looked_at();
        MPI_Neighbor_alltoallw(from, ones, places, types, begin, ones, places, types, ring);
        if (expect_thalweg()) CHECK(looked_at() != seen && was_accelerated(), "native: %s", last_reason());
        for (int i = 0; i < faces * face; ++i)
            if (begin[i] != (i % 8 > 3 ? -1 : 1e7 * below + 1e6 * round + i))
                FAIL("round %d, double %d is %g", round, i, begin[i]);
        if (round == 0) before = resident_kib();
    }
    const long grown = (resident_kib() - before) >> 10;
    printf("rank %d has grown by %ld MiB\n", check_rank, grown);
    CHECK(grown >= low && grown <= high, "it has grown by %ld MiB, not %ld to %ld", grown, low, high);
    MPI_Type_free(&half);
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, MPI_THREAD_SINGLE);
    find_us();
    MPI_Comm many = make_ring(edges), two = make_ring(faces);
    check_heap(many);
    if (argc > 2) check_growth(two, atol(argv[1]), atol(argv[2]));
    MPI_Comm_free(&many);
    MPI_Comm_free(&two);
    return check_end();
}
