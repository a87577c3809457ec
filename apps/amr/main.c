/* An exchange between blocks of a mesh that is refined where a sphere's surface passes, in the manner of
 * Mantevo's miniAMR: in every step the faces of all blocks are exchanged in three stages, one per axis, one
 * message per neighbouring rank and stage; every few steps the sphere moves on, the mesh is made anew around
 * it, blocks change their ranks, and with them all messages. In one of several ways of plain MPI:
 *
 *     isend       MPI_Irecv, packing and MPI_Isend rank by rank, MPI_Waitany and unpacking
 *     waitall     the same with MPI_Waitall before the first is unpacked
 *     persistent  as isend, with MPI_Recv_init and MPI_Send_init after every refinement; the receives of all
 *                 three stages are started before the first one
 *     neighbor    MPI_Neighbor_alltoallw on a graph of each stage, made after every refinement
 *     init        MPI_Neighbor_alltoallw_init on the same
 *
 * What leaves the host is sent first; faces between blocks of one rank are copied while messages are on their
 * way, where the version allows it. At the end every cell and every halo is compared with the same mesh on
 * one rank alone.
 *
 *     amr [--blocks X Y Z] [--cells N] [--levels N] [--steps N] [--refine-every N] [--repeat N]
 *         [--version NAME] [--damage]
 *
 * Exit status: 0 right, 1 wrong, 2 bad input.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "amr/exchange.h"
#include "common/whole_number.h"

typedef struct {
    int blocks[amr_axes], cells, levels, steps, refine_every, repeat, damage;
    const char* version; /* null: all */
} Options;

/* The sphere goes from one corner to the other, a block of level 0 and a bit at a time. */
static AmrSphere sphere_at(const Options* options, int refinement) {
    AmrSphere sphere;
    const int64_t block = (int64_t)amr_units << options->levels;
    for (int d = 0; d < amr_axes; ++d) {
        const int64_t side = options->blocks[d] * block;
        sphere.centre[d] = side / 4 + (int64_t)refinement * block * 3 / 8 % (side / 2 + 1);
    }
    sphere.radius = block * 3 / 4;
    return sphere;
}

/* A mesh and the blocks that this rank has of it; others are null. */
typedef struct {
    AmrMesh* mesh;
    AmrCell** data;
} Blocks;

