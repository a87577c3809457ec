/* MPI_Neighbor_alltoallw, blocking, nonblocking and persistent, against their definition, with
 * random datatypes on random topologies: each rank lays its blocks out on its own, the two ends of a message
 * alike in nothing but its ints. Where each int lies is computed here; MPI is told the same by a datatype.
 * What lies between them keeps what it had. In between each process asks for another protocol inside hosts.
 *
 *     shapes CASES [SEED]     a case: one topology, one layout of all blocks on all ranks, one form
 */
#include "algorithm_wanted.h"
#include "topologies.h"

typedef int AlltoallwInit(const void*, const int*, const MPI_Aint*, const MPI_Datatype*, void*, const int*,
                          const MPI_Aint*, const MPI_Datatype*, MPI_Comm, MPI_Info, MPI_Request*);
static AlltoallwInit* alltoallw_init;

enum { layouts_per_topology = 4, small_ints = 60, large_ints = 12000, persistent_rounds = 2 };

/* This rank's own. */
static unsigned own_state = 1;
static int own(int limit) {
    own_state = own_state * 1664525u + 1013904223u;
    return (int)((own_state >> 8) % (unsigned)limit);
}

static void* take(size_t bytes) {
    void* const memory = malloc(bytes != 0 ? bytes : 1);
    if (memory == NULL) FAIL("no memory for %zu bytes", bytes);
    return memory;
}

/* `ints` ints in the order of a datatype: where each lies, in ints from the address that MPI is given, all of
 * them within low .. high - 1. */
typedef struct {
    int ints, low, high, count;
    int* at;
    MPI_Datatype type; /* `count` of it */
} Shape;

static int divisor_of(int number) {
    int found = 1;
    for (int tries = 0; tries < 4; ++tries) {
        const int candidate = 1 + own(number < 64 ? number : 64);
        if (number % candidate == 0) found = candidate;
    }
    return found;
}

static void contiguous(Shape* s) {
    for (int i = 0; i < s->ints; ++i) s->at[i] = i;
    MPI_Type_contiguous(s->ints, MPI_INT, &s->type);
}

static void vector(Shape* s, int backwards) {
    const int run = divisor_of(s->ints), runs = s->ints / run, stride = run + own(4);
    for (int i = 0; i < s->ints; ++i) s->at[i] = (backwards ? -1 : 1) * (i / run) * stride + i % run;
    MPI_Type_vector(runs, run, backwards ? -stride : stride, MPI_INT, &s->type);
}

/* Blocks of any length; backwards, the first lies last. */
static void indexed(Shape* s, int backwards) {
    int *const lengths = take((size_t)s->ints * sizeof(int)), *const begins =
                                                                  take((size_t)s->ints * sizeof(int));
    int blocks = 0;
    for (int done = 0, place = 0; done < s->ints; ++blocks) {
        const int left = s->ints - done;
        int length = 1 + own(s->ints > 1000 ? 400 : 7);
        if (length > left) length = left;
        place += own(3);
        lengths[blocks] = length;
        begins[blocks] = backwards ? -place - length : place;
        for (int i = 0; i < length; ++i) s->at[done + i] = begins[blocks] + i;
        done += length;
        place += length;
    }
    MPI_Type_indexed(blocks, lengths, begins, MPI_INT, &s->type);
    free(lengths);
    free(begins);
}

/* A box of a box, as faces are. */
static void subarray(Shape* s) {
    int sub[3], sizes[3], begins[3];
    sub[2] = divisor_of(s->ints);
    sub[1] = divisor_of(s->ints / sub[2]);
    sub[0] = s->ints / sub[2] / sub[1];
    for (int d = 0; d < 3; ++d) {
        begins[d] = own(3);
        sizes[d] = sub[d] + begins[d] + own(2);
    }
    for (int i = 0; i < s->ints; ++i) {
        const int x = i / (sub[1] * sub[2]), y = i / sub[2] % sub[1], z = i % sub[2];
        s->at[i] = ((x + begins[0]) * sizes[1] + y + begins[1]) * sizes[2] + z + begins[2];
    }
    MPI_Type_create_subarray(3, sizes, sub, begins, MPI_ORDER_C, MPI_INT, &s->type);
}

