/* Random grids and graphs, equal on all ranks, and whose block meets whose on them, from the standard's
 * definition: coordinates, and lists that all ranks know; never from what a library delivers. */
#ifndef TOPOLOGIES_H
#define TOPOLOGIES_H

#include "check.h"

enum { most_edges = 24 };

static unsigned random_state = 1;
/* Equal on all ranks. */
static int below(int limit) {
    random_state = random_state * 1664525u + 1013904223u;
    return (int)((random_state >> 8) % (unsigned)limit);
}

/* What a rank sends to and receives from; -1 beyond a border. Of every rank of the communicator. */
typedef struct {
    MPI_Comm comm;
    int rank, size, is_grid;
    int in, out, sources[most_edges], destinations[most_edges];
    int all_out[64], all_destinations[64][most_edges];
} Topology;

/* Which block of which rank is my block `block`. 0: none. */
static int origin_of(const Topology* t, int block, int* from, int* their_block) {
    *from = t->sources[block];
    if (*from < 0) return 0;
    if (t->is_grid) {
        *their_block = block ^ 1; /* what went up comes from below */
        return 1;
    }
    int ordinal = 0;
    for (int i = 0; i < block; ++i) ordinal += t->sources[i] == *from;
    for (int i = 0; i < t->all_out[*from]; ++i)
        if (t->all_destinations[*from][i] == t->rank && ordinal-- == 0) {
            *their_block = i;
            return 1;
        }
    FAIL("an edge from %d has no beginning", *from);
}

static void learn(Topology* t) {
    MPI_Comm_rank(t->comm, &t->rank);
    MPI_Comm_size(t->comm, &t->size);
    MPI_Allgather(&t->out, 1, MPI_INT, t->all_out, 1, MPI_INT, t->comm);
    MPI_Allgather(t->destinations, most_edges, MPI_INT, t->all_destinations, most_edges, MPI_INT, t->comm);
}

static int make_grid(Topology* t) {
    int dims[3], periods[3];
    const int dimensions = 1 + below(3);
    int left = check_size;
    for (int d = 0; d < dimensions; ++d) {
        int candidates[8], count = 0;
        for (int divisor = 1; divisor <= left && count < 8; ++divisor)
            if (left % divisor == 0) candidates[count++] = divisor;
        dims[d] = d + 1 == dimensions ? left : candidates[below(count)];
        left /= dims[d];
        periods[d] = below(2);
    }
    MPI_Cart_create(MPI_COMM_WORLD, dimensions, dims, periods, below(2), &t->comm);
    t->is_grid = 1;
    t->in = t->out = 2 * dimensions;
    int rank, coords[3];
    MPI_Comm_rank(t->comm, &rank);
    MPI_Cart_coords(t->comm, rank, dimensions, coords);
    /* From the coordinates, not from MPI_Cart_shift. */
    for (int d = 0; d < dimensions; ++d)
        for (int up = 0; up < 2; ++up) {
            int there[3] = {coords[0], coords[1], coords[2]};
            there[d] += up ? 1 : -1;
            int* const place = &t->sources[2 * d + up];
            *place = -1;
            if (periods[d] || (there[d] >= 0 && there[d] < dims[d])) {
                there[d] = (there[d] + dims[d]) % dims[d];
                MPI_Cart_rank(t->comm, there, place);
            }
            t->destinations[2 * d + up] = *place;
        }
    return 1;
}

/* edges[a][b]: how often a sends to b. */
static void draw_edges(int edges[64][64], int symmetric) {
    for (int a = 0; a < check_size; ++a)
        for (int b = 0; b < check_size; ++b) edges[a][b] = below(3) == 0 ? 1 + below(2) : 0;
    for (int a = 0; symmetric && a < check_size; ++a)
        for (int b = 0; b < a; ++b) edges[a][b] = edges[b][a];
}

static int make_graph(Topology* t) {
    int edges[64][64], index[64], targets[64 * most_edges], total = 0;
    draw_edges(edges, 1);
    for (int a = 0; a < check_size; ++a) {
        for (int b = 0; b < check_size; ++b)
            for (int i = 0; i < edges[a][b]; ++i) targets[total++] = b;
        index[a] = total;
    }
    MPI_Graph_create(MPI_COMM_WORLD, check_size, index, targets, below(2), &t->comm);
    int node; /* the rank there, which may be another one */
    MPI_Comm_rank(t->comm, &node);
    const int begin = node == 0 ? 0 : index[node - 1];
    t->in = t->out = index[node] - begin;
    for (int i = 0; i < t->in; ++i) t->sources[i] = t->destinations[i] = targets[begin + i];
    return 1;
}

static int make_distributed(Topology* t, int adjacent) {
    int edges[64][64], weights[2 * most_edges], in = 0, out = 0;
    draw_edges(edges, 0);
    const int turned = below(2); /* sources in the other order than ranks */
    for (int i = 0; i < 2 * most_edges; ++i) weights[i] = 1;
    for (int i = 0; i < check_size; ++i) {
        const int other = turned ? check_size - 1 - i : i;
        for (int k = 0; k < edges[other][check_rank]; ++k) t->sources[in++] = other;
        for (int k = 0; k < edges[check_rank][i]; ++k) t->destinations[out++] = i;
    }
    const int weighted = below(2), reorder = below(2);
    if (adjacent) {
        /* Where there are weights, no edges have MPI_WEIGHTS_EMPTY. */
        int* const none = weighted ? MPI_WEIGHTS_EMPTY : MPI_UNWEIGHTED;
        int* const some = weighted ? weights : MPI_UNWEIGHTED;
        MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, in, t->sources, in == 0 ? none : some, out,
                                       t->destinations, out == 0 ? none : some, MPI_INFO_NULL, reorder,
                                       &t->comm);
        t->in = in;
        t->out = out;
        if (!reorder) return 1;
    } else {
        const int degree = out;
        int from = check_rank;
        MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &from, &degree, t->destinations,
                              weighted ? weights : MPI_UNWEIGHTED, MPI_INFO_NULL, reorder, &t->comm);
    }
    /* The order of neighbours is MPI's to choose here, and which rank has them where it may give others. */
    int given = 0;
    MPI_Dist_graph_neighbors_count(t->comm, &t->in, &t->out, &given);
    MPI_Dist_graph_neighbors(t->comm, t->in, t->sources, weights, t->out, t->destinations,
                             weights + most_edges);
    return 1;
}

/* Of any kind. At most 8 ranks. */
static void make_any(Topology* t) {
    CHECK(check_size <= 8, "at most 8 ranks");
    memset(t, 0, sizeof *t);
    switch (below(4)) {
        case 0:
            make_graph(t);
            break;
        case 1:
            make_distributed(t, 1);
            break;
        case 2:
            make_distributed(t, 0);
            break;
        default:
            make_grid(t);
    }
    learn(t);
}

#endif
