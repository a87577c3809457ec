#include "amr/mesh.h"

#include <stdlib.h>
#include <string.h>

static int finest_side(const AmrMesh* mesh, int axis) { return mesh->roots[axis] << mesh->deepest; }

static size_t finest_place(const AmrMesh* mesh, const int* at) {
    return ((size_t)at[0] * (size_t)finest_side(mesh, 1) + (size_t)at[1]) * (size_t)finest_side(mesh, 2) +
           (size_t)at[2];
}

/* The block's nearest and farthest point are on different sides of the surface. */
static int crosses(const AmrMesh* mesh, const AmrSphere* sphere, int level, const int* at) {
    int64_t nearest = 0, farthest = 0;
    for (int d = 0; d < amr_axes; ++d) {
        const int64_t side = (int64_t)amr_units << (mesh->deepest - level);
        const int64_t low = at[d] * side - sphere->centre[d], high = low + side;
        const int64_t near = low > 0 ? low : high < 0 ? -high : 0;
        const int64_t far = -low > high ? -low : high;
        nearest += near * near;
        farthest += far * far;
    }
    const int64_t square = sphere->radius * sphere->radius;
    return nearest <= square && square <= farthest;
}

/* Levels are kept for every place of the finest level: what is wanted there. A block is refined where a place
 * of it wants more than its level. */
static void want(const AmrMesh* mesh, const AmrSphere* sphere, int level, const int* at, int* wanted) {
    if (level == mesh->deepest || !crosses(mesh, sphere, level, at)) {
        const int side = 1 << (mesh->deepest - level);
        for (int x = 0; x < side; ++x)
            for (int y = 0; y < side; ++y)
                for (int z = 0; z < side; ++z) {
                    const int place[amr_axes] = {at[0] * side + x, at[1] * side + y, at[2] * side + z};
                    wanted[finest_place(mesh, place)] = level;
                }
        return;
    }
    for (int child = 0; child < 8; ++child) {
        const int below[amr_axes] = {2 * at[0] + (child >> 2), 2 * at[1] + (child >> 1 & 1),
                                     2 * at[2] + (child & 1)};
        want(mesh, sphere, level + 1, below, wanted);
    }
}

/* One place up wherever a neighbouring place is two levels finer. 1: something changed. */
static int balance(const AmrMesh* mesh, int* wanted) {
    int changed = 0, at[amr_axes];
    for (at[0] = 0; at[0] < finest_side(mesh, 0); ++at[0])
        for (at[1] = 0; at[1] < finest_side(mesh, 1); ++at[1])
            for (at[2] = 0; at[2] < finest_side(mesh, 2); ++at[2]) {
                const size_t here = finest_place(mesh, at);
                for (int face = 0; face < 2 * amr_axes; ++face) {
                    int beside[amr_axes];
                    memcpy(beside, at, sizeof beside);
                    beside[face / 2] += face % 2 != 0 ? 1 : -1;
                    if (beside[face / 2] < 0 || beside[face / 2] >= finest_side(mesh, face / 2)) continue;
                    const int least = wanted[finest_place(mesh, beside)] - 1;
                    if (wanted[here] >= least) continue;
                    /* The whole block goes: eight of the next level take its place. */
                    const int side = 1 << (mesh->deepest - wanted[here]), level = wanted[here];
                    for (int x = 0; x < side; ++x)
                        for (int y = 0; y < side; ++y)
                            for (int z = 0; z < side; ++z) {
                                const int place[amr_axes] = {at[0] / side * side + x, at[1] / side * side + y,
                                                             at[2] / side * side + z};
                                int* const there = &wanted[finest_place(mesh, place)];
                                if (*there == level) *there = level + 1;
                            }
                    changed = 1;
                }
            }
    return changed;
}

