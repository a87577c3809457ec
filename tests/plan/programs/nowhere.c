/* Memory that is none, in calls whose messages differ. One rank alone names it, in the blocking call in which
 * the ranks are to meet and without blocking: the library refuses it on sight, and the rank, which is where
 * it was before, calls anew while the others wait for its word.
 *
 *     nowhere             what MPICH refuses
 *     nowhere in_place    what Open MPI does: all ranks receive in place, which neighbours cannot
 */
#include "check.h"

enum { most_ranks = 8, rounds = 40 };
static int given[most_ranks], got[most_ranks], ones[most_ranks], places[most_ranks];

static void hear_of_rank_1(void) {
    for (int rank = 0; rank < check_size; ++rank) {
        if (rank == 1) continue;
        if (check_rank == 1) MPI_Send(NULL, 0, MPI_BYTE, rank, 5, MPI_COMM_WORLD);
        if (check_rank == rank) MPI_Recv(NULL, 0, MPI_BYTE, 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

/* In the end they are: what all ranks have met for is set up. `seen`: looked_at() before the call. */
static void expect_ours(uint64_t seen) {
    if (expect_thalweg())
        CHECK(looked_at() != seen && was_accelerated(), "the last is native: %s", last_reason());
}

/* A number for each rank. */
static void exchange(MPI_Comm comm, int turn) {
    MPI_Request request;
    for (int peer = 0; peer < check_size; ++peer) {
        given[peer] = 100 * turn + 10 * check_rank + peer;
        got[peer] = -1;
    }
    const uint64_t seen = looked_at();
    MPI_Ialltoallv(given, ones, places, MPI_INT, got, ones, places, MPI_INT, comm, &request);
    if (turn == rounds - 1) expect_ours(seen);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int peer = 0; peer < check_size; ++peer)
        CHECK(got[peer] == 100 * turn + 10 * peer + check_rank, "turn %d: %d from %d", turn, got[peer], peer);
}

static void alltoalls(void) {
    MPI_Comm comm;
    MPI_Request request;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    exchange(comm, 0);
    if (check_rank == 1) {
        CHECK(MPI_Alltoallv(NULL, ones, places, MPI_INT, got, ones, places, MPI_INT, comm) != MPI_SUCCESS,
              "an alltoallv from nowhere");
        CHECK(MPI_Alltoallv(given, ones, places, MPI_INT, NULL, ones, places, MPI_INT, comm) != MPI_SUCCESS,
              "an alltoallv to nowhere");
    }
    hear_of_rank_1();
    /* As many as the ranks count before they tell one another what their exchanges are like, twice. */
    for (int round = 0; round < rounds; ++round) {
        if (check_rank == 1 && round == 1) {
            CHECK(MPI_Ialltoallv(NULL, ones, places, MPI_INT, got, ones, places, MPI_INT, comm, &request) !=
                      MPI_SUCCESS,
                  "a nonblocking alltoallv from nowhere");
            CHECK(MPI_Ialltoallv(given, ones, places, MPI_INT, NULL, ones, places, MPI_INT, comm, &request) !=
                      MPI_SUCCESS,
                  "a nonblocking alltoallv to nowhere");
        }
        exchange(comm, round);
        MPI_Barrier(comm);
    }
    MPI_Comm_free(&comm);
}

static MPI_Comm make_ring(void) {
    MPI_Comm ring;
    const int around = 1;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &check_size, &around, 0, &ring);
    MPI_Comm_set_errhandler(ring, MPI_ERRORS_RETURN);
    return ring;
}

static void go_round(MPI_Comm ring, int turn) {
    const int left = (check_rank + check_size - 1) % check_size, right = (check_rank + 1) % check_size;
    MPI_Request request;
    for (int block = 0; block < 2; ++block) {
        given[block] = 100 * turn + 10 * check_rank + block;
        got[block] = -1;
    }
    const uint64_t seen = looked_at();
    MPI_Ineighbor_alltoall(given, 1, MPI_INT, got, 1, MPI_INT, ring, &request);
    if (turn == rounds - 1) expect_ours(seen);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(got[0] == 100 * turn + 10 * left + 1 && got[1] == 100 * turn + 10 * right, "turn %d: %d and %d",
          turn, got[0], got[1]);
}

static void neighbours(void) {
    MPI_Comm ring = make_ring();
    MPI_Request request;
    go_round(ring, 0);
    if (check_rank == 1) {
        CHECK(MPI_Neighbor_alltoall(NULL, 1, MPI_INT, got, 1, MPI_INT, ring) != MPI_SUCCESS,
              "neighbours from nowhere");
        CHECK(MPI_Neighbor_alltoall(given, 1, MPI_INT, NULL, 1, MPI_INT, ring) != MPI_SUCCESS,
              "neighbours to nowhere");
        CHECK(MPI_Ineighbor_alltoall(NULL, 1, MPI_INT, got, 1, MPI_INT, ring, &request) != MPI_SUCCESS,
              "nonblocking neighbours from nowhere");
    }
    hear_of_rank_1();
    for (int round = 1; round < rounds; ++round) {
        go_round(ring, round);
        MPI_Barrier(ring);
    }
    MPI_Comm_free(&ring);
}

/* The library's own word comes first, by the name that nothing stands in front of. */
static void agree(const char* what, int own, int taken) {
    CHECK(own != MPI_SUCCESS, "the library takes %s", what);
    CHECK(class_of(own) == class_of(taken), "%s give class %d, and class %d without Thalweg", what,
          class_of(taken), class_of(own));
}

static void in_place(void) {
    MPI_Comm ring = make_ring();
    MPI_Request request;
    void* const wrong = MPI_IN_PLACE;
    /* Open MPI tells that one's handler. */
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int round = 0; round < 3; ++round) {
        agree("neighbours in place", PMPI_Neighbor_alltoall(given, 1, MPI_INT, wrong, 1, MPI_INT, ring),
              MPI_Neighbor_alltoall(given, 1, MPI_INT, wrong, 1, MPI_INT, ring));
        agree("neighbours with counts in place",
              PMPI_Neighbor_alltoallv(given, ones, places, MPI_INT, wrong, ones, places, MPI_INT, ring),
              MPI_Neighbor_alltoallv(given, ones, places, MPI_INT, wrong, ones, places, MPI_INT, ring));
        agree("nonblocking neighbours in place",
              PMPI_Ineighbor_alltoall(given, 1, MPI_INT, wrong, 1, MPI_INT, ring, &request),
              MPI_Ineighbor_alltoall(given, 1, MPI_INT, wrong, 1, MPI_INT, ring, &request));
        go_round(ring, round);
        MPI_Barrier(ring);
    }
    MPI_Comm_free(&ring);
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, MPI_THREAD_SINGLE);
    CHECK(check_size > 2 && check_size <= most_ranks, "3 to 8 ranks");
    for (int i = 0; i < most_ranks; ++i) ones[i] = 1, places[i] = i;
    if (argc > 1 && strcmp(argv[1], "in_place") == 0) {
        in_place();
        return check_end();
    }
    alltoalls();
    neighbours();
    return check_end();
}
