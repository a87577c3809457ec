/* Neighbourhood collectives, blocking, nonblocking and persistent, against their definition, on random grids
 * and graphs: dimensions of one and two that go round, borders, edges to oneself and edges that occur several
 * times, ranks without any. What lies between the blocks, and blocks from beyond a border, keep what they
 * had. THALWEG_TEST_TAKEN=1: all were taken. THALWEG_TEST_ALGORITHM=NAME: every persistent one by that, and
 * some of the others, which may have to learn first.
 *
 *     neighbours TOPOLOGIES [SEED]
 */
#include "topologies.h"

enum { most_ints = 40 };

typedef int AlltoallInit(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, MPI_Comm, MPI_Info,
                         MPI_Request*);
typedef int GathervInit(const void*, int, MPI_Datatype, void*, const int*, const int*, MPI_Datatype, MPI_Comm,
                        MPI_Info, MPI_Request*);
typedef int AlltoallvInit(const void*, const int*, const int*, MPI_Datatype, void*, const int*, const int*,
                          MPI_Datatype, MPI_Comm, MPI_Info, MPI_Request*);
typedef int AlltoallwInit(const void*, const int*, const MPI_Aint*, const MPI_Datatype*, void*, const int*,
                          const MPI_Aint*, const MPI_Datatype*, MPI_Comm, MPI_Info, MPI_Request*);
static AlltoallInit *alltoall_init, *allgather_init;
static GathervInit* allgatherv_init;
static AlltoallvInit* alltoallv_init;
static AlltoallwInit* alltoallw_init;

typedef enum { blocking, nonblocking, persistent, forms } Form;
typedef enum { allgather, allgatherv, alltoall, alltoallv, alltoallw, kinds } Kind;
static const char* const names[] = {"allgather", "allgatherv", "alltoall", "alltoallv", "alltoallw"};

static int ints_of(Kind kind, int same, int rank, int block) {
    const unsigned mix = (unsigned)(rank * 37 + block * 11 + same);
    if (kind == allgather || kind == alltoall) return same;
    if (kind == allgatherv) return (int)(mix - (unsigned)(block * 11)) % most_ints;
    return (int)(mix % 3 == 0 ? 0 : mix % most_ints);
}
static int value_of(Kind kind, int rank, int block, int round, int i) {
    if (kind == allgather || kind == allgatherv) block = 0;
    return rank * 1000003 + block * 30011 + round * 997 + i * 3 + 1;
}

/* Buffers with room for the largest block, and one int between blocks that nobody may touch. Of an alltoallw
 * what is sent are columns of a matrix: every third int. */
typedef struct {
    int counts[most_edges], places[most_edges], memory[most_edges * (3 * most_ints + 1) + 1];
    MPI_Aint far[most_edges];
    MPI_Datatype types[most_edges];
} Side;
static Side sent, received;
static int expected[sizeof received.memory / sizeof(int)];

static void lay_out(const Topology* t, Kind kind, int same) {
    const int gathers = kind == allgather || kind == allgatherv;
    const int column = 3;
    for (int block = 0, place = 0; block < t->out; ++block) {
        const int count = ints_of(kind, same, t->rank, gathers ? 0 : block);
        sent.counts[block] = count;
        sent.places[block] = gathers ? 0 : place;
        if (kind == alltoallw) {
            const int sizes[2] = {count > 0 ? count : 1, column}, sub[2] = {count > 0 ? count : 1, 1};
            const int begin[2] = {0, 1};
            MPI_Type_create_subarray(2, sizes, sub, begin, MPI_ORDER_C, MPI_INT, &sent.types[block]);
            MPI_Type_commit(&sent.types[block]);
            sent.far[block] = (MPI_Aint)place * (MPI_Aint)sizeof(int);
            sent.counts[block] = count > 0;
            place += column * count;
        } else {
            place += count + (kind == alltoallv);
        }
    }
    /* Backwards where a call says where. */
    int place = 0;
    for (int turn = 0; turn < t->in; ++turn) {
        const int placed = kind == allgatherv || kind == alltoallv || kind == alltoallw;
        const int block = placed ? t->in - 1 - turn : turn;
        int from, their_block;
        const int known = origin_of(t, block, &from, &their_block);
        /* Beyond a border there is somebody to ask for any number. */
        const int count = known ? ints_of(kind, same, from, gathers ? 0 : their_block) : same;
        received.counts[block] = count;
        received.places[block] = place;
        received.far[block] = (MPI_Aint)place * (MPI_Aint)sizeof(int);
        received.types[block] = MPI_INT;
        place += count + placed;
    }
}