/* Counts leaves, and writes them where there is room to write. */
static void gather(AmrMesh* mesh, const int* wanted, int level, const int* at) {
    const int side = 1 << (mesh->deepest - level);
    const int corner[amr_axes] = {at[0] * side, at[1] * side, at[2] * side};
    if (wanted[finest_place(mesh, corner)] > level) {
        for (int child = 0; child < 8; ++child) {
            const int below[amr_axes] = {2 * at[0] + (child >> 2), 2 * at[1] + (child >> 1 & 1),
                                         2 * at[2] + (child & 1)};
            gather(mesh, wanted, level + 1, below);
        }
        return;
    }
    if (mesh->leaves != NULL) {
        mesh->leaves[mesh->count] = (AmrLeaf){.level = level, .at = {at[0], at[1], at[2]}, .owner = 0};
        for (int x = 0; x < side; ++x)
            for (int y = 0; y < side; ++y)
                for (int z = 0; z < side; ++z) {
                    const int place[amr_axes] = {corner[0] + x, corner[1] + y, corner[2] + z};
                    mesh->at_finest[finest_place(mesh, place)] = mesh->count;
                }
    }
    ++mesh->count;
}

static void gather_all(AmrMesh* mesh, const int* wanted) {
    int at[amr_axes];
    mesh->count = 0;
    for (at[0] = 0; at[0] < mesh->roots[0]; ++at[0])
        for (at[1] = 0; at[1] < mesh->roots[1]; ++at[1])
            for (at[2] = 0; at[2] < mesh->roots[2]; ++at[2]) gather(mesh, wanted, 0, at);
}

AmrMesh* amr_make_mesh(const int* roots, int deepest, int cells, int ranks, const AmrSphere* sphere) {
    AmrMesh* const mesh = calloc(1, sizeof *mesh);
    if (mesh == NULL) return NULL;
    memcpy(mesh->roots, roots, sizeof mesh->roots);
    mesh->deepest = deepest;
    mesh->cells = cells;
    const size_t places =
        (size_t)finest_side(mesh, 0) * (size_t)finest_side(mesh, 1) * (size_t)finest_side(mesh, 2);
    int* const wanted = malloc(places * sizeof *wanted);
    mesh->at_finest = malloc(places * sizeof *mesh->at_finest);
    if (wanted != NULL && mesh->at_finest != NULL) {
        int at[amr_axes];
        for (at[0] = 0; at[0] < roots[0]; ++at[0])
            for (at[1] = 0; at[1] < roots[1]; ++at[1])
                for (at[2] = 0; at[2] < roots[2]; ++at[2]) want(mesh, sphere, 0, at, wanted);
        while (balance(mesh, wanted)) {
        }
        gather_all(mesh, wanted);
        mesh->leaves = malloc((size_t)mesh->count * sizeof *mesh->leaves);
        if (mesh->leaves != NULL) gather_all(mesh, wanted);
    }
    free(wanted);
    if (mesh->leaves == NULL) {
        amr_free_mesh(mesh);
        return NULL;
    }
    for (int leaf = 0; leaf < mesh->count; ++leaf)
        mesh->leaves[leaf].owner = (int)((int64_t)leaf * ranks / mesh->count);
    return mesh;
}

void amr_free_mesh(AmrMesh* mesh) {
    if (mesh == NULL) return;
    free(mesh->leaves), free(mesh->at_finest), free(mesh);
}

size_t amr_volume(const AmrMesh* mesh) {
    const size_t side = (size_t)(mesh->cells + 2);
    return side * side * side;
}

/* The leaf at a cell of `level`; -1: beyond a border. */
static int leaf_at(const AmrMesh* mesh, int level, const int* cell) {
    int place[amr_axes];
    for (int d = 0; d < amr_axes; ++d) {
        if (cell[d] < 0) return -1;
        place[d] = (cell[d] << (mesh->deepest - level)) / mesh->cells;
        if (place[d] >= finest_side(mesh, d)) return -1;
    }
    return mesh->at_finest[finest_place(mesh, place)];
}

/* The two axes along a face. */
static void along(int axis, int* first, int* second) {
    *first = axis == 0 ? 1 : 0;
    *second = axis == 2 ? 1 : 2;
}

