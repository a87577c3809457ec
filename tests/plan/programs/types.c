/* Derived datatypes: the same signature (ints) laid out differently on every rank. The oracle is a formula
 * per type that says where its k-th int lies; every other byte of the arena must keep its value. */
#include "check.h"

enum { ints = 6000, half = 200000 };
/* Static, so that types with absolute addresses can be built once. Displacements are relative to the middle.
 */
static _Alignas(64) unsigned char arena[2 * half];
static unsigned char expected[2 * half];
static unsigned char* const middle = arena + half;

typedef struct {
    const char* name;
    MPI_Datatype type;
    int count;
    void* buffer;
    long (*at)(long k); /* byte offset of int k from the middle */
} Case;

static long at_straight(long k) { return 4 * k; }
static long at_vector(long k) { return 4 * (k / 3 * 5 + k % 3); }
static long at_backwards(long k) { return -12 * (k / 2) + 4 * (k % 2); }
static long at_reversed(long k) { return 8 * (ints - 1 - k); }
static long at_block(long k) { return 4 * (k / 4 * 7 + k % 4); }
static long at_struct(long k) { return k / 3 * 28 + (k % 3 < 2 ? 4 * (k % 3) : 20); }
static long at_below(long k) { return 12 * k - 4; }
static long at_swapped(long k) { return 4 * (k ^ 1); }
static long at_cube_c(long k) {
    const long z = k % 30, y = k / 30 % 20, x = k / 600;
    return 4 * (((x + 1) * 24 + y + 2) * 33 + z + 3);
}
static long at_cube_fortran(long k) {
    const long x = k % 10, y = k / 10 % 20, z = k / 200;
    return 4 * (((z + 3) * 24 + y + 2) * 12 + x + 1);
}
static long at_cells(long k) {
    const long z = k % 30, y = k / 30 % 20, x = k / 600;
    return 4 * ((((x + 1) * 21 + y) * 31 + z + 1) * 3 + 2);
}
static long at_rows_backwards(long k) { return -1000 * (k / 100) + 4 * (k % 100 / 2 * 5 + k % 2); }
static long at_cyclic(long k) { return 4 * (k / 3 * 6 + 3 + k % 3); }
static long at_two_places(long k) { return k < ints / 2 ? 4 * k : -half + 4 * (k - ints / 2); }

static Case cases[24];
static int case_count = 0;
static void add(const char* name, MPI_Datatype type, int count, void* buffer, long (*at)(long)) {
    if (type != MPI_INT) MPI_Type_commit(&type);
    cases[case_count++] = (Case){name, type, count, buffer, at};
}

static void build(void) {
    MPI_Datatype type, inner;
    static int lengths[ints], places[ints];
    static MPI_Aint bytes[ints];

    add("ints", MPI_INT, ints, middle, at_straight);
    MPI_Type_contiguous(ints / 4, MPI_INT, &type);
    add("contiguous", type, 4, middle, at_straight);
    MPI_Type_vector(ints / 3, 3, 5, MPI_INT, &type);
    add("vector", type, 1, middle, at_vector);
    MPI_Type_dup(type, &inner);
    add("dup of vector", inner, 1, middle, at_vector);
    MPI_Type_create_hvector(ints / 2, 2, -12, MPI_INT, &type);
    add("hvector, negative stride", type, 1, middle, at_backwards);
    for (int i = 0; i < ints; ++i)
        lengths[i] = 1, places[i] = 2 * (ints - 1 - i), bytes[i] = 8 * (ints - 1 - i);
    MPI_Type_indexed(ints, lengths, places, MPI_INT, &type);
    add("indexed, backwards", type, 1, middle, at_reversed);
    MPI_Type_create_hindexed(ints, lengths, bytes, MPI_INT, &type);
    add("hindexed, backwards", type, 1, middle, at_reversed);
    for (int i = 0; i < ints / 4; ++i) places[i] = 7 * i, bytes[i] = 28 * i;
    MPI_Type_create_indexed_block(ints / 4, 4, places, MPI_INT, &type);
    add("indexed_block", type, 1, middle, at_block);
    MPI_Type_create_hindexed_block(ints / 4, 4, bytes, MPI_INT, &type);
    add("hindexed_block", type, 1, middle, at_block);

    const int struct_lengths[2] = {2, 1};
    const MPI_Aint struct_places[2] = {0, 20};
    const MPI_Datatype struct_types[2] = {MPI_INT, MPI_INT};
    MPI_Type_create_struct(2, struct_lengths, struct_places, struct_types, &inner);
    MPI_Type_create_resized(inner, 0, 28, &type);
    add("struct, resized", type, ints / 3, middle, at_struct);
    MPI_Type_contiguous(ints / 3, type, &inner);
    add("contiguous of struct", inner, 1, middle, at_struct);
    const int before[1] = {1};
    const MPI_Aint below[1] = {-4};
    MPI_Type_create_hindexed(1, before, below, MPI_INT, &inner);
    MPI_Type_create_resized(inner, -4, 12, &type);
    add("negative lower bound", type, ints, middle, at_below);
    const MPI_Aint swap[2] = {4, 0};
    const int ones[2] = {1, 1};
    MPI_Type_create_hindexed(2, ones, swap, MPI_INT, &type);
    add("no gap, wrong order", type, ints / 2, middle, at_swapped);

    const int whole[3] = {12, 24, 33}, part[3] = {10, 20, 30}, start[3] = {1, 2, 3};
    MPI_Type_create_subarray(3, whole, part, start, MPI_ORDER_C, MPI_INT, &type);
    add("subarray, C", type, 1, middle, at_cube_c);
    MPI_Type_create_subarray(3, whole, part, start, MPI_ORDER_FORTRAN, MPI_INT, &type);
    add("subarray, Fortran", type, 1, middle, at_cube_fortran);
    const int border[4] = {12, 21, 31, 3}, face[4] = {10, 20, 30, 1}, corner[4] = {1, 0, 1, 2};
    MPI_Type_create_subarray(4, border, face, corner, MPI_ORDER_C, MPI_INT, &type);
    add("face of single cells", type, 1, middle, at_cells);
    MPI_Type_vector(50, 2, 5, MPI_INT, &inner);
    MPI_Type_create_hvector(60, 1, -1000, inner, &type);
    add("rows of blocks, backwards", type, 1, middle, at_rows_backwards);
    const int global[1] = {2 * ints}, cyclic[1] = {MPI_DISTRIBUTE_CYCLIC}, three[1] = {3}, two[1] = {2};
    MPI_Type_create_darray(2, 1, 1, global, cyclic, three, two, MPI_ORDER_C, MPI_INT, &type);
    add("darray", type, 1, middle, at_cyclic);

    MPI_Aint address;
    MPI_Get_address(middle, &address);
    const MPI_Aint absolute[2] = {address, address - half};
    const int halves[2] = {ints / 2, ints / 2};
    MPI_Type_create_hindexed(2, halves, absolute, MPI_INT, &type);
    add("absolute addresses", type, 1, MPI_BOTTOM, at_two_places);
}

