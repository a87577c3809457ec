/* Persistent neighbourhood collectives between ranks of one host that a tuning table takes
 * (planned_neighbours.json: from 1000 bytes per message on): in the memory of the host, whatever thread level
 * the program has. On a ring, where two ranks are neighbours twice, and on a graph on which rank 0 sends
 * nothing and the others receive nothing. Shorter ones are the library's, and so are alltoalls of all ranks.
 * Receive buffers are poisoned before every start.
 */
#include "check.h"

enum { most_edges = 8, longest = 300000, starts = 20 };

typedef int Init(const void*, const int*, const int*, MPI_Datatype, void*, const int*, const int*,
                 MPI_Datatype, MPI_Comm, MPI_Info, MPI_Request*);
static Init* neighbours_init;

/* What a rank exchanges: which block of whom comes in each of its own. */
typedef struct {
    MPI_Comm comm;
    int in, out, sources[most_edges], their_blocks[most_edges];
} Edges;

typedef struct {
    Edges edges;
    unsigned char *sent, *got;
    int sent_bytes[most_edges], got_bytes[most_edges], places[most_edges];
    int ours;
    MPI_Request request;
} Plan;

static Edges make_ring(void) {
    const int dims[1] = {check_size}, periods[1] = {1};
    Edges edges = {MPI_COMM_NULL, 2, 2, {0}, {1, 0}}; /* what went up comes from below */
    MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &edges.comm);
    edges.sources[0] = (check_rank + check_size - 1) % check_size;
    edges.sources[1] = (check_rank + 1) % check_size;
    return edges;
}

static Edges make_star(void) {
    Edges edges = {MPI_COMM_NULL, 0, 0, {0}, {0}};
    const int middle = 0;
    CHECK(check_size <= most_edges, "%d ranks", check_size);
    if (check_rank != 0) edges.out = 1;
    if (check_rank == 0)
        for (int rank = 1; rank < check_size; ++rank) edges.sources[edges.in++] = rank;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, edges.in, edges.sources, MPI_UNWEIGHTED, edges.out,
                                   &middle, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &edges.comm);
    return edges;
}

/* Block b of rank r has `bytes` + (2 r + b) * `more` bytes. */
static void make(Plan* plan, const Edges* edges, int bytes, int more) {
    plan->edges = *edges;
    plan->sent = guarded_new(most_edges * (size_t)longest);
    plan->got = guarded_new(most_edges * (size_t)longest);
    for (int i = 0; i < most_edges; ++i) plan->places[i] = i * longest;
    for (int i = 0; i < edges->out; ++i) plan->sent_bytes[i] = bytes + (2 * check_rank + i) * more;
    for (int i = 0; i < edges->in; ++i)
        plan->got_bytes[i] = bytes + (2 * edges->sources[i] + edges->their_blocks[i]) * more;
    neighbours_init(plan->sent, plan->sent_bytes, plan->places, MPI_BYTE, plan->got, plan->got_bytes,
                    plan->places, MPI_BYTE, edges->comm, MPI_INFO_NULL, &plan->request);
    plan->ours = was_accelerated();
}
static void drop(Plan* plan) {
    MPI_Request_free(&plan->request);
    guarded_free(plan->sent, most_edges * (size_t)longest);
    guarded_free(plan->got, most_edges * (size_t)longest);
}
static void expect_ours(const Plan* plan, int ours, const char* what) {
    if (expect_thalweg()) CHECK(plan->ours == ours, "%s: %s", what, plan->ours ? "was taken" : last_reason());
}

static unsigned seed_of(int rank, int block, unsigned round) {
    return 1000 * round + 8 * (unsigned)rank + (unsigned)block;
}
static void fill_all(Plan* plan, unsigned round) {
    memset(plan->got, poison_value, most_edges * (size_t)longest);
    for (int i = 0; i < plan->edges.out; ++i)
        fill(plan->sent + plan->places[i], (size_t)plan->sent_bytes[i], seed_of(check_rank, i, round));
}
static void check_all(const Plan* plan, unsigned round, const char* what) {
    for (int i = 0; i < plan->edges.in; ++i) {
        const unsigned seed = seed_of(plan->edges.sources[i], plan->edges.their_blocks[i], round);
        verify(plan->got + plan->places[i], (size_t)plan->got_bytes[i], seed, what);
        CHECK(plan->got[plan->places[i] + plan->got_bytes[i]] == poison_value, "%s: written behind block %d",
              what, i);
    }
}