int amr_links(const AmrMesh* mesh, int axis, AmrLink** links) {
    int first, second, count = 0;
    along(axis, &first, &second);
    /* Four from each of two sides at most. */
    AmrLink* const all = malloc((size_t)mesh->count * 8 * sizeof *all);
    *links = all;
    if (all == NULL) return 0;
    for (int leaf = 0; leaf < mesh->count; ++leaf) {
        const AmrLeaf* const own = &mesh->leaves[leaf];
        for (int high = 0; high < 2; ++high) {
            /* What lies beside, seen in blocks half as large where the mesh goes on to finer ones. */
            int beside[amr_axes];
            for (int d = 0; d < amr_axes; ++d) beside[d] = own->at[d] * mesh->cells;
            beside[axis] += high ? mesh->cells : -1;
            const int near = leaf_at(mesh, own->level, beside);
            if (near < 0) continue;
            const AmrLeaf* const other = &mesh->leaves[near];
            AmrLink link = {near, leaf, axis, high, own->level - other->level, {0, 0}};
            if (other->level <= own->level) {
                if (link.change != 0) {
                    link.quarter[0] = own->at[first] & 1;
                    link.quarter[1] = own->at[second] & 1;
                }
                all[count++] = link;
                continue;
            }
            for (int quarter = 0; quarter < 4; ++quarter) {
                int cell[amr_axes];
                cell[axis] = beside[axis] * 2 + (high ? 0 : 1);
                cell[first] = (2 * own->at[first] + (quarter >> 1)) * mesh->cells;
                cell[second] = (2 * own->at[second] + (quarter & 1)) * mesh->cells;
                link.from = leaf_at(mesh, own->level + 1, cell);
                link.change = -1;
                link.quarter[0] = quarter >> 1;
                link.quarter[1] = quarter & 1;
                all[count++] = link;
            }
        }
    }
    return count;
}

int amr_link_cells(const AmrMesh* mesh, const AmrLink* link) {
    return link->change == 0 ? mesh->cells * mesh->cells : mesh->cells * mesh->cells / 4;
}

/* A cell of the layer `depth` of a face, at a and b along the other axes, all counted with the halo. */
static size_t face_place(const AmrMesh* mesh, int axis, int depth, int a, int b) {
    int first, second, at[amr_axes];
    along(axis, &first, &second);
    at[axis] = depth;
    at[first] = a;
    at[second] = b;
    return amr_place(mesh, at[0], at[1], at[2]);
}

void amr_take(const AmrMesh* mesh, const AmrLink* link, const AmrCell* block, AmrCell* out) {
    const int n = mesh->cells, half = n / 2, axis = link->axis;
    /* What goes to an upper halo are the sender's lowest cells. */
    const int depth = link->high ? 1 : n;
    const int side = link->change == 0 ? n : half;
    for (int a = 0; a < side; ++a)
        for (int b = 0; b < side; ++b) {
            if (link->change == 0) {
                *out++ = block[face_place(mesh, axis, depth, a + 1, b + 1)];
            } else if (link->change > 0) {
                *out++ = block[face_place(mesh, axis, depth, link->quarter[0] * half + a + 1,
                                          link->quarter[1] * half + b + 1)];
            } else {
                AmrCell sum = 0;
                for (int part = 0; part < 4; ++part)
                    sum +=
                        block[face_place(mesh, axis, depth, 2 * a + (part >> 1) + 1, 2 * b + (part & 1) + 1)];
                *out++ = sum;
            }
        }
}

void amr_put(const AmrMesh* mesh, const AmrLink* link, AmrCell* block, const AmrCell* in) {
    const int n = mesh->cells, half = n / 2, axis = link->axis;
    const int depth = link->high ? n + 1 : 0;
    const int side = link->change == 0 ? n : half;
    for (int a = 0; a < side; ++a)
        for (int b = 0; b < side; ++b) {
            const AmrCell cell = *in++;
            if (link->change == 0) {
                block[face_place(mesh, axis, depth, a + 1, b + 1)] = cell;
            } else if (link->change < 0) {
                block[face_place(mesh, axis, depth, link->quarter[0] * half + a + 1,
                                 link->quarter[1] * half + b + 1)] = cell;
            } else {
                for (int part = 0; part < 4; ++part)
                    block[face_place(mesh, axis, depth, 2 * a + (part >> 1) + 1, 2 * b + (part & 1) + 1)] =
                        cell;
            }
        }
}

/* Of a leaf no finer than `level`, the value at a cell of `level`. */
static AmrCell coarse_value(const AmrMesh* mesh, AmrCell* const* data, int leaf, int level, const int* cell) {
    const AmrLeaf* const own = &mesh->leaves[leaf];
    int local[amr_axes];
    for (int d = 0; d < amr_axes; ++d)
        local[d] = (cell[d] >> (level - own->level)) - own->at[d] * mesh->cells + 1;
    return data[leaf][amr_place(mesh, local[0], local[1], local[2])];
}

