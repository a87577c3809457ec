/* A mesh of blocks that is finer where a sphere's surface passes: what each rank can know of it without
 * asking anybody. Every block has equally many cells; a block of level l + 1 is an eighth of one of level l.
 * Blocks that share a face differ by one level at most. Nothing lies beyond the borders: the halo there is 0.
 *
 * Cells are integers, so that a result is the same in any order. From a finer block comes the sum of the four
 * cells next to the face, to a finer block the one cell that lies there.
 */
#ifndef APPS_AMR_MESH_H
#define APPS_AMR_MESH_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { amr_axes = 3, amr_most_levels = 6 };
typedef uint32_t AmrCell;

/* Lengths in sixteenths of the smallest block. */
enum { amr_units = 16 };
typedef struct {
    int64_t centre[amr_axes], radius;
} AmrSphere;

typedef struct {
    int level, at[amr_axes]; /* in blocks of its level */
    int owner;               /* rank */
} AmrLeaf;

typedef struct {
    int roots[amr_axes]; /* blocks of level 0 */
    int deepest;         /* the finest level there may be */
    int cells;           /* of a block in each dimension; even */
    int count;
    AmrLeaf* leaves; /* along a curve that stays within a block until it is done */
    int* at_finest;  /* index of the leaf at each place of the finest level, row by row */
} AmrMesh;

/* The mesh around a sphere, its leaves dealt out to `ranks` in even shares. Null: no memory. The caller frees
 * it. */
AmrMesh* amr_make_mesh(const int* roots, int deepest, int cells, int ranks, const AmrSphere* sphere);
void amr_free_mesh(AmrMesh* mesh);

/* Cells of a block with its halo, one wide; and the place of one of them. */
size_t amr_volume(const AmrMesh* mesh);
static inline size_t amr_place(const AmrMesh* mesh, int x, int y, int z) {
    const size_t side = (size_t)(mesh->cells + 2);
    return ((size_t)x * side + (size_t)y) * side + (size_t)z;
}

/* What one block gets from another one through a face. */
typedef struct {
    int from, to, axis;
    int high;       /* 1: it lands in the upper halo of `to` along the axis */
    int change;     /* level of `to` - level of `from` */
    int quarter[2]; /* where change is not 0: the quarter of the coarser block's face, along the other axes */
} AmrLink;

/* All links along an axis, in an order that is the same everywhere; their number. Null into `links`: no
 * memory. The caller frees them. */
int amr_links(const AmrMesh* mesh, int axis, AmrLink** links);
/* How many cells a link moves; out of a block, and into one. */
int amr_link_cells(const AmrMesh* mesh, const AmrLink* link);
void amr_take(const AmrMesh* mesh, const AmrLink* link, const AmrCell* block, AmrCell* out);
void amr_put(const AmrMesh* mesh, const AmrLink* link, AmrCell* block, const AmrCell* in);

/* A cell of the whole mesh, in cells of `level`, from the data of its leaves: where the mesh is finer there,
 * the sum of all cells in it. Pre: data of the leaves that cover it. */
AmrCell amr_value(const AmrMesh* mesh, AmrCell* const* data, int level, const int* cell);
/* Fills the faces of a leaf's halo by what they are, cell by cell, without links. Pre: data of all leaves. */
void amr_define_halo(const AmrMesh* mesh, AmrCell* const* data, int leaf);
/* What the cells of a leaf are in the beginning. */
void amr_first_values(const AmrMesh* mesh, int leaf, AmrCell* block);
/* Every cell becomes a mixture of itself and its six neighbours. `scratch` is as large as the block. */
void amr_step(const AmrMesh* mesh, AmrCell* block, AmrCell* scratch);
/* Whether two leaves of two meshes of the same roots have cells in common. */
int amr_overlap(const AmrMesh* mesh, int leaf, const AmrMesh* other, int other_leaf);

#ifdef __cplusplus
}
#endif

#endif