static void* need(void* memory) {
    if (memory == NULL) {
        fprintf(stderr, "amr: no memory\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    return memory;
}

/* rank < 0: all blocks. */
static Blocks make_blocks(const Options* options, int refinement, int rank, int ranks) {
    const AmrSphere sphere = sphere_at(options, refinement);
    Blocks blocks;
    blocks.mesh = need(amr_make_mesh(options->blocks, options->levels, options->cells, ranks, &sphere));
    blocks.data = need(calloc((size_t)blocks.mesh->count, sizeof *blocks.data));
    for (int leaf = 0; leaf < blocks.mesh->count; ++leaf)
        if (rank < 0 || blocks.mesh->leaves[leaf].owner == rank)
            blocks.data[leaf] = need(calloc(amr_volume(blocks.mesh), sizeof(AmrCell)));
    return blocks;
}

static void free_blocks(Blocks* blocks) {
    for (int leaf = 0; leaf < blocks->mesh->count; ++leaf) free(blocks->data[leaf]);
    free(blocks->data);
    amr_free_mesh(blocks->mesh);
}

/* Takes the cells of a block from those of the mesh before. */
static void refill(const Blocks* old, Blocks* now, int leaf) {
    const AmrLeaf* const own = &now->mesh->leaves[leaf];
    const int n = now->mesh->cells;
    for (int x = 0; x < n; ++x)
        for (int y = 0; y < n; ++y)
            for (int z = 0; z < n; ++z) {
                const int cell[amr_axes] = {own->at[0] * n + x, own->at[1] * n + y, own->at[2] * n + z};
                now->data[leaf][amr_place(now->mesh, x + 1, y + 1, z + 1)] =
                    amr_value(old->mesh, old->data, own->level, cell);
            }
}

/* Whether any block of `owner` in the mesh `now` has cells of this leaf of the mesh `old`. */
static int wants(const Blocks* old, int leaf, const Blocks* now, int owner) {
    for (int other = 0; other < now->mesh->count; ++other)
        if (now->mesh->leaves[other].owner == owner && amr_overlap(old->mesh, leaf, now->mesh, other))
            return 1;
    return 0;
}

/* From one mesh to the next one: whole blocks go to whoever has a part of them, and are then cut. */
static Blocks move_on(const Options* options, int refinement, Blocks* old, int rank, int ranks) {
    Blocks now = make_blocks(options, refinement, rank, ranks);
    if (rank >= 0) {
        const int count = old->mesh->count, cells = (int)amr_volume(old->mesh);
        MPI_Request* const requests = need(malloc((size_t)count * (size_t)(ranks + 1) * sizeof *requests));
        int posted = 0;
        for (int leaf = 0; leaf < count; ++leaf) {
            const int owner = old->mesh->leaves[leaf].owner;
            if (owner != rank && wants(old, leaf, &now, rank)) {
                old->data[leaf] = need(malloc((size_t)cells * sizeof(AmrCell)));
                MPI_Irecv(old->data[leaf], cells, MPI_UINT32_T, owner, leaf, MPI_COMM_WORLD,
                          &requests[posted++]);
            }
            for (int to = 0; owner == rank && to < ranks; ++to)
                if (to != rank && wants(old, leaf, &now, to))
                    MPI_Isend(old->data[leaf], cells, MPI_UINT32_T, to, leaf, MPI_COMM_WORLD,
                              &requests[posted++]);
        }
        MPI_Waitall(posted, requests, MPI_STATUSES_IGNORE);
        free(requests);
    }
    for (int leaf = 0; leaf < now.mesh->count; ++leaf)
        if (now.data[leaf] != NULL) refill(old, &now, leaf);
    free_blocks(old);
    return now;
}

static Blocks begin(const Options* options, int rank, int ranks) {
    Blocks blocks = make_blocks(options, 0, rank, ranks);
    for (int leaf = 0; leaf < blocks.mesh->count; ++leaf)
        if (blocks.data[leaf] != NULL) amr_first_values(blocks.mesh, leaf, blocks.data[leaf]);
    return blocks;
}

static void step_all(Blocks* blocks, AmrCell* scratch) {
    for (int leaf = 0; leaf < blocks->mesh->count; ++leaf)
        if (blocks->data[leaf] != NULL) amr_step(blocks->mesh, blocks->data[leaf], scratch);
}

/* All steps on one rank, halos by their definition; and the halos after the last one. */
static Blocks alone(const Options* options, int ranks, AmrCell* scratch) {
    Blocks all = begin(options, -1, ranks);
    for (int step = 0; step <= options->steps; ++step) {
        if (step > 0 && step % options->refine_every == 0)
            all = move_on(options, step / options->refine_every, &all, -1, ranks);
        for (int leaf = 0; leaf < all.mesh->count; ++leaf) amr_define_halo(all.mesh, all.data, leaf);
        if (step < options->steps) step_all(&all, scratch);
    }
    return all;
}

/* Cells of this rank's blocks and of their faces' halos that are not what one rank alone computed. */
static long wrong_cells(const Blocks* blocks, const Blocks* all) {
    const int n = blocks->mesh->cells;
    long wrong = 0;
    for (int leaf = 0; leaf < blocks->mesh->count; ++leaf) {
        if (blocks->data[leaf] == NULL) continue;
        for (int x = 0; x < n + 2; ++x)
            for (int y = 0; y < n + 2; ++y)
                for (int z = 0; z < n + 2; ++z) {
                    const int outside =
                        (x == 0 || x == n + 1) + (y == 0 || y == n + 1) + (z == 0 || z == n + 1);
                    const size_t at = amr_place(blocks->mesh, x, y, z);
                    if (outside <= 1) wrong += blocks->data[leaf][at] != all->data[leaf][at];
                }
    }
    return wrong;
}

/* Seconds, of all steps: inside exchanges, of these inside MPI, and making what a mesh needs. */
enum { exchanging, inside_mpi, making, total, times };

static Blocks run(const Options* options, AmrVersion version, int rank, int ranks, AmrCell* scratch,
                  double* took) {
    Blocks blocks = begin(options, rank, ranks);
    AmrExchange* exchange = NULL;
    memset(took, 0, times * sizeof *took);
    MPI_Barrier(MPI_COMM_WORLD);
    const double first = MPI_Wtime();
    for (int step = 0; step <= options->steps; ++step) {
        if (step > 0 && step % options->refine_every == 0) {
            double since = MPI_Wtime();
            amr_free_exchange(exchange);
            took[making] += MPI_Wtime() - since;
            exchange = NULL;
            blocks = move_on(options, step / options->refine_every, &blocks, rank, ranks);
        }
        if (exchange == NULL) {
            /* Who exchanges what is the mesh's affair, and the same for all versions. */
            exchange = need(amr_find_messages(blocks.mesh, blocks.data, rank, ranks));
            const double since = MPI_Wtime();
            amr_make_exchange(exchange, version);
            took[making] += MPI_Wtime() - since;
        }
        const double since = MPI_Wtime();
        took[inside_mpi] += amr_exchange(exchange);
        took[exchanging] += MPI_Wtime() - since;
        if (step < options->steps) step_all(&blocks, scratch);
    }
    took[total] = MPI_Wtime() - first;
    amr_free_exchange(exchange);
    return blocks;
}

static int read_options(int argc, char** argv, Options* options) {
    for (int i = 1; i < argc; ++i) {
        const int more = argc - i - 1;
        if (strcmp(argv[i], "--blocks") == 0 && more >= 3) {
            for (int d = 0; d < amr_axes; ++d) options->blocks[d] = whole_number(argv[++i]);
        } else if (strcmp(argv[i], "--cells") == 0 && more >= 1) {
            options->cells = whole_number(argv[++i]);
        } else if (strcmp(argv[i], "--levels") == 0 && more >= 1) {
            options->levels = whole_number(argv[++i]);
        } else if (strcmp(argv[i], "--steps") == 0 && more >= 1) {
            options->steps = whole_number(argv[++i]);
        } else if (strcmp(argv[i], "--refine-every") == 0 && more >= 1) {
            options->refine_every = whole_number(argv[++i]);
        } else if (strcmp(argv[i], "--repeat") == 0 && more >= 1) {
            options->repeat = whole_number(argv[++i]);
        } else if (strcmp(argv[i], "--version") == 0 && more >= 1) {
            options->version = argv[++i];
        } else if (strcmp(argv[i], "--damage") == 0) {
            options->damage = 1;
        } else {
            return 0;
        }
    }
    int good = options->version == NULL;
    for (int i = 0; i < amr_versions && !good; ++i) good = strcmp(options->version, amr_names[i]) == 0;
    for (int d = 0; d < amr_axes; ++d) good = good && options->blocks[d] > 0 && options->blocks[d] <= 64;
    return good && options->cells > 0 && options->cells % 2 == 0 && options->levels >= 0 &&
           options->levels <= amr_most_levels && options->steps > 0 && options->refine_every > 0 &&
           options->repeat > 0;
}

static int compare(const void* a, const void* b) {
    const double left = *(const double*)a, right = *(const double*)b;
    return (left > right) - (left < right);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    Options options = {{4, 4, 4}, 8, 2, 20, 5, 3, 0, NULL};
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (!read_options(argc, argv, &options)) {
        if (rank == 0)
            fprintf(
                stderr,
                "usage: amr [--blocks X Y Z] [--cells EVEN] [--levels 0..%d] [--steps N] [--refine-every N]\n"
                "           [--repeat N] [--version isend|waitall|persistent|neighbor|init] [--damage]\n"
                "Numbers from 1 on, at most 64 blocks in a dimension.\n",
                amr_most_levels);
        MPI_Finalize();
        return 2;
    }
    const size_t side = (size_t)options.cells + 2;
    AmrCell* const scratch = need(malloc(side * side * side * sizeof *scratch));
    Blocks all = alone(&options, ranks, scratch);
    double* const seconds = need(calloc((size_t)(amr_versions * times * options.repeat), sizeof *seconds));
    long all_wrong = 0;
    /* In turns, the first of which warms up. */
    for (int turn = -1; turn < options.repeat; ++turn)
        for (int version = 0; version < amr_versions; ++version) {
            if (options.version != NULL && strcmp(options.version, amr_names[version]) != 0) continue;
            double took[times], slowest[times];
            Blocks blocks = run(&options, (AmrVersion)version, rank, ranks, scratch, took);
            MPI_Allreduce(took, slowest, times, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
            for (int i = 0; i < times && turn >= 0; ++i)
                seconds[(version * times + i) * options.repeat + turn] = slowest[i];
            for (int leaf = 0; options.damage && leaf < blocks.mesh->count; ++leaf)
                if (blocks.data[leaf] != NULL)
                    blocks.data[leaf][amr_place(blocks.mesh, options.cells + 1, options.cells, 1)] ^= 1u;
            long wrong = wrong_cells(&blocks, &all), sum;
            MPI_Allreduce(&wrong, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
            all_wrong += sum;
            free_blocks(&blocks);
        }
    if (rank == 0) {
        const int meshes = options.steps / options.refine_every + 1;
        printf(
            "%d x %d x %d blocks of %d cells each way, %d levels; %d blocks at the end; %d ranks, %d steps, "
            "%d meshes\n",
            options.blocks[0], options.blocks[1], options.blocks[2], options.cells, options.levels,
            all.mesh->count, ranks, options.steps, meshes);
        printf("%-12s %14s %14s %14s %14s %14s\n", "version", "communication", "exchanges", "inside MPI",
               "made", "total");
        printf("%-12s %14s %14s %14s %14s %14s\n", "", "ms per step", "ms per step", "ms per step",
               "ms per mesh", "ms per step");
        for (int version = 0; version < amr_versions; ++version) {
            if (options.version != NULL && strcmp(options.version, amr_names[version]) != 0) continue;
            double middle[times];
            for (int i = 0; i < times; ++i) {
                double* const own = &seconds[(version * times + i) * options.repeat];
                qsort(own, (size_t)options.repeat, sizeof *own, compare);
                middle[i] = 1e3 * own[options.repeat / 2];
            }
            printf("%-12s %14.4f %14.4f %14.4f %14.4f %14.4f\n", amr_names[version],
                   (middle[exchanging] + middle[making]) / options.steps, middle[exchanging] / options.steps,
                   middle[inside_mpi] / options.steps, middle[making] / meshes,
                   middle[total] / options.steps);
        }
        printf("%s\n", all_wrong == 0 ? "right" : "WRONG");
    }
    free(seconds), free(scratch);
    free_blocks(&all);
    MPI_Finalize();
    return all_wrong != 0;
}
