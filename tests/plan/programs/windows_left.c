/* Persistent alltoalls over windows that outlive the communicators that they were made on: what one has left
 * behind the next communicator of the same ranks takes over, so that there are no more of ours than plans at
 * a time (faults.c counts them). */
#include "check.h"

enum { count = 50, most = 8, turns = 40, most_kept = 2 };

typedef int AlltoallInit(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, MPI_Comm, MPI_Info,
                         MPI_Request*);
static AlltoallInit* alltoall_init;

static int by_windows(void) {
    thalweg_last_call call;
    return look_last_call != NULL && look_last_call(&call, sizeof call) == 0 && call.accelerated &&
           strncmp(call.algorithm, "rma_", 4) == 0;
}

static int value_of(int from, int to, int turn, int i) { return (from * 64 + to) * 1000 + turn * 50 + i; }

typedef struct {
    int from[most * count], to[most * count];
    MPI_Request request;
} Plan;

/* On a communicator of all ranks, in their order or in the opposite one. */
static void make(Plan* plan, int order) {
    MPI_Comm comm;
    MPI_Comm_split(MPI_COMM_WORLD, 0, order * check_rank, &comm);
    alltoall_init(plan->from, count, MPI_INT, plan->to, count, MPI_INT, comm, MPI_INFO_NULL, &plan->request);
    CHECK(by_windows(), "a plan: %s", last_reason());
    MPI_Comm_free(&comm);
}

static void run(Plan* plan, int turn, int order) {
    for (int i = 0; i < check_size * count; ++i) {
        const int peer = order > 0 ? i / count : check_size - 1 - i / count;
        plan->from[i] = value_of(check_rank, peer, turn, i % count);
        plan->to[i] = -1;
    }
    MPI_Start(&plan->request);
    MPI_Wait(&plan->request, MPI_STATUS_IGNORE);
    for (int i = 0; i < check_size * count; ++i) {
        const int peer = order > 0 ? i / count : check_size - 1 - i / count;
        CHECK(plan->to[i] == value_of(peer, check_rank, turn, i % count), "turn %d: int %d from %d", turn,
              i % count, peer);
    }
}

int main(int argc, char** argv) {
    static Plan plans[most_kept + 1];
    int (*communicators)(void);
    alarm(200);
    check_start(&argc, &argv, wanted_level());
    *(void**)&alltoall_init = find_or_skip("MPI_Alltoall_init");
    *(void**)&communicators = dlsym(RTLD_DEFAULT, "thalweg_test_communicators");
    CHECK(communicators != NULL && check_size <= most, "nothing counts");
    setenv("THALWEG_TEST_FAULT", "count", 1);
    for (int kept = 0; kept <= most_kept; ++kept) {
        for (int turn = 0; turn < turns + kept; ++turn) {
            if (turn < turns) {
                make(&plans[turn % (kept + 1)], 1);
                /* All that live, the one that was made last first. */
                for (int i = 0; i <= kept && i <= turn; ++i) run(&plans[(turn - i) % (kept + 1)], turn, 1);
            }
            if (turn >= kept) MPI_Request_free(&plans[(turn + 1) % (kept + 1)].request);
        }
        CHECK(communicators() == kept + 1, "%d plans at a time have made %d communicators", kept + 1,
              communicators());
    }
    make(&plans[0], -1);
    run(&plans[0], turns, -1);
    MPI_Request_free(&plans[0].request);
    CHECK(communicators() == most_kept + 2, "another order: %d communicators", communicators());
    unsetenv("THALWEG_TEST_FAULT");
    return check_end();
}