static void expect(const Topology* t, Kind kind, int round) {
    const int words = (int)(sizeof received.memory / sizeof(int));
    for (int i = 0; i < words; ++i) received.memory[i] = expected[i] = -7 - round;
    for (int block = 0; block < t->in; ++block) {
        int from, their_block;
        if (!origin_of(t, block, &from, &their_block)) continue;
        for (int i = 0; i < received.counts[block]; ++i)
            expected[received.places[block] + i] = value_of(kind, from, their_block, round, i);
    }
    for (int block = 0; block < t->out; ++block) {
        if (kind == alltoallw) {
            int ints = ints_of(kind, 0, 0, 0);
            MPI_Type_size(sent.types[block], &ints);
            ints = sent.counts[block] * ints / (int)sizeof(int);
            for (int i = 0; i < ints; ++i)
                sent.memory[(int)(sent.far[block] / (MPI_Aint)sizeof(int)) + 3 * i + 1] =
                    value_of(kind, t->rank, block, round, i);
        } else {
            for (int i = 0; i < sent.counts[block]; ++i)
                sent.memory[sent.places[block] + i] = value_of(kind, t->rank, block, round, i);
        }
    }
}

static void call(const Topology* t, Kind kind, Form form, int same, MPI_Request* request) {
    int own = ints_of(kind, same, t->rank, 0);
    int *const s = sent.memory, *const r = received.memory;
    MPI_Comm comm = t->comm;
    switch (kind) {
        case allgather:
            if (form == blocking) MPI_Neighbor_allgather(s, own, MPI_INT, r, same, MPI_INT, comm);
            if (form == nonblocking)
                MPI_Ineighbor_allgather(s, own, MPI_INT, r, same, MPI_INT, comm, request);
            if (form == persistent)
                allgather_init(s, own, MPI_INT, r, same, MPI_INT, comm, MPI_INFO_NULL, request);
            break;
        case allgatherv:
            if (form == blocking)
                MPI_Neighbor_allgatherv(s, own, MPI_INT, r, received.counts, received.places, MPI_INT, comm);
            if (form == nonblocking)
                MPI_Ineighbor_allgatherv(s, own, MPI_INT, r, received.counts, received.places, MPI_INT, comm,
                                         request);
            if (form == persistent)
                allgatherv_init(s, own, MPI_INT, r, received.counts, received.places, MPI_INT, comm,
                                MPI_INFO_NULL, request);
            break;
        case alltoall:
            if (form == blocking) MPI_Neighbor_alltoall(s, same, MPI_INT, r, same, MPI_INT, comm);
            if (form == nonblocking)
                MPI_Ineighbor_alltoall(s, same, MPI_INT, r, same, MPI_INT, comm, request);
            if (form == persistent)
                alltoall_init(s, same, MPI_INT, r, same, MPI_INT, comm, MPI_INFO_NULL, request);
            break;
        case alltoallv:
            if (form == blocking)
                MPI_Neighbor_alltoallv(s, sent.counts, sent.places, MPI_INT, r, received.counts,
                                       received.places, MPI_INT, comm);
            if (form == nonblocking)
                MPI_Ineighbor_alltoallv(s, sent.counts, sent.places, MPI_INT, r, received.counts,
                                        received.places, MPI_INT, comm, request);
            if (form == persistent)
                alltoallv_init(s, sent.counts, sent.places, MPI_INT, r, received.counts, received.places,
                               MPI_INT, comm, MPI_INFO_NULL, request);
            break;
        default:
            if (form == blocking)
                MPI_Neighbor_alltoallw(s, sent.counts, sent.far, sent.types, r, received.counts, received.far,
                                       received.types, comm);
            if (form == nonblocking)
                MPI_Ineighbor_alltoallw(s, sent.counts, sent.far, sent.types, r, received.counts,
                                        received.far, received.types, comm, request);
            if (form == persistent)
                alltoallw_init(s, sent.counts, sent.far, sent.types, r, received.counts, received.far,
                               received.types, comm, MPI_INFO_NULL, request);
    }
}

