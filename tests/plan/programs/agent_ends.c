/* The agent's thread ends with MPI: it is there while an operation is, and gone when MPI_Finalize comes back,
 * whichever way that was reached. It runs where its process may. One way per run:
 *
 *   plain      gone already where MPI_Finalize frees MPI_COMM_SELF, and lets go of the program's attributes
 *   plan       a plan that was never freed works there still
 *   unwrapped  MPI_Finalize does not reach us; only MPI_COMM_SELF tells
 */
#define _GNU_SOURCE
#include <sched.h>

#include "agents.h"
#include "check.h"

typedef int BcastInit(void*, int, MPI_Datatype, int, MPI_Comm, MPI_Info, MPI_Request*);

enum { bytes = 200000 };
static unsigned char data[bytes];
static MPI_Request plan = MPI_REQUEST_NULL;

/* Not by FAIL: there may be no MPI. */
#define EXPECT(condition, ...)                                               \
    do {                                                                     \
        if (condition) break;                                                \
        fprintf(stderr, "%s:%d: rank %d: ", __FILE__, __LINE__, check_rank); \
        fprintf(stderr, __VA_ARGS__);                                        \
        fprintf(stderr, "\n");                                               \
        _Exit(1);                                                            \
    } while (0)

static int called_back = 0;
static int at_the_end(MPI_Comm self, int key, void* value, void* extra) {
    (void)self, (void)key, (void)value, (void)extra;
    called_back = 1;
    if (plan == MPI_REQUEST_NULL) return MPI_SUCCESS;
    memset(data, poison_value, bytes);
    if (check_rank == 0) fill(data, bytes, 4);
    MPI_Start(&plan);
    MPI_Wait(&plan, MPI_STATUS_IGNORE);
    verify(data, bytes, 4, "a plan in MPI_Finalize");
    return MPI_SUCCESS;
}
static int gone_at_the_end(MPI_Comm self, int key, void* value, void* extra) {
    const int found = agents();
    EXPECT(found == 0, "%d agents while MPI_COMM_SELF is freed", found);
    return at_the_end(self, key, value, extra);
}

/* Whether an agent may run elsewhere than on `cpu`. */
static int agent_leaves(int cpu) {
    DIR* const tasks = opendir("/proc/self/task");
    int leaves = 0;
    for (struct dirent* task; (task = readdir(tasks)) != NULL;) {
        char path[300], name[64] = "";
        cpu_set_t allowed;
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", task->d_name);
        FILE* const file = fopen(path, "r");
        if (file == NULL) continue;
        const int is_agent =
            fgets(name, sizeof name, file) != NULL && strncmp(name, "thalweg-agent", 13) == 0;
        fclose(file);
        if (is_agent && sched_getaffinity(atoi(task->d_name), sizeof allowed, &allowed) == 0)
            leaves |= CPU_COUNT(&allowed) > 1 || !CPU_ISSET(cpu, &allowed);
    }
    closedir(tasks);
    return leaves;
}

int main(int argc, char** argv) {
    const char* const way = argc > 1 ? argv[1] : "plain";
    check_start(&argc, &argv, wanted_level());
    const int plain = strcmp(way, "plain") == 0;
    BcastInit* bcast_init;
    *(void**)&bcast_init = strcmp(way, "plan") == 0 ? find_or_skip("MPI_Bcast_init") : NULL;
    MPI_Request request;
    int key = MPI_KEYVAL_INVALID;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, plain ? gone_at_the_end : at_the_end, &key, NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, key, &key);
    MPI_Ibarrier(MPI_COMM_WORLD, &request); /* asks for the set-up */
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    /* As OpenMP binds the thread that a program begins in: the agent has no need to compute there. */
    cpu_set_t mask, one;
    int bound = 0;
    CPU_ZERO(&mask);
    CPU_ZERO(&one);
    sched_getaffinity(0, sizeof mask, &mask);
    while (bound < CPU_SETSIZE - 1 && !CPU_ISSET(bound, &mask)) ++bound;
    CPU_SET(bound, &one);
    sched_setaffinity(0, sizeof one, &one);
    MPI_Barrier(MPI_COMM_WORLD);
    if (CPU_COUNT(&mask) > 0) sched_setaffinity(0, sizeof mask, &mask);
    for (unsigned round = 0; round < 3; ++round) {
        if (check_rank == 0) fill(data, bytes, round);
        MPI_Ibcast(data, bytes, MPI_BYTE, 0, MPI_COMM_WORLD, &request);
        CHECK(was_accelerated(), "%s", last_reason());
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        verify(data, bytes, round, "a broadcast");
    }
    /* It takes its name when it first has a core. */
    for (int i = 0; i < 30000 && agents() == 0; ++i) usleep(1000);
    CHECK(agents() == 1, "%d agents after an operation", agents());
    for (int i = 0; i < 30000 && CPU_COUNT(&mask) > 1 && !agent_leaves(bound); ++i) usleep(1000);
    CHECK(CPU_COUNT(&mask) < 2 || agent_leaves(bound), "the agent is bound as the thread that made it");
    if (bcast_init != NULL) {
        bcast_init(data, bytes, MPI_BYTE, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &plan);
        CHECK(was_accelerated(), "a plan: %s", last_reason());
    }
    if (strcmp(way, "unwrapped") == 0)
        PMPI_Finalize();
    else
        MPI_Finalize();
    const int found = agents();
    EXPECT(called_back, "MPI_COMM_SELF was not freed");
    EXPECT(found == 0, "%d agents after MPI_Finalize", found);
    if (check_rank == 0) printf("ok: %s\n", way);
    return 0;
}