AmrCell amr_value(const AmrMesh* mesh, AmrCell* const* data, int level, const int* cell) {
    const int leaf = leaf_at(mesh, level, cell);
    if (mesh->leaves[leaf].level <= level) return coarse_value(mesh, data, leaf, level, cell);
    AmrCell sum = 0;
    for (int child = 0; child < 8; ++child) {
        const int below[amr_axes] = {2 * cell[0] + (child >> 2), 2 * cell[1] + (child >> 1 & 1),
                                     2 * cell[2] + (child & 1)};
        sum += amr_value(mesh, data, level + 1, below);
    }
    return sum;
}

void amr_define_halo(const AmrMesh* mesh, AmrCell* const* data, int leaf) {
    const AmrLeaf* const own = &mesh->leaves[leaf];
    const int n = mesh->cells;
    for (int face = 0; face < 2 * amr_axes; ++face) {
        const int axis = face / 2, high = face % 2;
        int first, second;
        along(axis, &first, &second);
        for (int a = 0; a < n; ++a)
            for (int b = 0; b < n; ++b) {
                int cell[amr_axes];
                cell[axis] = own->at[axis] * n + (high ? n : -1);
                cell[first] = own->at[first] * n + a;
                cell[second] = own->at[second] * n + b;
                AmrCell value = 0;
                const int beside = leaf_at(mesh, own->level, cell);
                if (beside >= 0 && mesh->leaves[beside].level <= own->level) {
                    value = coarse_value(mesh, data, beside, own->level, cell);
                } else if (beside >= 0) {
                    int below[amr_axes];
                    below[axis] = 2 * cell[axis] + (high ? 0 : 1);
                    for (int part = 0; part < 4; ++part) {
                        below[first] = 2 * cell[first] + (part >> 1);
                        below[second] = 2 * cell[second] + (part & 1);
                        value += amr_value(mesh, data, own->level + 1, below);
                    }
                }
                data[leaf][face_place(mesh, axis, high ? n + 1 : 0, a + 1, b + 1)] = value;
            }
    }
}

void amr_first_values(const AmrMesh* mesh, int leaf, AmrCell* block) {
    const AmrLeaf* const own = &mesh->leaves[leaf];
    const int n = mesh->cells;
    memset(block, 0, amr_volume(mesh) * sizeof *block);
    for (int x = 0; x < n; ++x)
        for (int y = 0; y < n; ++y)
            for (int z = 0; z < n; ++z) {
                AmrCell mix = (AmrCell)(own->at[0] * n + x) * 73856093u ^
                              (AmrCell)(own->at[1] * n + y) * 19349663u ^
                              (AmrCell)(own->at[2] * n + z) * 83492791u ^ (AmrCell)own->level;
                mix ^= mix >> 13;
                block[amr_place(mesh, x + 1, y + 1, z + 1)] = mix * 0x9e3779b1u;
            }
}

void amr_step(const AmrMesh* mesh, AmrCell* block, AmrCell* scratch) {
    const int n = mesh->cells;
    const ptrdiff_t row = n + 2, plane = row * row;
    memcpy(scratch, block, amr_volume(mesh) * sizeof *block);
    for (int x = 1; x <= n; ++x)
        for (int y = 1; y <= n; ++y) {
            const size_t line = amr_place(mesh, x, y, 1);
            for (int z = 0; z < n; ++z) {
                const AmrCell* const cell = scratch + line + z;
                const AmrCell around =
                    cell[-1] + cell[1] + cell[-row] + cell[row] + cell[-plane] + cell[plane];
                block[line + (size_t)z] = *cell * 5u + around * 3u + 1u;
            }
        }
}

int amr_overlap(const AmrMesh* mesh, int leaf, const AmrMesh* other, int other_leaf) {
    const AmrLeaf *const a = &mesh->leaves[leaf], *const b = &other->leaves[other_leaf];
    for (int d = 0; d < amr_axes; ++d) {
        const int common = a->level < b->level ? a->level : b->level;
        if (a->at[d] >> (a->level - common) != b->at[d] >> (b->level - common)) return 0;
    }
    return 1;
}