static void every_size(const Edges* edges, const char* what) {
    const int sizes[] = {1000, 16384, 65536, 200000};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; ++k)
        for (int more = 0; more <= 3001; more += 3001) {
            Plan plan;
            make(&plan, edges, sizes[k], more);
            expect_ours(&plan, 1, what);
            for (unsigned round = 0; round < starts; ++round) {
                fill_all(&plan, round);
                MPI_Start(&plan.request);
                if (round % 3 == 0) MPI_Barrier(edges->comm);
                MPI_Wait(&plan.request, MPI_STATUS_IGNORE);
                check_all(&plan, round, what);
            }
            drop(&plan);
        }
}

/* Started in opposite orders on the ranks. */
static void in_any_order(const Edges* edges) {
    Plan plans[3];
    for (int k = 0; k < 3; ++k) make(&plans[k], edges, 20000 * (k + 1), 7 * k);
    for (unsigned round = 0; round < starts; ++round) {
        MPI_Request requests[3];
        for (int k = 0; k < 3; ++k) fill_all(&plans[k], round + 50 * (unsigned)k);
        for (int k = 0; k < 3; ++k) MPI_Start(&plans[check_rank % 2 ? 2 - k : k].request);
        for (int k = 0; k < 3; ++k) requests[k] = plans[k].request;
        MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
        for (int k = 0; k < 3; ++k) check_all(&plans[k], round + 50 * (unsigned)k, "plans in any order");
    }
    for (int k = 2; k >= 0; --k) drop(&plans[k]);
}

/* Neither short ones nor those of all ranks, of which the table does not speak; long ones behind them are. */
static void left(const Edges* edges) {
    Plan plan;
    Init* alltoallv_init;
    *(void**)&alltoallv_init = find_or_skip("MPI_Alltoallv_init");
    for (int k = 0; k < 12; ++k) {
        const int is_long = k % 4 == 3;
        make(&plan, edges, is_long ? 5000 : 100, 0);
        expect_ours(&plan, is_long, is_long ? "a long plan behind short ones" : "a short plan");
        drop(&plan);
    }
    int counts[most_edges], places[most_edges];
    for (int i = 0; i < most_edges; ++i) counts[i] = 5000, places[i] = i * longest;
    unsigned char* const sent = guarded_new(most_edges * (size_t)longest);
    unsigned char* const got = guarded_new(most_edges * (size_t)longest);
    MPI_Request request;
    alltoallv_init(sent, counts, places, MPI_BYTE, got, counts, places, MPI_BYTE, edges->comm, MPI_INFO_NULL,
                   &request);
    if (expect_thalweg()) CHECK(!was_accelerated(), "an alltoall of all ranks was taken");
    MPI_Request_free(&request);
    guarded_free(sent, most_edges * (size_t)longest);
    guarded_free(got, most_edges * (size_t)longest);
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, wanted_level());
    *(void**)&neighbours_init = find_or_skip("MPI_Neighbor_alltoallv_init");
    Edges ring = make_ring(), star = make_star();
    every_size(&ring, "a ring");
    every_size(&star, "a star");
    in_any_order(&ring);
    left(&ring);
    for (unsigned round = 0; round < 20; ++round) { /* as a mesh that is refined again and again */
        Edges again = make_ring();
        Plan plan;
        make(&plan, &again, 30000, 11);
        expect_ours(&plan, 1, "a plan on a new ring");
        MPI_Comm_free(&again.comm); /* its plan goes on */
        fill_all(&plan, round);
        MPI_Start(&plan.request);
        MPI_Wait(&plan.request, MPI_STATUS_IGNORE);
        check_all(&plan, round, "a plan whose communicator was freed");
        drop(&plan);
    }
    MPI_Comm_free(&ring.comm);
    MPI_Comm_free(&star.comm);
    return check_end();
}
