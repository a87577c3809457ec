/* Blocking collectives of neighbourhoods between ranks of one host that a tuning table
 * (tried_neighbours.json) wants tried where their messages have 16 KiB on average. No rank knows what the
 * others exchange: short ones are the library's, and what grows is looked at again, and tried. Sizes differ
 * from rank to rank, from block to block and from call to call. Every rank does the same at every call; bytes
 * are right. Alltoalls of all ranks, however long, stay the library's, because the row does not speak of
 * them. What setting the memory up cost is told of the kind of call that did it, and of no other one.
 *
 *     tried_neighbours          all of them
 *     tried_neighbours native   none can be ours
 */
#include "check.h"

enum {
    most_edges = 8,
    small_bytes = 64,
    tried_bytes = 20000,
    most_more = 3001, /* by which the sizes of two blocks of a rank differ */
    longest = 100000,
    small_calls = 90,
    until_tried = 300,
    tried_calls = 40
};

typedef enum { allgather, allgatherv, alltoall, alltoallv, alltoallw } Kind;
static const char* const names[] = {"MPI_Neighbor_allgather", "MPI_Neighbor_allgatherv",
                                    "MPI_Neighbor_alltoall", "MPI_Neighbor_alltoallv",
                                    "MPI_Neighbor_alltoallw"};

/* Whose block comes in each of this rank's; -1: nobody's. */
typedef struct {
    MPI_Comm comm;
    int in, out, sources[most_edges], their_blocks[most_edges];
} Edges;

static unsigned char *from, *to;
static unsigned seed;
static int is_native; /* none can be ours */

static MPI_Comm graph_of(const Edges* edges, const int* destinations) {
    MPI_Comm comm;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, edges->in, edges->sources, MPI_UNWEIGHTED, edges->out,
                                   destinations, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm);
    return comm;
}

static Edges make_full(void) {
    Edges edges = {MPI_COMM_NULL, 0, 0, {0}, {0}};
    int destinations[most_edges] = {0};
    for (int rank = 0; rank < check_size; ++rank) {
        if (rank == check_rank) continue;
        edges.their_blocks[edges.in] = check_rank - (check_rank > rank);
        edges.sources[edges.in++] = rank;
        destinations[edges.out++] = rank;
    }
    edges.comm = graph_of(&edges, destinations);
    return edges;
}

/* Rank 0 sends nothing, and the others receive nothing. */
static Edges make_star(void) {
    Edges edges = {MPI_COMM_NULL, 0, check_rank != 0, {0}, {0}};
    const int middle[1] = {0};
    if (check_rank == 0)
        for (int rank = 1; rank < check_size; ++rank) edges.sources[edges.in++] = rank;
    edges.comm = graph_of(&edges, middle);
    return edges;
}

/* Each rank has a block for somebody beyond a border where it has no neighbour. */
static Edges make_line(void) {
    const int dims[1] = {check_size}, periods[1] = {0};
    Edges edges = {MPI_COMM_NULL, 2, 2, {0}, {1, 0}}; /* what went up comes from below */
    MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &edges.comm);
    edges.sources[0] = check_rank - 1;
    edges.sources[1] = check_rank + 1 < check_size ? check_rank + 1 : -1;
    return edges;
}

/* What a rank sends in one of its blocks. Of what is short nothing grows. */
static int bytes_of(Kind kind, int rank, int block, int bytes) {
    const int more = bytes < tried_bytes ? 3 : most_more;
    if (kind == allgather || kind == alltoall) return bytes;
    if (kind == allgatherv) return bytes + rank * more;
    return block % 3 == 2 ? 0 : bytes + (2 * rank + block) * more + (int)(seed % 4);
}
static unsigned seed_of(Kind kind, int rank, int block) {
    const int gathers = kind == allgather || kind == allgatherv;
    return seed * 64 + (unsigned)(rank * 8 + (gathers ? 0 : block));
}

/* Where blocks have no places of their own they lie one behind the other. */
static int place_of(Kind kind, int block, int bytes) {
    return kind == allgather || kind == alltoall ? block * bytes : block * longest;
}

