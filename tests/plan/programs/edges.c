/* Neighbourhoods whose ends do not agree on sizes, none included: MPI demands that they do, and the libraries
 * post every edge and let a message pass that is shorter than its receive. Random grids and graphs, with
 * edges to oneself and edges that occur several times: what is sent arrives by its own edge, and what lies
 * behind it keeps what it held, in receives that end inside an element too. Then a message of an edge whose
 * receiver expects none: its rank is told MPI_ERR_TRUNCATE, the others are done, and the communicator goes
 * on.
 *
 *     edges [room | truncated | both]        both by default
 *
 * THALWEG_TEST_TAKEN=1: all were taken.
 */
#include "topologies.h"

/* `room` is a multiple of the ints of every type. */
enum { most = 4000, room = 9000, places = 2 * room, poison_int = -7, most_blocks = 24 };
typedef int AlltoallvInit(const void*, const int*, const int*, MPI_Datatype, void*, const int*, const int*,
                          MPI_Datatype, MPI_Comm, MPI_Info, MPI_Request*);
static AlltoallvInit* alltoallv_init;

typedef enum { blocking, nonblocking, persistent, forms } Form;
typedef enum { alltoallv, allgatherv, kinds } Kind;
static const char* const form_names[] = {"blocking", "nonblocking", "persistent"};

/* How ints are received: in a row, every second one, or the same by elements of six. */
typedef enum { row, strided, dealt, shapes } Shape;
static MPI_Datatype types[shapes];
static const int unit[] = {1, 1, 6}, extent[] = {1, 2, 12};
static int place_of(Shape shape, int i) { return shape == row ? i : shape == strided ? 2 * i : 2 * i + 1; }

static void make_types(void) {
    const int length = 12, distribution = MPI_DISTRIBUTE_CYCLIC, argument = 1, processes = 2;
    types[row] = MPI_INT;
    MPI_Type_create_resized(MPI_INT, 0, 2 * (MPI_Aint)sizeof(int), &types[strided]);
    MPI_Type_create_darray(2, 1, 1, &length, &distribution, &argument, &processes, MPI_ORDER_C, MPI_INT,
                           &types[dealt]);
    MPI_Type_commit(&types[strided]);
    MPI_Type_commit(&types[dealt]);
}

static int sent(Kind kind, int from, int block, int call) {
    const int mix = from * 7 + (kind == allgatherv ? 0 : block) * 13 + call * 29;
    return mix % 3 == 0 ? 0 : mix % 3 == 1 ? 1 + mix % 40 : 1 + mix * 389 % most;
}
static int beyond(int from, int block, int call) {
    const int mix = from * 5 + block * 3 + call;
    return mix % 3 == 0 ? 0 : mix % 3 == 1 ? mix % 50 + 1 : most;
}
static int value_of(Kind kind, int from, int block, int call, int i) {
    return from * 1000003 + (kind == allgatherv ? 0 : block) * 10007 + call * 101 + i;
}

typedef struct {
    int counts[most_blocks], at[most_blocks];
    int memory[most_blocks * places];
} Side;
static Side out, in;

static void prepare(const Topology* t, Kind kind, Shape shape, int call) {
    for (int block = 0; block < t->out; ++block) {
        out.counts[block] = sent(kind, t->rank, block, call);
        out.at[block] = block * places;
        for (int i = 0; i < out.counts[block]; ++i)
            out.memory[out.at[block] + i] = value_of(kind, t->rank, block, call, i);
    }
    for (int block = 0; block < t->in; ++block) {
        int from = 0, theirs = 0, ints = 0;
        if (origin_of(t, block, &from, &theirs))
            ints = sent(kind, from, theirs, call) + beyond(from, theirs, call);
        in.counts[block] = (ints + unit[shape] - 1) / unit[shape];
        in.at[block] = block * places / extent[shape];
    }
}
static void poison(const Topology* t) {
    for (int i = 0; i < t->in * places; ++i) in.memory[i] = poison_int;
}
static void verify_blocks(const Topology* t, Kind kind, Shape shape, int call, const char* what) {
    static int expected[places];
    for (int block = 0; block < t->in; ++block) {
        int from = 0, theirs = 0;
        for (int i = 0; i < places; ++i) expected[i] = poison_int;
        if (origin_of(t, block, &from, &theirs))
            for (int i = 0; i < sent(kind, from, theirs, call); ++i)
                expected[place_of(shape, i)] = value_of(kind, from, theirs, call, i);
        for (int i = 0; i < places; ++i)
            if (in.memory[block * places + i] != expected[i])
                FAIL("%s, shape %d, call %d, block %d from block %d of %d: number %d is %d, not %d", what,
                     shape, call, block, theirs, from, i, in.memory[block * places + i], expected[i]);
        ++check_count;
    }
}