/* Two parts, of which either may come first in memory. */
static void structure(Shape* s) {
    const int first = own(s->ints + 1), gap = own(5), swapped = own(2);
    const int lengths[2] = {first, s->ints - first};
    const int begins[2] = {swapped ? s->ints - first + gap : 0, swapped ? 0 : first + gap};
    const MPI_Aint bytes[2] = {begins[0] * (MPI_Aint)sizeof(int), begins[1] * (MPI_Aint)sizeof(int)};
    const MPI_Datatype types[2] = {MPI_INT, MPI_INT};
    for (int i = 0; i < s->ints; ++i) s->at[i] = i < first ? begins[0] + i : begins[1] + i - first;
    MPI_Type_create_struct(2, lengths, bytes, types, &s->type);
}

/* Several of a type whose extent is not its size, and whose lower bound may lie off its data. */
static void repeated(Shape* s) {
    const int each = divisor_of(s->ints), extent = each + own(5), lower = own(3) - 1;
    MPI_Datatype plain;
    s->count = s->ints / each;
    for (int i = 0; i < s->ints; ++i) s->at[i] = i / each * extent + i % each;
    MPI_Type_contiguous(each, MPI_INT, &plain);
    MPI_Type_create_resized(plain, lower * (MPI_Aint)sizeof(int), extent * (MPI_Aint)sizeof(int), &s->type);
    MPI_Type_free(&plain);
}

static void make_shape(Shape* s, int ints) {
    memset(s, 0, sizeof *s);
    s->ints = ints;
    s->count = 1;
    s->at = take((size_t)ints * sizeof(int));
    switch (ints == 0 ? 0 : own(8)) {
        case 0:
            contiguous(s);
            break;
        case 1:
        case 2:
            vector(s, own(2));
            break;
        case 3:
            indexed(s, own(2));
            break;
        case 4:
        case 5:
            subarray(s);
            break;
        case 6:
            structure(s);
            break;
        default:
            repeated(s);
    }
    MPI_Type_commit(&s->type);
    for (int i = 0; i < ints; ++i) {
        if (s->at[i] < s->low) s->low = s->at[i];
        if (s->at[i] >= s->high) s->high = s->at[i] + 1;
    }
}

static void free_shape(Shape* s) {
    MPI_Type_free(&s->type);
    free(s->at);
}

/* One side of a call. */
typedef struct {
    int blocks, words, *memory;
    Shape shapes[most_edges];
    int counts[most_edges], places[most_edges]; /* places: in ints, where MPI is told that a block begins */
    MPI_Aint far[most_edges];
    MPI_Datatype types[most_edges];
} Side;
static Side sent, received;

/* Both ends of a message know how many ints it has. */
static int ints_of(unsigned seed, int large, int rank, int block) {
    const unsigned mix = (seed + (unsigned)(rank * 7919 + block * 104729)) * 2654435761u >> 8;
    if (mix % 5 == 0) return 0;
    return (int)(mix / 5 % (large && mix % 3 == 0 ? large_ints : small_ints));
}
static int value_of(unsigned seed, int rank, int block, int round, int i) {
    return (int)(seed * 31u) + rank * 1000003 + block * 30011 + round * 997 + i * 3 + 1;
}

/* Blocks lie one behind the other, with something between them that nobody may touch. */
static void lay_out(Side* side) {
    int place = 1;
    for (int block = 0; block < side->blocks; ++block) {
        Shape* const shape = &side->shapes[block];
        side->counts[block] = shape->ints == 0 ? 0 : shape->count;
        side->places[block] = place - shape->low;
        side->far[block] = side->places[block] * (MPI_Aint)sizeof(int);
        side->types[block] = shape->type;
        place += shape->high - shape->low + 1 + own(2);
    }
    side->words = place + 1;
    side->memory = take((size_t)side->words * sizeof(int));
}

static int* expected_words(const Topology* t, unsigned seed, int round) {
    int* const expected = take((size_t)received.words * sizeof(int));
    for (int i = 0; i < received.words; ++i) received.memory[i] = expected[i] = -7 - round;
    for (int block = 0; block < t->in; ++block) {
        const Shape* const shape = &received.shapes[block];
        int from, their_block;
        if (!origin_of(t, block, &from, &their_block)) continue;
        for (int i = 0; i < shape->ints; ++i)
            expected[received.places[block] + shape->at[i]] = value_of(seed, from, their_block, round, i);
    }
    for (int i = 0; i < sent.words; ++i) sent.memory[i] = -1;
    for (int block = 0; block < t->out; ++block) {
        const Shape* const shape = &sent.shapes[block];
        for (int i = 0; i < shape->ints; ++i)
            sent.memory[sent.places[block] + shape->at[i]] = value_of(seed, t->rank, block, round, i);
    }
    return expected;
}