static void call(Kind kind, const Edges* edges, int bytes) {
    int parts[most_edges] = {0}, counts[most_edges] = {0}, places[most_edges];
    MPI_Aint far[most_edges];
    MPI_Datatype types[most_edges];
    for (int i = 0; i < most_edges; ++i) {
        far[i] = places[i] = i * longest;
        types[i] = MPI_BYTE;
    }
    for (int i = 0; i < edges->out; ++i) parts[i] = bytes_of(kind, check_rank, i, bytes);
    for (int i = 0; i < edges->in; ++i)
        if (edges->sources[i] >= 0)
            counts[i] = bytes_of(kind, edges->sources[i], edges->their_blocks[i], bytes);
    const int own = bytes_of(kind, check_rank, 0, bytes);
    if (kind == allgather)
        MPI_Neighbor_allgather(from, own, MPI_BYTE, to, bytes, MPI_BYTE, edges->comm);
    else if (kind == allgatherv)
        MPI_Neighbor_allgatherv(from, own, MPI_BYTE, to, counts, places, MPI_BYTE, edges->comm);
    else if (kind == alltoall)
        MPI_Neighbor_alltoall(from, bytes, MPI_BYTE, to, bytes, MPI_BYTE, edges->comm);
    else if (kind == alltoallv)
        MPI_Neighbor_alltoallv(from, parts, places, MPI_BYTE, to, counts, places, MPI_BYTE, edges->comm);
    else
        MPI_Neighbor_alltoallw(from, parts, far, types, to, counts, far, types, edges->comm);
}

