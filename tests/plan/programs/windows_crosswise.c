/* Two threads make a plan over windows each, on communicators of their own, and each rank has the two in
 * another order (faults.c, crosswise). Neither communicator is freed: MPI_Finalize closes what belongs to
 * both, one after the other, with all ranks. */
#include <pthread.h>

#include "check.h"

enum { count = 100, rounds = 3, longest_end_s = 60 };

typedef int AlltoallInit(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, MPI_Comm, MPI_Info,
                         MPI_Request*);
static AlltoallInit* alltoall_init;

static int value_of(int from, int to, int round, int i) { return (from * 64 + to) * 1000 + round * 100 + i; }

typedef struct {
    MPI_Comm comm;
    MPI_Request request;
    int *from, *to;
} Plan;

static void* make(void* argument) {
    Plan* const plan = argument;
    const size_t bytes = (size_t)check_size * count * sizeof(int);
    plan->from = malloc(bytes);
    plan->to = malloc(bytes);
    alltoall_init(plan->from, count, MPI_INT, plan->to, count, MPI_INT, plan->comm, MPI_INFO_NULL,
                  &plan->request);
    if (!was_accelerated()) FAIL("a plan: %s", last_reason());
    return NULL;
}

static void run(Plan* plan, int round) {
    for (int i = 0; i < check_size * count; ++i) {
        plan->from[i] = value_of(check_rank, i / count, round, i % count);
        plan->to[i] = -1;
    }
    MPI_Start(&plan->request);
    MPI_Wait(&plan->request, MPI_STATUS_IGNORE);
    for (int i = 0; i < check_size * count; ++i)
        CHECK(plan->to[i] == value_of(i / count, check_rank, round, i % count), "round %d: int %d is wrong",
              round, i);
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, MPI_THREAD_MULTIPLE);
    *(void**)&alltoall_init = find_or_skip("MPI_Alltoall_init");
    Plan plans[2];
    for (int i = 0; i < 2; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &plans[i].comm);
    setenv("THALWEG_TEST_FAULT", "crosswise", 1);
    pthread_t other;
    pthread_create(&other, NULL, make, &plans[1]);
    make(&plans[0]);
    pthread_join(other, NULL);
    unsetenv("THALWEG_TEST_FAULT");
    for (int round = 0; round < rounds; ++round)
        for (int i = 0; i < 2; ++i) run(&plans[i], round);
    for (int i = 0; i < 2; ++i) {
        MPI_Request_free(&plans[i].request);
        free(plans[i].from);
        free(plans[i].to);
    }
    alarm(longest_end_s);
    return check_end();
}