static void compare(const Topology* t, const int* expected, unsigned seed, const char* what) {
    for (int i = 0; i < received.words; ++i)
        CHECK(received.memory[i] == expected[i], "%s on %s of %d, seed %u: byte %d is wrong: %d, not %d",
              what, t->is_grid ? "a grid" : "a graph", t->size, seed, 4 * i, received.memory[i], expected[i]);
}

typedef enum { blocking, nonblocking, persistent, forms } Form;

static void start(MPI_Comm comm, Form form, MPI_Request* request) {
    if (form == blocking)
        MPI_Neighbor_alltoallw(sent.memory, sent.counts, sent.far, sent.types, received.memory,
                               received.counts, received.far, received.types, comm);
    else if (form == nonblocking)
        MPI_Ineighbor_alltoallw(sent.memory, sent.counts, sent.far, sent.types, received.memory,
                                received.counts, received.far, received.types, comm, request);
    else
        alltoallw_init(sent.memory, sent.counts, sent.far, sent.types, received.memory, received.counts,
                       received.far, received.types, comm, MPI_INFO_NULL, request);
}

static const char* const names[] = {"neighbor_alltoallw", "ineighbor_alltoallw", "neighbor_alltoallw_init"};
static int as_wanted[forms];

static void exchange(const Topology* t, Form form, unsigned seed) {
    MPI_Request request = MPI_REQUEST_NULL;
    if (form == persistent) start(t->comm, form, &request);
    for (int round = 0; round < (form == persistent ? persistent_rounds : 1); ++round) {
        int* const expected = expected_words(t, seed, round);
        if (form != persistent) start(t->comm, form, &request);
        if (check_size > 1 && expect_thalweg() && getenv("THALWEG_TEST_TAKEN") != NULL)
            CHECK(was_accelerated(), "%s: %s", names[form], last_reason());
        as_wanted[form] += ran_as_wanted();
        if (form == persistent) MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        compare(t, expected, seed, names[form]);
        free(expected);
    }
    if (form == persistent) MPI_Request_free(&request);
}

/* All forms of one layout. */
static int run_layout(const Topology* t, unsigned seed, int large) {
    sent.blocks = t->out;
    received.blocks = t->in;
    for (int block = 0; block < t->out; ++block)
        make_shape(&sent.shapes[block],
                   t->destinations[block] < 0 ? own(small_ints) : ints_of(seed, large, t->rank, block));
    for (int block = 0; block < t->in; ++block) {
        int from, their_block;
        /* Beyond a border there is somebody to ask for any number. */
        const int known = origin_of(t, block, &from, &their_block);
        make_shape(&received.shapes[block],
                   known ? ints_of(seed, large, from, their_block) : own(small_ints));
    }
    lay_out(&sent);
    lay_out(&received);
    int cases = 0;
    for (int form = 0; form < forms; ++form) {
        if (form == persistent && alltoallw_init == NULL) continue;
        exchange(t, (Form)form, seed);
        ++cases;
    }
    for (int block = 0; block < t->out; ++block) free_shape(&sent.shapes[block]);
    for (int block = 0; block < t->in; ++block) free_shape(&received.shapes[block]);
    free(sent.memory);
    free(received.memory);
    return cases;
}

int main(int argc, char** argv) {
    static const char* const protocols[] = {"auto", "eager", "cma_get", "cma_put", "coop", "auto"};
    check_start(&argc, &argv, wanted_level());
    const int wanted = argc > 1 ? atoi(argv[1]) : 300;
    if (argc > 2) random_state = (unsigned)atoi(argv[2]);
    own_state = random_state * 48271u + (unsigned)check_rank;
    *(void**)&alltoallw_init = dlsym(RTLD_DEFAULT, "MPI_Neighbor_alltoallw_init");
    int cases = 0, topologies = 0;
    for (; cases < wanted; ++topologies) {
        static Topology t;
        make_any(&t);
        for (int i = 0; i < layouts_per_topology && cases < wanted; ++i) {
            const unsigned seed = (unsigned)below(1 << 20);
            const int large = below(8) == 0;
            if (own(4) == 0) set_option("THALWEG_INSIDE", protocols[own(6)]);
            cases += run_layout(&t, seed, large);
        }
        MPI_Comm_free(&t.comm);
    }
    for (int form = 0; form < forms; ++form)
        if (form != persistent || alltoallw_init != NULL) expect_some_as_wanted(as_wanted[form], names[form]);
    if (check_rank == 0) printf("%d cases on %d topologies\n", cases, topologies);
    return check_end();
}