static void expect_taken(const char* what) {
    if (!expect_thalweg() || getenv("THALWEG_TEST_TAKEN") == NULL) return;
    CHECK(was_accelerated(), "%s: %s", what, last_reason());
}
static int run(Kind kind, Form form, MPI_Datatype type, MPI_Comm comm, MPI_Request* request) {
    if (form == persistent) MPI_Start(request);
    if (kind == alltoallv && form == blocking)
        return MPI_Neighbor_alltoallv(out.memory, out.counts, out.at, MPI_INT, in.memory, in.counts, in.at,
                                      type, comm);
    if (kind == allgatherv && form == blocking)
        return MPI_Neighbor_allgatherv(out.memory, out.counts[0], MPI_INT, in.memory, in.counts, in.at, type,
                                       comm);
    if (kind == alltoallv && form == nonblocking)
        MPI_Ineighbor_alltoallv(out.memory, out.counts, out.at, MPI_INT, in.memory, in.counts, in.at, type,
                                comm, request);
    if (kind == allgatherv && form == nonblocking)
        MPI_Ineighbor_allgatherv(out.memory, out.counts[0], MPI_INT, in.memory, in.counts, in.at, type, comm,
                                 request);
    return MPI_Wait(request, MPI_STATUS_IGNORE);
}
static void init(MPI_Datatype type, MPI_Comm comm, MPI_Request* request) {
    alltoallv_init(out.memory, out.counts, out.at, MPI_INT, in.memory, in.counts, in.at, type, comm,
                   MPI_INFO_NULL, request);
    expect_taken(form_names[persistent]);
}

static void with_room(const Topology* t, Kind kind, Form form, Shape shape, int call) {
    MPI_Request request = MPI_REQUEST_NULL;
    prepare(t, kind, shape, call);
    if (form == persistent) init(types[shape], t->comm, &request);
    for (int start = 0; start < 2; ++start) {
        poison(t);
        const int error = run(kind, form, types[shape], t->comm, &request);
        CHECK(error == MPI_SUCCESS, "a %s neighbourhood: error %d", form_names[form], error);
        if (form != persistent) expect_taken(form_names[form]);
        verify_blocks(t, kind, shape, call, form_names[form]);
    }
    if (form == persistent) MPI_Request_free(&request);
}

/* A ring, two edges from each rank to the next: by the first go none, by the second `ints`. The last rank has
 * room by the first one only, and the others by both. */
static void none_expected(Form form, int ints) {
    const int next = (check_rank + 1) % check_size, before = (check_rank + check_size - 1) % check_size;
    const int to[2] = {next, next}, from[2] = {before, before}, weights[2] = {1, 1};
    const int last = check_rank == check_size - 1;
    MPI_Comm comm;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, from, weights, 2, to, weights, MPI_INFO_NULL, 0, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    for (int call = 0; call < 4; ++call) {
        const int wrong = call % 2 == 0, told = wrong && last;
        int class = MPI_SUCCESS;
        for (int edge = 0; edge < 2; ++edge) {
            out.counts[edge] = edge == 0 ? 0 : ints;
            in.counts[edge] = told && edge == 1 ? 0 : ints;
            out.at[edge] = in.at[edge] = edge * places;
        }
        for (int i = 0; i < ints; ++i) out.memory[places + i] = value_of(alltoallv, check_rank, 1, call, i);
        for (int i = 0; i < 2 * places; ++i) in.memory[i] = poison_int;
        if (form == persistent) init(MPI_INT, comm, &request);
        MPI_Error_class(run(alltoallv, form, MPI_INT, comm, &request), &class);
        CHECK(class == (told ? MPI_ERR_TRUNCATE : MPI_SUCCESS), "a %s neighbourhood, call %d: error class %d",
              form_names[form], call, class);
        if (form != persistent) expect_taken(form_names[form]);
        for (int i = 0; i < 2 * places; ++i) {
            const int filled = !told && i >= places && i - places < ints;
            const int right = filled ? value_of(alltoallv, before, 1, call, i - places) : poison_int;
            if (in.memory[i] != right)
                FAIL("a %s neighbourhood, call %d: number %d is %d, not %d", form_names[form], call, i,
                     in.memory[i], right);
        }
        if (form == persistent) MPI_Request_free(&request);
    }
    MPI_Comm_free(&comm);
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, wanted_level());
    const char* const part = argc > 1 ? argv[1] : "both";
    *(void**)&alltoallv_init = dlsym(RTLD_DEFAULT, "MPI_Neighbor_alltoallv_init");
    if (check_size < 2) return check_end();
    make_types();
    random_state = 5;
    for (int topology = 0; topology < 8 && strcmp(part, "truncated") != 0; ++topology) {
        static Topology t;
        make_any(&t);
        for (int form = 0; form < forms; ++form)
            for (int kind = 0; kind < kinds; ++kind) {
                if (form == persistent && (alltoallv_init == NULL || kind != alltoallv)) continue;
                for (int shape = 0; shape < shapes; ++shape)
                    with_room(&t, (Kind)kind, (Form)form, (Shape)shape, topology * shapes + shape);
            }
        MPI_Comm_free(&t.comm);
    }
    if (strcmp(part, "room") != 0) {
        /* MPICH asks the world's handler for what happens to a request. */
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        for (int form = 0; form < forms; ++form) {
            if (form == persistent && alltoallv_init == NULL) continue;
            none_expected((Form)form, 3);
            none_expected((Form)form, room);
        }
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    }
    MPI_Type_free(&types[strided]);
    MPI_Type_free(&types[dealt]);
    return check_end();
}