/* Of the calls by the algorithm that is wanted. */
static int ran_by_it[forms];
static void note_algorithm(Form form) {
    const char* const wanted = getenv("THALWEG_TEST_ALGORITHM");
    thalweg_last_call call;
    if (wanted == NULL || look_last_call == NULL || look_last_call(&call, sizeof call) != 0) return;
    const int by_it = strcmp(call.algorithm, wanted) == 0;
    ran_by_it[form] += by_it;
    CHECK(form != persistent || by_it, "a plan runs by %s, not %s", call.algorithm, wanted);
}

static int has_init(Kind kind) {
    return kind == allgather    ? allgather_init != NULL
           : kind == allgatherv ? allgatherv_init != NULL
           : kind == alltoall   ? alltoall_init != NULL
           : kind == alltoallv  ? alltoallv_init != NULL
                                : alltoallw_init != NULL;
}

static void exchange(const Topology* t, Kind kind, Form form, int same) {
    if (form == persistent && !has_init(kind)) return;
    lay_out(t, kind, same);
    MPI_Request request = MPI_REQUEST_NULL;
    if (form == persistent) call(t, kind, form, same, &request);
    for (int round = 0; round < 3; ++round) {
        expect(t, kind, round);
        if (form != persistent) call(t, kind, form, same, &request);
        if (check_size > 1 && expect_thalweg() && getenv("THALWEG_TEST_TAKEN") != NULL)
            CHECK(was_accelerated(), "a neighbor_%s, form %d: %s", names[kind], form, last_reason());
        if (round == 0 || form != persistent) note_algorithm(form);
        if (form == persistent) MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        const int words = (int)(sizeof received.memory / sizeof(int));
        for (int i = 0; i < words; ++i)
            CHECK(received.memory[i] == expected[i],
                  "neighbor_%s, form %d, %s of %d: byte %d is wrong: %d, not %d", names[kind], form,
                  t->is_grid ? "a grid" : "a graph", t->size, 4 * i, received.memory[i], expected[i]);
    }
    if (form == persistent) MPI_Request_free(&request);
    for (int block = 0; kind == alltoallw && block < t->out; ++block) MPI_Type_free(&sent.types[block]);
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, wanted_level());
    const int topologies = argc > 1 ? atoi(argv[1]) : 20;
    if (argc > 2) random_state = (unsigned)atoi(argv[2]);
    *(void**)&allgather_init = dlsym(RTLD_DEFAULT, "MPI_Neighbor_allgather_init");
    *(void**)&allgatherv_init = dlsym(RTLD_DEFAULT, "MPI_Neighbor_allgatherv_init");
    *(void**)&alltoall_init = dlsym(RTLD_DEFAULT, "MPI_Neighbor_alltoall_init");
    *(void**)&alltoallv_init = dlsym(RTLD_DEFAULT, "MPI_Neighbor_alltoallv_init");
    *(void**)&alltoallw_init = dlsym(RTLD_DEFAULT, "MPI_Neighbor_alltoallw_init");
    for (int i = 0; i < topologies; ++i) {
        static Topology t;
        make_any(&t);
        for (int kind = 0; kind < kinds; ++kind)
            for (int form = 0; form < forms; ++form) exchange(&t, (Kind)kind, (Form)form, below(most_ints));
        MPI_Comm_free(&t.comm);
    }
    for (int form = 0; form < forms; ++form)
        if (getenv("THALWEG_TEST_ALGORITHM") != NULL && look_last_call != NULL &&
            (form != persistent || alltoallw_init != NULL))
            CHECK(ran_by_it[form] > 0, "no call of form %d ran by %s", form,
                  getenv("THALWEG_TEST_ALGORITHM"));
    return check_end();
}