static int everywhere(int ran, const char* name) {
    int ways[2] = {ran, -ran};
    MPI_Allreduce(MPI_IN_PLACE, ways, 2, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    CHECK(ways[0] == -ways[1], "%s %u: some ranks ran it, others did not", name, seed);
    return ran;
}

/* What the library refuses one rank counts for nothing. */
static void call_wrongly(const Edges* edges) {
    int ones[most_edges], places[most_edges] = {0};
    MPI_Datatype uncommitted;
    MPI_Type_contiguous(small_bytes, MPI_BYTE, &uncommitted);
    MPI_Comm_set_errhandler(edges->comm, MPI_ERRORS_RETURN);
    for (int i = 0; i < most_edges; ++i) ones[i] = 1;
    CHECK(MPI_Neighbor_alltoallv(from, ones, places, uncommitted, to, ones, places, uncommitted,
                                 edges->comm) != MPI_SUCCESS,
          "the type was not committed");
    MPI_Type_free(&uncommitted);
}

/* Whether it was one of ours, on all ranks alike. */
static int exchange(Kind kind, const Edges* edges, int bytes) {
    enum { wrong = 11 };
    ++seed;
    if (kind == alltoallv && check_rank == 0 && edges->out > 0 && seed % wrong == 0) call_wrongly(edges);
    memset(to, poison_value, most_edges * (size_t)longest);
    for (int i = 0; i < edges->out; ++i)
        fill(from + place_of(kind, i, bytes), (size_t)bytes_of(kind, check_rank, i, bytes),
             seed_of(kind, check_rank, i));
    if (kind == allgather || kind == allgatherv)
        fill(from, (size_t)bytes_of(kind, check_rank, 0, bytes), seed_of(kind, check_rank, 0));
    const uint64_t before = looked_at();
    call(kind, edges, bytes);
    const int ran = looked_at() != before && was_accelerated();
    for (int i = 0; i < edges->in; ++i) {
        const int source = edges->sources[i], theirs = edges->their_blocks[i];
        const unsigned char* const block = to + place_of(kind, i, bytes);
        const int length = source < 0 ? 0 : bytes_of(kind, source, theirs, bytes);
        if (length > 0) verify(block, (size_t)length, seed_of(kind, source, theirs), names[kind]);
        if (i + 1 == edges->in || place_of(kind, 1, bytes) == longest)
            CHECK(block[length] == poison_value || source < 0, "%s: written behind block %d", names[kind], i);
    }
    return everywhere(ran, names[kind]);
}

static int is_taken(void) { return expect_thalweg() && check_size > 1 && !is_native; }

/* What was short for so many calls that it has been looked at becomes long. */
static void grows(Kind kind, const Edges* edges) {
    for (int i = 0; i < small_calls; ++i)
        CHECK(!exchange(kind, edges, small_bytes), "%s: a short one was tried", names[kind]);
    int calls = 0, ours = 0;
    while (!ours && calls++ < until_tried) ours = exchange(kind, edges, tried_bytes);
    if (is_taken())
        CHECK(ours, "%s: none is tried (%s)", names[kind], last_reason());
    else
        CHECK(!ours, "%s: call %d was ours", names[kind], calls);
    for (int i = 0; i < tried_calls; ++i)
        exchange(kind, edges, i % 5 == 4 ? small_bytes : tried_bytes + 40 * i);
}

/* The figures of the calls that were tried as number `plan`, once a trial of them is over. */
static int told(size_t plan, thalweg_plan_stats* stats) {
    int (*look)(size_t, thalweg_plan_stats*, size_t);
    *(void**)&look = dlsym(RTLD_DEFAULT, "thalweg_get_plan_stats");
    return look != NULL && look(plan, stats, sizeof *stats) == THALWEG_OK && stats->once_measured;
}

/* Short calls are looked at, and left; others set the memory up; then the first ones grow, and find it there.
 * Before any others. */
static void pays_once(void) {
    enum { first = 0, second = 1 };
    thalweg_plan_stats stats;
    Edges edges = make_full();
    for (int i = 0; i < small_calls; ++i) exchange(alltoallv, &edges, small_bytes);
    grows(alltoallw, &edges);
    for (int i = 0; i < until_tried; ++i) exchange(alltoallv, &edges, tried_bytes);
    if (is_taken()) {
        CHECK(told(first, &stats) && strcmp(stats.operation, "neighbor_alltoallw") == 0 &&
                  stats.init_seconds > 0,
              "nothing is told of who set the memory up");
        CHECK(told(second, &stats) && strcmp(stats.operation, "neighbor_alltoallv") == 0,
              "nothing is told of who found it there");
        CHECK(stats.init_seconds == 0, "%s cost %g s to set up, where all was there", stats.operation,
              stats.init_seconds);
    }
    MPI_Comm_free(&edges.comm);
}

static void leaves_alltoalls(MPI_Comm comm) {
    enum { calls = 60 };
    int counts[most_edges], places[most_edges];
    for (int i = 0; i < most_edges; ++i) counts[i] = tried_bytes, places[i] = i * longest;
    for (int i = 0; i < calls; ++i) {
        const uint64_t before = looked_at();
        MPI_Alltoallv(from, counts, places, MPI_BYTE, to, counts, places, MPI_BYTE, comm);
        CHECK(looked_at() == before || !was_accelerated(), "an alltoall of all ranks was taken");
    }
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, MPI_THREAD_SINGLE);
    CHECK(check_size <= most_edges, "too many ranks");
    is_native = argc > 1 && strcmp(argv[1], "native") == 0;
    from = guarded_new(most_edges * (size_t)longest);
    to = guarded_new(most_edges * (size_t)longest);
    pays_once();
    Edges full = make_full(), star = make_star(), line = make_line();
    for (Kind kind = allgather; kind <= alltoallw; ++kind) grows(kind, &full);
    grows(allgather, &line);
    grows(alltoallv, &line);
    grows(alltoallw, &star);
    leaves_alltoalls(full.comm);
    MPI_Comm_free(&star.comm);
    for (int round = 0; round < 20; ++round) { /* as a mesh that is refined again and again */
        Edges again = make_star();
        for (int i = 0; i < 12 + round % 5; ++i) exchange(alltoallv, &again, tried_bytes);
        MPI_Comm_free(&again.comm);
    }
    MPI_Comm_free(&line.comm);
    MPI_Comm_free(&full.comm);
    guarded_free(from, most_edges * (size_t)longest);
    guarded_free(to, most_edges * (size_t)longest);
    return check_end();
}
