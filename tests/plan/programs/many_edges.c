/* More edges from one rank to another than a schedule has numbers for the messages of a pair: of two
 * exchanges that are under way at the same time none may take the other's. Rank 0 begins the second one when
 * the first is over, rank 1 waits for both from the beginning. One edge fewer than there are numbers is ours.
 * Which of the edges a message came by where the library has the call is the library's.
 */
#include "check.h"

enum { numbers = 1 << 14, edges = numbers + 64, exchanges = 2, rounds = 3 };
typedef int AlltoallInit(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, MPI_Comm, MPI_Info,
                         MPI_Request*);
static AlltoallInit* alltoall_init;

static int peers[edges], weights[edges], out[exchanges][edges], in[exchanges][edges];
static MPI_Comm comm;
static MPI_Request requests[exchanges];

enum { values = 100000 };
static int value_of(int round, int exchange, int edge) {
    return (round * exchanges + exchange + 1) * values + edge;
}

static void expect(int ours, int count, const char* what) {
    if (!expect_thalweg()) return;
    CHECK(was_accelerated() == ours, "%s of %d edges: %s", what, count, last_reason());
}

static void begin(int persistent, int exchange, int count, int ours) {
    if (persistent) {
        MPI_Start(&requests[exchange]);
        return;
    }
    MPI_Ineighbor_alltoall(out[exchange], 1, MPI_INT, in[exchange], 1, MPI_INT, comm, &requests[exchange]);
    expect(ours, count, "an exchange");
}

static void verify_numbers(int round, int exchange, int count, int ours) {
    for (int i = 0; i < count; ++i) {
        const int got = in[exchange][i], right = value_of(round, exchange, i);
        if (ours ? got != right : got / values != right / values)
            FAIL("%d edges, round %d, exchange %d: number %d is %d, not %d", count, round, exchange, i, got,
                 right);
    }
    ++check_count;
}

static void run(int persistent, int count, int ours) {
    const int sends = check_rank == 0;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, sends ? 0 : count, peers, weights, sends ? count : 0,
                                   peers, weights, MPI_INFO_NULL, 0, &comm);
    for (int e = 0; e < exchanges && persistent; ++e) {
        alltoall_init(out[e], 1, MPI_INT, in[e], 1, MPI_INT, comm, MPI_INFO_NULL, &requests[e]);
        expect(ours, count, "a plan");
    }
    for (int round = 0; round < rounds; ++round) {
        for (int e = 0; e < exchanges; ++e)
            for (int i = 0; i < count; ++i) out[e][i] = value_of(round, e, i), in[e][i] = -1;
        for (int e = 0; e < exchanges; ++e) {
            begin(persistent, e, count, ours);
            if (sends) MPI_Wait(&requests[e], MPI_STATUS_IGNORE);
        }
        MPI_Waitall(exchanges, requests, MPI_STATUSES_IGNORE);
        for (int e = 0; e < exchanges && !sends; ++e) verify_numbers(round, e, count, ours);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    for (int e = 0; e < exchanges && persistent; ++e) MPI_Request_free(&requests[e]);
    MPI_Comm_free(&comm);
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, wanted_level());
    if (check_size != 2) SKIP("two ranks");
    *(void**)&alltoall_init = dlsym(RTLD_DEFAULT, "MPI_Neighbor_alltoall_init");
    for (int i = 0; i < edges; ++i) peers[i] = 1 - check_rank, weights[i] = 1;
    for (int persistent = 0; persistent < (alltoall_init != NULL ? 2 : 1); ++persistent) {
        run(persistent, edges, 0);
        run(persistent, numbers - 1, 1);
    }
    return check_end();
}
