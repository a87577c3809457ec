/* A stencil of seven points on a grid of three dimensions, spread over the ranks: every cell becomes a
 * mixture of itself and its six neighbours, again and again. Between two steps each rank gets the outermost
 * cells of its neighbours, in one of several ways of plain MPI:
 *
 *     isend       MPI_Irecv, MPI_Isend, MPI_Waitall, receives first
 *     persistent  the same with MPI_Recv_init, MPI_Send_init, MPI_Startall
 *     neighbor    MPI_Neighbor_alltoallw
 *     ineighbor   MPI_Ineighbor_alltoallw, the cells inside, MPI_Wait, the cells at the faces
 *     init        the same with MPI_Neighbor_alltoallw_init and MPI_Start
 *
 * Faces are subarrays: what lies strided is packed by whoever moves it. Cells are integers, so that the
 * result is the same in any order; at the end each rank computes the whole grid alone and compares every cell
 * of its own and of its halo, to the last one.
 *
 *     stencil [--cells X Y Z] [--steps N] [--repeat N] [--periodic] [--version NAME] [--damage]
 *
 * Exit status: 0 right, 1 wrong, 2 bad input.
 */
#include <mpi.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/whole_number.h"

enum { dimensions = 3, faces = 2 * dimensions };
typedef uint32_t Cell;

typedef struct {
    int cells[dimensions], steps, repeat, periodic, damage;
    const char* version; /* null: all */
} Options;

/* A rank's part of the grid, with a cell of halo on every side. */
typedef struct {
    MPI_Comm comm;
    int rank, begin[dimensions], count[dimensions], neighbour[faces];
    Cell *now, *next;
    MPI_Datatype outgoing[faces], incoming[faces];
} Part;

static size_t at(const int* count, int x, int y, int z) {
    return ((size_t)x * (size_t)(count[1] + 2) + (size_t)y) * (size_t)(count[2] + 2) + (size_t)z;
}
static size_t volume(const int* count) {
    return (size_t)(count[0] + 2) * (size_t)(count[1] + 2) * (size_t)(count[2] + 2);
}
static Cell first_value(int x, int y, int z) {
    Cell mix = (Cell)x * 73856093u ^ (Cell)y * 19349663u ^ (Cell)z * 83492791u;
    mix ^= mix >> 13;
    return mix * 0x9e3779b1u;
}

/* The cells from `from` to before `to` of a grid of `count` cells. */
static void step(const int* count, const int* from, const int* to, const Cell* now, Cell* next) {
    const size_t row = (size_t)(count[2] + 2), plane = row * (size_t)(count[1] + 2);
    for (int x = from[0]; x < to[0]; ++x)
        for (int y = from[1]; y < to[1]; ++y) {
            const size_t line = at(count, x, y, 0);
            for (int z = from[2]; z < to[2]; ++z) {
                const Cell* const cell = now + line + (size_t)z;
                const Cell around = cell[-1] + cell[1] + cell[-(ptrdiff_t)row] + cell[row] +
                                    cell[-(ptrdiff_t)plane] + cell[plane];
                next[line + (size_t)z] = *cell * 5u + around * 3u + 1u;
            }
        }
}

static void step_inside(const Part* part) {
    int from[dimensions], to[dimensions];
    for (int d = 0; d < dimensions; ++d) {
        from[d] = 2;
        to[d] = part->count[d];
    }
    step(part->count, from, to, part->now, part->next);
}

/* What is not inside: two slabs per dimension, without what those before had. */
static void step_faces(const Part* part) {
    int low[dimensions], high[dimensions];
    for (int d = 0; d < dimensions; ++d) {
        low[d] = 1;
        high[d] = part->count[d] + 1;
    }
    for (int d = 0; d < dimensions; ++d) {
        int from[dimensions], to[dimensions];
        memcpy(from, low, sizeof from);
        memcpy(to, high, sizeof to);
        to[d] = 2;
        step(part->count, from, to, part->now, part->next);
        if (part->count[d] > 1) {
            memcpy(from, low, sizeof from);
            memcpy(to, high, sizeof to);
            from[d] = part->count[d];
            step(part->count, from, to, part->now, part->next);
        }
        low[d] = 2;
        high[d] = part->count[d];
    }
}

