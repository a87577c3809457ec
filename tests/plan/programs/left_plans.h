/* Plans that outlive the communicators that they were made on, behind faults.c, which counts communicators.
 */
#ifndef THALWEG_TESTS_PLAN_LEFT_PLANS_H
#define THALWEG_TESTS_PLAN_LEFT_PLANS_H

#include "check.h"

/* What one has left behind the next communicator of the same ranks takes over: no more of ours are made than
 * there are plans at a time, however many turns. (What no plan uses goes with its communicator.) */
static void left_plans(void) {
    enum { turns = 100, most_kept = 2 };
    int (*communicators)(void);
    int given[64], got[most_kept + 1][64];
    *(void**)&communicators = dlsym(RTLD_DEFAULT, "thalweg_test_communicators");
    CHECK(communicators != NULL, "nothing counts");
    setenv("THALWEG_TEST_FAULT", "count", 1);
    for (int kept = 0; kept <= most_kept; ++kept) {
        const int before = communicators();
        MPI_Request plans[most_kept + 1];
        for (int turn = 0; turn < turns + kept; ++turn) {
            MPI_Request* const plan = &plans[turn % (kept + 1)];
            int* const into = got[turn % (kept + 1)];
            if (turn < turns) {
                MPI_Comm comm;
                MPI_Comm_split(MPI_COMM_WORLD, 0, check_rank, &comm);
                MPI_Alltoall_init(given, 1, MPI_INT, into, 1, MPI_INT, comm, MPI_INFO_NULL, plan);
                MPI_Comm_free(&comm);
                for (int peer = 0; peer < check_size; ++peer)
                    given[peer] = turn + 10 * check_rank + peer, into[peer] = -1;
                MPI_Start(plan);
                MPI_Wait(plan, MPI_STATUS_IGNORE);
                for (int peer = 0; peer < check_size; ++peer)
                    CHECK(into[peer] == turn + 10 * peer + check_rank, "plan %d: %d from %d", turn,
                          into[peer], peer);
            }
            if (turn >= kept) MPI_Request_free(&plans[(turn + 1) % (kept + 1)]);
        }
        CHECK(communicators() >= kept + 1 && communicators() <= before + kept + 1,
              "%d plans at a time have made %d communicators beside %d", kept + 1, communicators() - before,
              before);
    }
    const int all = communicators();
    /* The same ranks in another order have their own. */
    MPI_Comm comm;
    MPI_Request plan;
    MPI_Comm_split(MPI_COMM_WORLD, 0, -check_rank, &comm);
    MPI_Alltoall_init(given, 1, MPI_INT, got[0], 1, MPI_INT, comm, MPI_INFO_NULL, &plan);
    for (int peer = 0; peer < check_size; ++peer) given[peer] = check_rank;
    MPI_Start(&plan);
    MPI_Wait(&plan, MPI_STATUS_IGNORE);
    for (int peer = 0; peer < check_size; ++peer)
        CHECK(got[0][peer] == check_size - 1 - peer, "another order: %d from %d", got[0][peer], peer);
    MPI_Request_free(&plan);
    MPI_Comm_free(&comm);
    CHECK(communicators() == all + 1, "another order: %d communicators", communicators());
    unsetenv("THALWEG_TEST_FAULT");
}

#endif
