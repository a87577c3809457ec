/* Several exchanges between neighbours under way at the same time, each on a communicator of its own that may
 * be freed meanwhile, as may datatypes: random topologies, with edges to oneself and double ones. What is
 * sent may overlap: runs with strides of any sign, elements whose extent is smaller than they are, nothing or
 * negative. Any buffer may be MPI_BOTTOM, and addresses in displacements, in datatypes, or part here and part
 * there.
 *
 *     overlaps CASES [SEED]
 */
#include "topologies.h"

typedef int AlltoallwInit(const void*, const int*, const MPI_Aint*, const MPI_Datatype*, void*, const int*,
                          const MPI_Aint*, const MPI_Datatype*, MPI_Comm, MPI_Info, MPI_Request*);
static AlltoallwInit* alltoallw_init;

enum { exchanges = 3, middle = 60000, words = 2 * middle, rounds = 2 };

/* This rank's own. */
static unsigned own_state = 1;
static int own(int limit) {
    own_state = own_state * 1664525u + 1013904223u;
    return (int)((own_state >> 8) % (unsigned)limit);
}

static unsigned mix(unsigned seed, int rank, int block, int what) {
    unsigned x = seed + (unsigned)rank * 7919u + (unsigned)block * 104729u + (unsigned)what * 15485863u;
    x ^= x >> 15;
    x *= 2246822519u;
    x ^= x >> 13;
    x *= 3266489917u;
    return x ^ x >> 16;
}

/* What a rank sends in a block: `count` elements of `runs` runs; in ints. */
typedef struct {
    int base, run, runs, stride, count, extent;
} Sent;
static Sent sent_of(unsigned seed, int large, int rank, int block) {
    Sent s;
    s.base = middle + (int)(mix(seed, rank, block, 0) % 500u);
    s.run = 1 + (int)(mix(seed, rank, block, 1) % (large ? 700u : 9u));
    s.runs = 1 + (int)(mix(seed, rank, block, 2) % (large ? 12u : 5u));
    s.stride = (int)(mix(seed, rank, block, 3) % (unsigned)(2 * s.run + 4)) - s.run / 2;
    s.count = (int)(mix(seed, rank, block, 4) % 5u);
    s.extent = (int)(mix(seed, rank, block, 5) % (unsigned)(2 * s.run * s.runs + 3)) - s.run * s.runs / 2;
    if (mix(seed, rank, block, 6) % 4u == 0) s.extent = 0;
    return s;
}
static int ints_of(const Sent* s) { return s->run * s->runs * s->count; }
static int place_of(const Sent* s, int i) {
    const int each = s->run * s->runs, j = i % each;
    return s->base + i / each * s->extent + j / s->run * s->stride + j % s->run;
}
static int value_of(unsigned seed, int rank, int round, int place) {
    return (int)(mix(seed, rank, round, 7) % 100000u) * 100 + place * 13 + 1;
}

typedef struct {
    const void* buffer;
    int *memory, counts[most_edges];
    MPI_Aint places[most_edges];
    MPI_Datatype types[most_edges];
} Side;
typedef struct {
    Topology t;
    unsigned seed;
    int large, freed;
    Side out, in;
    int received[most_edges][3]; /* place, run, stride */
    MPI_Request request;
} Exchange;

/* The type, at so many ints from the begin of the memory, as this rank happens to say it. `bottom`: of all
 * blocks of a side. */
static void tell(Side* side, int block, MPI_Datatype type, int place, int bottom) {
    MPI_Aint at, part = 0;
    MPI_Get_address(side->memory, &at);
    at += place * (MPI_Aint)sizeof(int);
    if (!bottom) at = place * (MPI_Aint)sizeof(int);
    const int way = own(3); /* in the displacement, in the type, in both */
    if (way == 1) part = at;
    if (way == 2) part = at / 3;
    side->places[block] = at - part;
    side->types[block] = type;
    if (part == 0) {
        MPI_Type_commit(&side->types[block]);
        return;
    }
    /* The extent of the type counts, too: all its elements in one. */
    MPI_Type_create_hindexed(1, &side->counts[block], &part, type, &side->types[block]);
    side->counts[block] = side->counts[block] == 0 ? 0 : 1;
    MPI_Type_free(&type);
    MPI_Type_commit(&side->types[block]);
}

static void lay_out(Exchange* e) {
    const int out_bottom = own(3) == 0, in_bottom = own(3) == 0;
    e->out.memory = malloc(words * sizeof(int));
    e->out.buffer = out_bottom ? MPI_BOTTOM : e->out.memory;
    for (int block = 0; block < e->t.out; ++block) {
        const Sent s = sent_of(e->seed, e->large, e->t.rank, block);
        MPI_Datatype runs, element;
        MPI_Type_vector(s.runs, s.run, s.stride, MPI_INT, &runs);
        MPI_Type_create_resized(runs, own(3) * (MPI_Aint)sizeof(int), s.extent * (MPI_Aint)sizeof(int),
                                &element);
        MPI_Type_free(&runs);
        e->out.counts[block] = s.count;
        tell(&e->out, block, element, s.base, out_bottom);
    }
    int place = 1;
    for (int block = 0; block < e->t.in; ++block) {
        int from, their_block, ints = own(20);
        if (origin_of(&e->t, block, &from, &their_block)) {
            const Sent s = sent_of(e->seed, e->large, from, their_block);
            ints = ints_of(&s);
        }
        int run = 1 + own(ints < 700 ? ints + 1 : 700);
        while (ints % run != 0) --run;
        const int runs = ints / run, stride = run + own(3), backwards = own(2);
        e->received[block][0] = backwards && runs > 0 ? place + (runs - 1) * stride : place;
        e->received[block][1] = run;
        e->received[block][2] = backwards ? -stride : stride;
        place += runs * stride + 2;
        MPI_Datatype type;
        MPI_Type_vector(runs, run, e->received[block][2], MPI_INT, &type);
        e->in.counts[block] = ints == 0 ? 0 : 1;
        e->in.types[block] = type;
    }
    e->in.memory = malloc((size_t)(place + 1) * sizeof(int));
    e->in.buffer = in_bottom ? MPI_BOTTOM : e->in.memory;
    for (int block = 0; block < e->t.in; ++block)
        tell(&e->in, block, e->in.types[block], e->received[block][0], in_bottom);
    e->out.memory[0] = place + 1; /* how many are received into; none is sent from there */
}

