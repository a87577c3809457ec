/* An exchange between blocks of a mesh that is refined where a sphere's surface passes, in the manner of
 * Mantevo's miniAMR: in every step the faces of all blocks are exchanged in three stages, one per axis, one
 * message per neighbouring rank and stage; every few steps the sphere moves on, the mesh is made anew around
 * it, blocks change their ranks, and with them all messages. In one of several ways of plain MPI:
 *
 *     isend       MPI_Irecv of all three stages; then of each packing and MPI_Isend rank by rank, MPI_Waitany
 *                 and unpacking
 *     waitall     the same with MPI_Waitall before the first is unpacked
 *     persistent  as isend, with MPI_Recv_init and MPI_Send_init after every refinement
 *     neighbor    MPI_Neighbor_alltoallw on a graph of each stage, made after every refinement
 *     init        MPI_Neighbor_alltoallw_init on the same
 *
 * What leaves the host is sent first; faces between blocks of one rank are copied while messages are on their
 * way, where the version allows it. A barrier parts the work from what is timed. At the end of every run
 * every cell and every halo is compared with the same mesh on one rank alone.
 *
 *     amr [--blocks X Y Z] [--cells N] [--levels N] [--steps N] [--refine-every N] [--repeat N]
 *         [--version NAME,...] [--json FILE] [--damage]
 *
 * Exit status: 0 right, 1 wrong, 2 bad input.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "amr/exchange.h"
#include "amr/options.h"

/* The sphere goes from one corner to the other, a block of level 0 and a bit at a time. */
static AmrSphere sphere_at(const AmrProblem* problem, int refinement) {
    AmrSphere sphere;
    const int64_t block = (int64_t)amr_units << problem->levels;
    for (int d = 0; d < amr_axes; ++d) {
        const int64_t side = problem->blocks[d] * block;
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

static AmrMesh* mesh_at(const AmrProblem* problem, int refinement) {
    const AmrSphere sphere = sphere_at(problem, refinement);
    return need(amr_make_mesh(problem->blocks, problem->levels, problem->cells, problem->ranks, &sphere));
}

/* rank < 0: all blocks. */
static Blocks make_blocks(const AmrProblem* problem, int refinement, int rank) {
    Blocks blocks;
    blocks.mesh = mesh_at(problem, refinement);
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
static Blocks move_on(const AmrProblem* problem, int refinement, Blocks* old, int rank) {
    Blocks now = make_blocks(problem, refinement, rank);
    if (rank >= 0) {
        const int count = old->mesh->count, cells = (int)amr_volume(old->mesh), ranks = problem->ranks;
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

static Blocks begin(const AmrProblem* problem, int rank) {
    Blocks blocks = make_blocks(problem, 0, rank);
    for (int leaf = 0; leaf < blocks.mesh->count; ++leaf)
        if (blocks.data[leaf] != NULL) amr_first_values(blocks.mesh, leaf, blocks.data[leaf]);
    return blocks;
}

static void step_all(Blocks* blocks, AmrCell* scratch) {
    for (int leaf = 0; leaf < blocks->mesh->count; ++leaf)
        if (blocks->data[leaf] != NULL) amr_step(blocks->mesh, blocks->data[leaf], scratch);
}

/* All steps on one rank, halos by their definition; and the halos after the last one. */
static Blocks alone(const AmrProblem* problem, AmrCell* scratch) {
    Blocks all = begin(problem, -1);
    for (int step = 0; step <= problem->steps; ++step) {
        if (step > 0 && step % problem->refine_every == 0)
            all = move_on(problem, step / problem->refine_every, &all, -1);
        for (int leaf = 0; leaf < all.mesh->count; ++leaf) amr_define_halo(all.mesh, all.data, leaf);
        if (step < problem->steps) step_all(&all, scratch);
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

/* What crosses between hosts on each mesh. The caller frees it. */
static AmrMeshReport* describe(const AmrProblem* problem, const int* hosts) {
    const int count = amr_meshes(problem);
    AmrMeshReport* const meshes = need(calloc((size_t)count, sizeof *meshes));
    for (int i = 0; i < count; ++i) {
        AmrMesh* const mesh = mesh_at(problem, i);
        meshes[i].exchanges = amr_exchanges_on(problem, i);
        meshes[i].blocks = mesh->count;
        for (int axis = 0; axis < amr_axes; ++axis)
            if (!amr_traffic(mesh, axis, hosts, problem->ranks, &meshes[i].stages[axis])) need(NULL);
        amr_free_mesh(mesh);
    }
    return meshes;
}

/* Seconds of this rank in a run. */
typedef struct {
    double sums[4]; /* exchanging, inside, making, total, as in AmrSample */
    double* steps;  /* communication of each */
} Times;
enum { exchanging, inside_mpi, making, total };

/* When every rank is done with the work before it: what is timed from then on is communication. */
static double since_all_are_here(void) {
    MPI_Barrier(MPI_COMM_WORLD);
    return MPI_Wtime();
}

static void give_up(AmrExchange* exchange, int step, Times* times) {
    const double since = since_all_are_here();
    amr_free_exchange(exchange);
    const double took = MPI_Wtime() - since;
    times->sums[making] += took;
    times->steps[step] += took;
}

static Blocks run(const AmrProblem* problem, AmrVersion version, const int* hosts, int rank, AmrCell* scratch,
                  Times* times) {
    Blocks blocks = begin(problem, rank);
    AmrExchange* exchange = NULL;
    memset(times->sums, 0, sizeof times->sums);
    memset(times->steps, 0, (size_t)amr_exchanges(problem) * sizeof *times->steps);
    const double first = since_all_are_here();
    for (int step = 0; step <= problem->steps; ++step) {
        const int fresh = step % problem->refine_every == 0;
        if (fresh && step > 0) {
            give_up(exchange, step, times);
            blocks = move_on(problem, step / problem->refine_every, &blocks, rank);
        }
        /* Who exchanges what is the mesh's affair, and the same for all versions. */
        if (fresh) exchange = need(amr_find_messages(blocks.mesh, blocks.data, hosts, rank, problem->ranks));
        const double since = since_all_are_here();
        if (fresh) amr_make_exchange(exchange, version);
        const double made = MPI_Wtime();
        times->sums[inside_mpi] += amr_exchange(exchange);
        const double end = MPI_Wtime();
        times->sums[making] += made - since;
        times->sums[exchanging] += end - made;
        times->steps[step] += end - since;
        if (step < problem->steps) step_all(&blocks, scratch);
    }
    give_up(exchange, problem->steps, times);
    times->sums[total] = MPI_Wtime() - first;
    return blocks;
}

/* Collective; every rank gets the sample. Its steps are the caller's, as many as there are exchanges. */
static void over_ranks(const AmrProblem* problem, const Times* times, AmrSample* sample) {
    double own[5] = {times->sums[0], times->sums[1], times->sums[2], times->sums[3], 0}, most[5];
    for (int step = 0; step < amr_exchanges(problem); ++step) own[4] += times->steps[step];
    MPI_Allreduce(own, most, 5, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    MPI_Allreduce(times->steps, sample->steps, amr_exchanges(problem), MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    sample->exchanging = most[exchanging];
    sample->inside = most[inside_mpi];
    sample->making = most[making];
    sample->total = most[total];
    sample->slowest = most[4];
    sample->communication = 0;
    for (int step = 0; step < amr_exchanges(problem); ++step) sample->communication += sample->steps[step];
}

/* Series of the versions that were asked for, none of their runs done. The caller frees them. */
static AmrSeries* prepare(const AmrOptions* options, int* count) {
    AmrSeries* const series = need(calloc(amr_versions, sizeof *series));
    *count = 0;
    for (int version = 0; version < amr_versions; ++version) {
        if (!options->chosen[version]) continue;
        AmrSeries* const own = &series[(*count)++];
        own->name = amr_names[version];
        own->count = options->repeat;
        own->samples = need(calloc((size_t)options->repeat, sizeof *own->samples));
        for (int i = 0; i < options->repeat; ++i)
            own->samples[i].steps =
                need(calloc((size_t)amr_exchanges(&options->problem), sizeof *own->samples[i].steps));
    }
    return series;
}

static void free_series(AmrSeries* series, int count) {
    for (int i = 0; i < count; ++i) {
        for (int j = 0; j < series[i].count; ++j) free(series[i].samples[j].steps);
        free(series[i].samples);
    }
    free(series);
}

/* One run, checked; into a sample, or nowhere. */
static void run_once(const AmrOptions* options, const int* hosts, int rank, const Blocks* all,
                     AmrCell* scratch, AmrSeries* series, AmrSample* sample) {
    const AmrProblem* const problem = &options->problem;
    int version = 0;
    while (strcmp(series->name, amr_names[version]) != 0) ++version;
    Times times;
    times.steps = need(calloc((size_t)amr_exchanges(problem), sizeof *times.steps));
    Blocks blocks = run(problem, (AmrVersion)version, hosts, rank, scratch, &times);
    if (sample != NULL) over_ranks(problem, &times, sample);
    for (int leaf = 0; options->damage && leaf < blocks.mesh->count; ++leaf)
        if (blocks.data[leaf] != NULL)
            blocks.data[leaf][amr_place(blocks.mesh, problem->cells + 1, problem->cells, 1)] ^= 1u;
    long wrong = wrong_cells(&blocks, all), sum;
    MPI_Allreduce(&wrong, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    series->wrong += sum;
    free(times.steps);
    free_blocks(&blocks);
}

/* On rank 0. 0: the file cannot be written. */
static int tell(const AmrOptions* options, const AmrMeshReport* meshes, const AmrSeries* series, int count) {
    char library[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    amr_print(stdout, &options->problem, meshes, series, count);
    if (options->json == NULL) return 1;
    MPI_Get_library_version(library, &length);
    FILE* const file = fopen(options->json, "a");
    if (file == NULL) return 0;
    for (int i = 0; i < count; ++i) amr_write_line(file, &options->problem, meshes, library, &series[i]);
    const int good = !ferror(file);
    return fclose(file) == 0 && good;
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    AmrOptions options;
    int rank, ranks, count;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (!amr_read_options(argc, argv, ranks, &options)) {
        if (rank == 0) amr_print_usage(stderr);
        MPI_Finalize();
        return 2;
    }
    const AmrProblem* const problem = &options.problem;
    const size_t side = (size_t)problem->cells + 2;
    AmrCell* const scratch = need(malloc(side * side * side * sizeof *scratch));
    int* const hosts = need(malloc((size_t)ranks * sizeof *hosts));
    amr_find_hosts(rank, hosts);
    Blocks all = alone(problem, scratch);
    AmrSeries* const series = prepare(&options, &count);
    /* In turns, the first of which warms up; each begins with the next version. */
    for (int turn = -1; turn < options.repeat; ++turn)
        for (int i = 0; i < count; ++i) {
            AmrSeries* const own = &series[(i + turn + 1) % count];
            run_once(&options, hosts, rank, &all, scratch, own, turn < 0 ? NULL : &own->samples[turn]);
        }
    long wrong = 0;
    for (int i = 0; i < count; ++i) wrong += series[i].wrong;
    int written = 1;
    if (rank == 0) {
        AmrMeshReport* const meshes = describe(problem, hosts);
        written = tell(&options, meshes, series, count);
        if (!written) fprintf(stderr, "amr: %s cannot be written\n", options.json);
        printf("%s\n", wrong == 0 ? "right" : "WRONG");
        free(meshes);
    }
    MPI_Bcast(&written, 1, MPI_INT, 0, MPI_COMM_WORLD);
    free_series(series, count);
    free(scratch), free(hosts);
    free_blocks(&all);
    MPI_Finalize();
    return wrong != 0 ? 1 : written ? 0 : 2;
}
