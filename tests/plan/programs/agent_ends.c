/* The agent's thread ends with MPI: it is there while an operation is, and gone when MPI_Finalize comes back,
 * whichever way that was reached. One way per run:
 *
 *   plain      gone already where MPI_Finalize frees MPI_COMM_SELF, and lets go of the program's attributes
 *   plan       a plan that was never freed works there still
 *   unwrapped  MPI_Finalize does not reach us; only MPI_COMM_SELF tells
 */
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
    MPI_Barrier(MPI_COMM_WORLD);
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