static MPI_Datatype slab(const int* count, int dimension, int where) {
    int sizes[dimensions], extent[dimensions], begin[dimensions];
    for (int d = 0; d < dimensions; ++d) {
        sizes[d] = count[d] + 2;
        extent[d] = d == dimension ? 1 : count[d];
        begin[d] = d == dimension ? where : 1;
    }
    MPI_Datatype type;
    MPI_Type_create_subarray(dimensions, sizes, extent, begin, MPI_ORDER_C, MPI_UINT32_T, &type);
    MPI_Type_commit(&type);
    return type;
}

/* Here alone perhaps, and the others would wait. */
static void lack_memory(void) {
    fprintf(stderr, "stencil: no memory for this grid\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
    exit(2);
}

/* 0: the grid has too few cells for so many ranks. */
static int make_part(const Options* options, Part* part) {
    int size, dims[dimensions] = {0, 0, 0}, periods[dimensions], coords[dimensions];
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Dims_create(size, dimensions, dims);
    for (int d = 0; d < dimensions; ++d) {
        periods[d] = options->periodic;
        if (options->cells[d] < dims[d]) return 0;
    }
    MPI_Cart_create(MPI_COMM_WORLD, dimensions, dims, periods, 0, &part->comm);
    MPI_Comm_rank(part->comm, &part->rank);
    MPI_Cart_coords(part->comm, part->rank, dimensions, coords);
    for (int d = 0; d < dimensions; ++d) {
        const long cells = options->cells[d];
        part->begin[d] = (int)(cells * coords[d] / dims[d]);
        part->count[d] = (int)(cells * (coords[d] + 1) / dims[d]) - part->begin[d];
        MPI_Cart_shift(part->comm, d, 1, &part->neighbour[2 * d], &part->neighbour[2 * d + 1]);
    }
    part->now = calloc(volume(part->count), sizeof(Cell));
    part->next = calloc(volume(part->count), sizeof(Cell));
    if (part->now == NULL || part->next == NULL) lack_memory();
    for (int d = 0; d < dimensions; ++d) {
        part->outgoing[2 * d] = slab(part->count, d, 1);
        part->outgoing[2 * d + 1] = slab(part->count, d, part->count[d]);
        part->incoming[2 * d] = slab(part->count, d, 0);
        part->incoming[2 * d + 1] = slab(part->count, d, part->count[d] + 1);
    }
    return 1;
}

static void fill(const Part* part) {
    memset(part->now, 0, volume(part->count) * sizeof(Cell));
    memset(part->next, 0, volume(part->count) * sizeof(Cell));
    for (int x = 0; x < part->count[0]; ++x)
        for (int y = 0; y < part->count[1]; ++y)
            for (int z = 0; z < part->count[2]; ++z)
                part->now[at(part->count, x + 1, y + 1, z + 1)] =
                    first_value(part->begin[0] + x, part->begin[1] + y, part->begin[2] + z);
}

typedef enum { isend, persistent, neighbor, ineighbor, init, versions } Version;
static const char* const names[versions] = {"isend", "persistent", "neighbor", "ineighbor", "init"};

static const int one_each[faces] = {1, 1, 1, 1, 1, 1};
static const MPI_Aint at_begin[faces] = {0, 0, 0, 0, 0, 0};

/* The two grids change places at every step, so whatever is made once is made for each. */
static int make_requests(Part* part, Version version, Cell* grid, MPI_Request* requests) {
    if (version == init) {
        MPI_Neighbor_alltoallw_init(grid, one_each, at_begin, part->outgoing, grid, one_each, at_begin,
                                    part->incoming, part->comm, MPI_INFO_NULL, requests);
        return 1;
    }
    /* The tag says which way a message goes: two neighbours may be one rank. */
    for (int face = 0; face < faces; ++face)
        MPI_Recv_init(grid, 1, part->incoming[face], part->neighbour[face], face ^ 1, part->comm,
                      &requests[face]);
    for (int face = 0; face < faces; ++face)
        MPI_Send_init(grid, 1, part->outgoing[face], part->neighbour[face], face, part->comm,
                      &requests[faces + face]);
    return 2 * faces;
}

/* Sets the seconds of all steps, and of them those inside MPI; making what is made once is not counted. */
static void run(Part* part, Version version, int steps, double* took) {
    MPI_Request made[2][2 * faces];
    Cell* const grids[2] = {part->now, part->next};
    int requests = 0;
    double inside = 0;
    for (int i = 0; i < 2 && (version == persistent || version == init); ++i)
        requests = make_requests(part, version, grids[i], made[i]);
    MPI_Barrier(part->comm);
    const double first = MPI_Wtime();
    for (int i = 0; i < steps; ++i) {
        Cell* const grid = part->now;
        MPI_Request* const own = made[grid == grids[1]];
        double begin = MPI_Wtime();
        switch (version) {
            case isend:
                for (int face = 0; face < faces; ++face)
                    MPI_Irecv(grid, 1, part->incoming[face], part->neighbour[face], face ^ 1, part->comm,
                              &own[face]);
                for (int face = 0; face < faces; ++face)
                    MPI_Isend(grid, 1, part->outgoing[face], part->neighbour[face], face, part->comm,
                              &own[faces + face]);
                MPI_Waitall(2 * faces, own, MPI_STATUSES_IGNORE);
                break;
            case persistent:
                MPI_Startall(requests, own);
                MPI_Waitall(requests, own, MPI_STATUSES_IGNORE);
                break;
            case neighbor:
                MPI_Neighbor_alltoallw(grid, one_each, at_begin, part->outgoing, grid, one_each, at_begin,
                                       part->incoming, part->comm);
                break;
            case ineighbor:
                MPI_Ineighbor_alltoallw(grid, one_each, at_begin, part->outgoing, grid, one_each, at_begin,
                                        part->incoming, part->comm, own);
                break;
            default:
                MPI_Start(own);
        }
        inside += MPI_Wtime() - begin;
        step_inside(part);
        if (version == ineighbor || version == init) {
            begin = MPI_Wtime();
            MPI_Wait(own, MPI_STATUS_IGNORE);
            inside += MPI_Wtime() - begin;
        }
        step_faces(part);
        part->now = part->next;
        part->next = grid;
    }
    took[0] = MPI_Wtime() - first;
    took[1] = inside;
    for (int i = 0; i < 2 && (version == persistent || version == init); ++i)
        for (int request = 0; request < requests; ++request) MPI_Request_free(&made[i][request]);
}

/* The whole grid, by one rank. Null: no memory. */
static Cell* alone(const Options* options) {
    Part whole = {.comm = MPI_COMM_NULL};
    memcpy(whole.count, options->cells, sizeof whole.count);
    const int* const count = whole.count;
    whole.now = malloc(volume(count) * sizeof(Cell));
    whole.next = malloc(volume(count) * sizeof(Cell));
    if (whole.now == NULL || whole.next == NULL) return NULL;
    fill(&whole);
    for (int i = 0; i < options->steps; ++i) {
        for (int x = 0; options->periodic && x < count[0] + 2; ++x)
            for (int y = 0; y < count[1] + 2; ++y)
                for (int z = 0; z < count[2] + 2; ++z)
                    whole.now[at(count, x, y, z)] =
                        whole.now[at(count, (x - 1 + count[0]) % count[0] + 1,
                                     (y - 1 + count[1]) % count[1] + 1, (z - 1 + count[2]) % count[2] + 1)];
        step_inside(&whole);
        step_faces(&whole);
        Cell* const last = whole.now;
        whole.now = whole.next;
        whole.next = last;
    }
    free(whole.next);
    return whole.now;
}

/* Cells of this rank, and of its halo after one more exchange, that are not what one rank alone computed. */
static long wrong_cells(Part* part, const Options* options, const Cell* whole) {
    MPI_Neighbor_alltoallw(part->now, one_each, at_begin, part->outgoing, part->now, one_each, at_begin,
                           part->incoming, part->comm);
    long wrong = 0;
    for (int x = 0; x < part->count[0] + 2; ++x)
        for (int y = 0; y < part->count[1] + 2; ++y)
            for (int z = 0; z < part->count[2] + 2; ++z) {
                const int local[dimensions] = {x, y, z};
                int global[dimensions], outside = 0, beyond = 0;
                for (int d = 0; d < dimensions; ++d) {
                    const int cells = options->cells[d];
                    global[d] = part->begin[d] + local[d] - 1;
                    outside += local[d] == 0 || local[d] == part->count[d] + 1;
                    beyond += global[d] < 0 || global[d] >= cells;
                    global[d] = (global[d] + cells) % cells;
                }
                if (outside > 1) continue; /* edges of the halo are nobody's */
                const Cell wanted =
                    beyond && !options->periodic
                        ? 0
                        : whole[at(options->cells, global[0] + 1, global[1] + 1, global[2] + 1)];
                wrong += part->now[at(part->count, x, y, z)] != wanted;
            }
    return wrong;
}

static int compare(const void* a, const void* b) {
    const double left = *(const double*)a, right = *(const double*)b;
    return (left > right) - (left < right);
}

static int read_options(int argc, char** argv, Options* options) {
    for (int i = 1; i < argc; ++i) {
        const int more = argc - i - 1;
        if (strcmp(argv[i], "--cells") == 0 && more >= 3) {
            for (int d = 0; d < dimensions; ++d) options->cells[d] = whole_number(argv[++i]);
        } else if (strcmp(argv[i], "--steps") == 0 && more >= 1) {
            options->steps = whole_number(argv[++i]);
        } else if (strcmp(argv[i], "--repeat") == 0 && more >= 1) {
            options->repeat = whole_number(argv[++i]);
        } else if (strcmp(argv[i], "--version") == 0 && more >= 1) {
            options->version = argv[++i];
        } else if (strcmp(argv[i], "--periodic") == 0) {
            options->periodic = 1;
        } else if (strcmp(argv[i], "--damage") == 0) {
            options->damage = 1;
        } else {
            return 0;
        }
    }
    int known = options->version == NULL;
    for (int i = 0; i < versions && !known; ++i) known = strcmp(options->version, names[i]) == 0;
    return known && options->cells[0] > 0 && options->cells[1] > 0 && options->cells[2] > 0 &&
           options->steps > 0 && options->repeat > 0;
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    Options options = {{48, 48, 48}, 20, 5, 0, 0, NULL};
    Part part;
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (!read_options(argc, argv, &options) || !make_part(&options, &part)) {
        if (rank == 0)
            fprintf(stderr,
                    "usage: stencil [--cells X Y Z] [--steps N] [--repeat N] [--periodic] [--damage]\n"
                    "               [--version isend|persistent|neighbor|ineighbor|init]\n"
                    "Numbers from 1 on, and in each dimension at least as many cells as ranks.\n");
        MPI_Finalize();
        return 2;
    }
    Cell* const whole = alone(&options);
    int lacks = whole == NULL, any_lacks;
    MPI_Allreduce(&lacks, &any_lacks, 1, MPI_INT, MPI_MAX, part.comm);
    double* const seconds = malloc((size_t)(2 * versions * options.repeat) * sizeof(double));
    if (any_lacks || seconds == NULL) lack_memory();
    long all_wrong = 0;
    /* In turns, the first of which warms up. */
    for (int turn = -1; turn < options.repeat; ++turn)
        for (int version = 0; version < versions; ++version) {
            if (options.version != NULL && strcmp(options.version, names[version]) != 0) continue;
            fill(&part);
            double took[2], slowest[2];
            run(&part, (Version)version, options.steps, took);
            MPI_Allreduce(took, slowest, 2, MPI_DOUBLE, MPI_MAX, part.comm);
            if (turn >= 0) memcpy(&seconds[2 * (version * options.repeat + turn)], slowest, sizeof slowest);
            if (options.damage && rank == size - 1)
                part.now[at(part.count, part.count[0], part.count[1], part.count[2])] ^= 1u;
            long wrong = wrong_cells(&part, &options, whole), total;
            MPI_Allreduce(&wrong, &total, 1, MPI_LONG, MPI_SUM, part.comm);
            all_wrong += total;
        }
    if (rank == 0) {
        printf("%d x %d x %d cells on %d ranks, %d steps%s\n", options.cells[0], options.cells[1],
               options.cells[2], size, options.steps, options.periodic ? ", periodic" : "");
        printf("%-12s %14s %14s\n", "version", "ms per step", "inside MPI");
    }
    for (int version = 0; version < versions && rank == 0; ++version) {
        if (options.version != NULL && strcmp(options.version, names[version]) != 0) continue;
        double* const own = &seconds[2 * version * options.repeat];
        double sorted[2][1000];
        const int samples = options.repeat < 1000 ? options.repeat : 1000;
        for (int i = 0; i < samples; ++i) sorted[0][i] = own[2 * i], sorted[1][i] = own[2 * i + 1];
        for (int i = 0; i < 2; ++i) qsort(sorted[i], (size_t)samples, sizeof(double), compare);
        printf("%-12s %14.4f %14.4f\n", names[version], 1e3 * sorted[0][samples / 2] / options.steps,
               1e3 * sorted[1][samples / 2] / options.steps);
    }
    if (rank == 0) printf("%s\n", all_wrong == 0 ? "right" : "WRONG");
    for (int face = 0; face < faces; ++face) {
        MPI_Type_free(&part.outgoing[face]);
        MPI_Type_free(&part.incoming[face]);
    }
    free(seconds), free(whole), free(part.now), free(part.next);
    MPI_Comm_free(&part.comm);
    MPI_Finalize();
    return all_wrong != 0;
}