static void fill_all(Exchange* e, int round) {
    for (int i = 1; i < words; ++i) e->out.memory[i] = value_of(e->seed, e->t.rank, round, i);
    for (int i = 0; i < e->out.memory[0]; ++i) e->in.memory[i] = -9;
}

static void verify_all(Exchange* e, int round, const char* what) {
    const int size = e->out.memory[0];
    int* const expected = malloc((size_t)size * sizeof(int));
    for (int i = 0; i < size; ++i) expected[i] = -9;
    for (int block = 0; block < e->t.in; ++block) {
        int from, their_block;
        if (!origin_of(&e->t, block, &from, &their_block)) continue;
        const Sent s = sent_of(e->seed, e->large, from, their_block);
        const int run = e->received[block][1];
        for (int i = 0; i < ints_of(&s); ++i)
            expected[e->received[block][0] + i / run * e->received[block][2] + i % run] =
                value_of(e->seed, from, round, place_of(&s, i));
    }
    for (int i = 0; i < size; ++i)
        if (e->in.memory[i] != expected[i])
            FAIL("%s, seed %u, round %d: int %d of %d is %d, not %d", what, e->seed, round, i, size,
                 e->in.memory[i], expected[i]);
    ++check_count;
    free(expected);
}

static void free_types(Exchange* e) {
    for (int block = 0; block < e->t.out; ++block) MPI_Type_free(&e->out.types[block]);
    for (int block = 0; block < e->t.in; ++block) MPI_Type_free(&e->in.types[block]);
}

static void begin(Exchange* e, int persistent) {
    if (persistent)
        alltoallw_init(e->out.buffer, e->out.counts, e->out.places, e->out.types, (void*)e->in.buffer,
                       e->in.counts, e->in.places, e->in.types, e->t.comm, MPI_INFO_NULL, &e->request);
    else
        MPI_Ineighbor_alltoallw(e->out.buffer, e->out.counts, e->out.places, e->out.types,
                                (void*)e->in.buffer, e->in.counts, e->in.places, e->in.types, e->t.comm,
                                &e->request);
    if (check_size > 1 && expect_thalweg() && getenv("THALWEG_TEST_TAKEN") != NULL)
        CHECK(was_accelerated(), "%s", last_reason());
}

static void wait_all(Exchange* all) {
    MPI_Request requests[exchanges];
    for (int i = 0; i < exchanges; ++i) requests[i] = all[i].request;
    switch (own(3)) {
        case 0:
            MPI_Waitall(exchanges, requests, MPI_STATUSES_IGNORE);
            break;
        case 1:
            for (int i = exchanges; i-- > 0;) MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
            break;
        default:
            for (int left = exchanges; left > 0;) {
                int index = MPI_UNDEFINED, flag = 0;
                MPI_Testany(exchanges, requests, &index, &flag, MPI_STATUS_IGNORE);
                if (flag && index == MPI_UNDEFINED) break;
                left -= flag;
            }
    }
    for (int i = 0; i < exchanges; ++i) all[i].request = requests[i];
}

static void run_case(int persistent) {
    static Exchange all[exchanges];
    static const char* const names[] = {"nonblocking", "persistent"};
    for (int i = 0; i < exchanges; ++i) {
        make_any(&all[i].t);
        all[i].seed = (unsigned)below(1 << 20);
        all[i].large = below(3) == 0;
        all[i].freed = below(2);
        lay_out(&all[i]);
        if (persistent) begin(&all[i], 1);
    }
    for (int round = 0; round < (persistent ? rounds : 1); ++round) {
        const int first = own(exchanges);
        for (int i = 0; i < exchanges; ++i) {
            Exchange* const e = &all[(first + i) % exchanges];
            fill_all(e, round);
            if (persistent)
                MPI_Start(&e->request);
            else
                begin(e, 0);
        }
        for (int i = 0; i < exchanges && round == 0; ++i)
            if (all[i].freed) MPI_Comm_free(&all[i].t.comm), free_types(&all[i]);
        wait_all(all);
        for (int i = 0; i < exchanges; ++i) verify_all(&all[i], round, names[persistent]);
    }
    for (int i = 0; i < exchanges; ++i) {
        if (persistent) MPI_Request_free(&all[i].request);
        if (!all[i].freed) MPI_Comm_free(&all[i].t.comm), free_types(&all[i]);
        free(all[i].out.memory);
        free(all[i].in.memory);
    }
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, wanted_level());
    const int wanted = argc > 1 ? atoi(argv[1]) : 50;
    if (argc > 2) random_state = (unsigned)atoi(argv[2]);
    own_state = random_state * 48271u + (unsigned)check_rank;
    *(void**)&alltoallw_init = dlsym(RTLD_DEFAULT, "MPI_Neighbor_alltoallw_init");
    for (int i = 0; i < wanted; ++i) run_case(alltoallw_init != NULL && i % 2);
    return check_end();
}