static void put(unsigned char* base, const Case* c, unsigned seed) {
    for (long k = 0; k < ints; ++k)
        for (int b = 0; b < 4; ++b) base[c->at(k) + b] = pattern(4 * k + b, seed);
}

static void one(const Case* c, int root, unsigned seed) {
    memset(arena, poison_value, sizeof arena);
    memset(expected, poison_value, sizeof expected);
    if (check_rank == root) put(middle, c, seed);
    put(expected + half, c, seed);
    MPI_Bcast(c->buffer, c->count, c->type, root, MPI_COMM_WORLD);
    if (expect_thalweg() && check_size > 1)
        CHECK(was_accelerated(), "%s was left to MPI: %s", c->name, last_reason());
    for (size_t i = 0; i < sizeof arena; ++i)
        if (arena[i] != expected[i])
            FAIL("%s from %d: byte %ld from the middle is %02x, not %02x", c->name, root, (long)i - half,
                 arena[i], expected[i]);
    ++check_count;
}

/* Pairs of a value and an int have gaps that nobody may touch. */
static void pairs(unsigned seed) {
    struct DoubleInt {
        double value;
        int index;
    } doubles[1000], want[1000];
    struct ShortInt {
        short value;
        int index;
    } shorts[1000], want_shorts[1000];
    memset(doubles, poison_value, sizeof doubles);
    memset(want, poison_value, sizeof want);
    memset(shorts, poison_value, sizeof shorts);
    memset(want_shorts, poison_value, sizeof want_shorts);
    for (int i = 0; i < 1000; ++i) {
        want[i].value = i + seed, want[i].index = 3 * i;
        want_shorts[i].value = (short)(i + 7), want_shorts[i].index = 5 * i;
        if (check_rank == 0) {
            doubles[i].value = want[i].value, doubles[i].index = want[i].index;
            shorts[i].value = want_shorts[i].value, shorts[i].index = want_shorts[i].index;
        }
    }
    MPI_Bcast(doubles, 1000, MPI_DOUBLE_INT, 0, MPI_COMM_WORLD);
    MPI_Bcast(shorts, 1000, MPI_SHORT_INT, 0, MPI_COMM_WORLD);
    CHECK(memcmp(doubles, want, sizeof want) == 0, "MPI_DOUBLE_INT: wrong bytes");
    CHECK(memcmp(shorts, want_shorts, sizeof want_shorts) == 0, "MPI_SHORT_INT: wrong bytes");
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, MPI_THREAD_SINGLE);
    build();
    unsigned seed = 1;
    for (int a = 1; a < argc; ++a) {
        set_option("THALWEG_BCAST", argv[a]);
        for (int root = 0; root < check_size; ++root)
            for (int i = 0; i < case_count; ++i) {
                one(&cases[i], root, seed++);                                 /* the same on all ranks */
                one(&cases[(i + 5 * check_rank) % case_count], root, seed++); /* another on each */
                one(&cases[check_rank == root ? i : 0], root, seed++);        /* into plain ints */
            }
        pairs(seed);
    }
    for (int i = 1; i < case_count; ++i) MPI_Type_free(&cases[i].type);
    /* No bytes at all: a type of size zero, and a freed type right after its use. */
    MPI_Datatype nothing, vector;
    MPI_Type_contiguous(0, MPI_INT, &nothing);
    MPI_Type_commit(&nothing);
    CHECK(MPI_Bcast(arena, 3, nothing, 0, MPI_COMM_WORLD) == MPI_SUCCESS, "a type of size zero");
    MPI_Type_free(&nothing);
    for (int i = 0; i < 200; ++i) {
        MPI_Type_vector(ints / 3, 3, 5, MPI_INT, &vector);
        MPI_Type_commit(&vector);
        Case c = {"freed at once", vector, 1, middle, at_vector};
        one(&c, i % check_size, seed++);
        MPI_Type_free(&vector);
    }
    return check_end();
}
