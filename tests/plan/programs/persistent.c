/* MPI_Bcast_init: many starts with other data each time, plans started and waited for in opposite orders,
 * beside native persistent requests, in every completion call, also in those that we do not see, freed with
 * their communicator gone, and freed or cancelled while they are active. */
#include "check.h"

typedef int BcastInit(void*, int, MPI_Datatype, int, MPI_Comm, MPI_Info, MPI_Request*);
typedef int BcastInitC(void*, MPI_Count, MPI_Datatype, int, MPI_Comm, MPI_Info, MPI_Request*);
static BcastInit* bcast_init;
static BcastInitC* bcast_init_c;

enum { bytes = 150001, starts = 6 };

static void expect_plan(void) {
    if (expect_thalweg() && check_size > 1)
        CHECK(was_accelerated(), "a plan was declined: %s", last_reason());
}

static void prepare(unsigned char* data, int root, unsigned seed) {
    memset(data, poison_value, bytes);
    if (check_rank == root) fill(data, bytes, seed);
}

static void again_and_again(void) {
    unsigned char* const data = guarded_new(bytes);
    MPI_Request plan;
    int flag = 0;
    const int root = check_size - 1;
    bcast_init(data, bytes, MPI_BYTE, root, MPI_COMM_WORLD, MPI_INFO_NULL, &plan);
    expect_plan();
    /* Inactive: complete, and stays. */
    MPI_Wait(&plan, MPI_STATUS_IGNORE);
    MPI_Test(&plan, &flag, MPI_STATUS_IGNORE);
    CHECK(flag && plan != MPI_REQUEST_NULL, "an inactive plan");
    for (unsigned i = 0; i < starts; ++i) {
        prepare(data, root, i);
        MPI_Start(&plan);
        if (i % 3 == 0) MPI_Wait(&plan, MPI_STATUS_IGNORE);
        if (i % 3 == 1)
            for (flag = 0; !flag;) MPI_Test(&plan, &flag, MPI_STATUS_IGNORE);
        if (i % 3 == 2) {
            int index;
            MPI_Waitany(1, &plan, &index, MPI_STATUS_IGNORE);
            CHECK(index == 0, "waitany of a plan: %d", index);
        }
        CHECK(plan != MPI_REQUEST_NULL, "a plan is gone after start %u", i);
        verify(data, bytes, i, "a start");
    }
    MPI_Request_free(&plan);
    CHECK(plan == MPI_REQUEST_NULL, "a freed plan");
    guarded_free(data, bytes);
}

/* Even ranks start and wait for one first, odd ranks for the other. */
static void opposite_orders(void) {
    unsigned char* data[2];
    MPI_Request plans[2];
    for (int i = 0; i < 2; ++i) {
        data[i] = guarded_new(bytes);
        bcast_init(data[i], bytes, MPI_BYTE, i % check_size, MPI_COMM_WORLD, MPI_INFO_NULL, &plans[i]);
        expect_plan();
    }
    for (unsigned round = 0; round < starts; ++round) {
        const int first = (check_rank + (int)round) % 2;
        for (int i = 0; i < 2; ++i) prepare(data[i], i % check_size, 2 * round + (unsigned)i);
        MPI_Start(&plans[first]);
        MPI_Start(&plans[1 - first]);
        MPI_Wait(&plans[1 - first], MPI_STATUS_IGNORE);
        MPI_Wait(&plans[first], MPI_STATUS_IGNORE);
        for (int i = 0; i < 2; ++i) verify(data[i], bytes, 2 * round + (unsigned)i, "one of two plans");
    }
    for (int i = 0; i < 2; ++i) {
        MPI_Request_free(&plans[i]);
        guarded_free(data[i], bytes);
    }
}

static void start_receive_wait(void) {
    if (check_size < 2) return;
    unsigned char* const data = guarded_new(bytes);
    MPI_Request plan;
    bcast_init(data, bytes, MPI_BYTE, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &plan);
    expect_plan();
    for (unsigned round = 0; round < starts; ++round) {
        prepare(data, 0, round);
        MPI_Start(&plan);
        if (check_rank == 0)
            MPI_Recv(NULL, 0, MPI_BYTE, check_size - 1, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Wait(&plan, MPI_STATUS_IGNORE);
        if (check_rank == check_size - 1) MPI_Send(NULL, 0, MPI_BYTE, 0, 8, MPI_COMM_WORLD);
        verify(data, bytes, round, "start, receive, wait");
    }
    MPI_Request_free(&plan);
    guarded_free(data, bytes);
}

/* Beside native persistent requests, in MPI_Startall and MPI_Waitall; the communicator is freed first. */
static void mixed(void) {
    unsigned char* const data = guarded_new(bytes);
    MPI_Comm comm;
    MPI_Request requests[3];
    int out = check_rank, in = -1, flag;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Send_init(&out, 1, MPI_INT, (check_rank + 1) % check_size, 2, MPI_COMM_WORLD, &requests[0]);
    bcast_init(data, bytes, MPI_BYTE, 0, comm, MPI_INFO_NULL, &requests[1]);
    expect_plan();
    MPI_Recv_init(&in, 1, MPI_INT, (check_rank + check_size - 1) % check_size, 2, MPI_COMM_WORLD,
                  &requests[2]);
    MPI_Comm_free(&comm);
    MPI_Barrier(MPI_COMM_WORLD);
    for (unsigned round = 0; round < starts; ++round) {
        in = -1;
        prepare(data, 0, round);
        MPI_Startall(3, requests);
        if (round % 2 == 0)
            MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
        else
            for (flag = 0; !flag;) MPI_Testall(3, requests, &flag, MPI_STATUSES_IGNORE);
        CHECK(in == (check_rank + check_size - 1) % check_size, "a native message beside a plan");
        verify(data, bytes, round, "a plan beside native requests");
    }
    for (int i = 0; i < 3; ++i) MPI_Request_free(&requests[i]);
    guarded_free(data, bytes);
}

/* A plan from MPI_Bcast_init_c, started with plain MPI_Start: what mpi4py does. */
static void large_count(void) {
    if (bcast_init_c == NULL) return;
    unsigned char* const data = guarded_new(bytes);
    MPI_Request plan;
    bcast_init_c(data, bytes, MPI_BYTE, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &plan);
    expect_plan();
    for (unsigned round = 0; round < 3; ++round) {
        prepare(data, 0, round);
        MPI_Start(&plan);
        MPI_Wait(&plan, MPI_STATUS_IGNORE);
        verify(data, bytes, round, "a plan with a large count");
    }
    MPI_Request_free(&plan);
    guarded_free(data, bytes);
}

/* A plan whose counts differ: who receives too much is told so by the call that completes it. */
static void mismatched(void) {
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length;
    MPI_Get_library_version(version, &length);
    if (!expect_thalweg() || check_size < 2) return;
    static char data[1000];
    MPI_Comm pair;
    MPI_Request plan;
    int class = MPI_SUCCESS;
    MPI_Comm_split(MPI_COMM_WORLD, check_rank < 2 ? 0 : MPI_UNDEFINED, check_rank, &pair);
    if (pair == MPI_COMM_NULL) return;
    bcast_init(data, check_rank == 0 ? 1000 : 500, MPI_BYTE, 0, pair, MPI_INFO_NULL, &plan);
    expect_plan();
    MPI_Comm_set_errhandler(pair, MPI_ERRORS_RETURN);
    /* What libraries of the MPICH family find wrong in our messages they tell the world's handler, too. */
    const int tells_world = strstr(version, "Open MPI") == NULL;
    if (tells_world) MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Start(&plan);
    MPI_Error_class(MPI_Wait(&plan, MPI_STATUS_IGNORE), &class);
    CHECK(class == (check_rank == 0 ? MPI_SUCCESS : MPI_ERR_TRUNCATE), "a plan that does not match: class %d",
          class);
    MPI_Comm_set_errhandler(pair, MPI_ERRORS_ARE_FATAL);
    if (tells_world) MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Request_free(&plan);
    /* What it left on its way meets no later plan. */
    for (unsigned round = 0; round < 20; ++round) {
        bcast_init(data, 1000, MPI_BYTE, 0, pair, MPI_INFO_NULL, &plan);
        if (check_rank == 0) fill((unsigned char*)data, 1000, round);
        MPI_Start(&plan);
        MPI_Wait(&plan, MPI_STATUS_IGNORE);
        verify((unsigned char*)data, 1000, round, "a plan after one that did not match");
        MPI_Request_free(&plan);
    }
    MPI_Comm_free(&pair);
}

/* A nonblocking operation that failed at one rank: all ranks leave the next plan to MPI, and none waits for
 * another. */
static void after_failure(void) {
    if (!expect_thalweg() || check_size < 2) return;
    static unsigned char data[9000];
    MPI_Comm pair;
    MPI_Request request;
    MPI_Comm_split(MPI_COMM_WORLD, check_rank < 2 ? 0 : MPI_UNDEFINED, check_rank, &pair);
    if (pair == MPI_COMM_NULL) return;
    MPI_Ibcast(data, 1, MPI_BYTE, 0, pair, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Barrier(pair);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(pair, MPI_ERRORS_RETURN);
    MPI_Ibcast(data, check_rank == 0 ? 2000 : 1000, MPI_BYTE, 0, pair, &request);
    const int taken = was_accelerated();
    const int failed = MPI_Wait(&request, MPI_STATUS_IGNORE) != MPI_SUCCESS;
    if (taken) CHECK(failed == (check_rank == 1), "what does not match failed at %d ranks", failed);
    bcast_init(data, 9000, MPI_BYTE, 0, pair, MPI_INFO_NULL, &request);
    if (taken) CHECK(!was_accelerated(), "a plan on a communicator whose lane is broken");
    for (unsigned round = 0; round < 3; ++round) {
        if (check_rank == 0) fill(data, sizeof data, round);
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        verify(data, sizeof data, round, "a plan after a failure");
    }
    MPI_Request_free(&request);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_free(&pair);
}

/* Completion calls that we do not see say "not yet" of a started plan while its root has not come; and
 * whoever says "complete", seen or not, says so when the data is there. */
static void unseen(void) {
    if (check_size < 2) return;
    unsigned char* const data = guarded_new(bytes);
    MPI_Request plan;
    bcast_init(data, bytes, MPI_BYTE, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &plan);
    expect_plan();
    for (unsigned round = 0; round < starts; ++round) {
        int flag = 0, index, some = 0;
        MPI_Status status;
        prepare(data, 0, round);
        for (int rank = 1; rank < check_size && check_rank == 0; ++rank)
            MPI_Recv(NULL, 0, MPI_BYTE, rank, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Start(&plan);
        for (int i = 0; i < 50 && check_rank != 0; ++i) {
            PMPI_Test(&plan, &flag, MPI_STATUS_IGNORE);
            CHECK(!flag, "PMPI_Test: complete before its root came");
            PMPI_Testall(1, &plan, &flag, &status);
            CHECK(!flag, "PMPI_Testall: complete before its root came");
            PMPI_Testany(1, &plan, &index, &flag, MPI_STATUS_IGNORE);
            CHECK(!flag, "PMPI_Testany: complete before its root came");
            PMPI_Testsome(1, &plan, &some, &index, &status);
            CHECK(some == 0, "PMPI_Testsome: %d complete before their root came", some);
        }
        if (check_rank != 0) MPI_Send(NULL, 0, MPI_BYTE, 0, 6, MPI_COMM_WORLD);
        while (!flag) {
            PMPI_Test(&plan, &flag, MPI_STATUS_IGNORE);
            if (!flag) MPI_Test(&plan, &flag, MPI_STATUS_IGNORE);
        }
        verify(data, bytes, round, "a plan tested from outside");
    }
    MPI_Request_free(&plan);
    guarded_free(data, bytes);
}

/* Rank 0 frees or cancels a plan that is active because its root starts later: the error's class on rank 0.
 */
static int class_while_active(BcastInit* init, int frees) {
    static unsigned char data[bytes]; /* not freed: what was let go of may still arrive */
    MPI_Request plan;
    int class = MPI_SUCCESS;
    init(data, bytes, MPI_BYTE, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &plan);
    prepare(data, 1, 5);
    if (check_rank == 0) {
        MPI_Start(&plan);
        MPI_Request same = plan;
        MPI_Error_class(frees ? MPI_Request_free(&same) : MPI_Cancel(&same), &class);
        if (class != MPI_SUCCESS) CHECK(same == plan, "a call that failed has changed a request");
        if (frees) plan = same;
        MPI_Send(NULL, 0, MPI_BYTE, 1, 3, MPI_COMM_WORLD);
    } else {
        if (check_rank == 1) MPI_Recv(NULL, 0, MPI_BYTE, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Start(&plan);
    }
    if (plan != MPI_REQUEST_NULL) {
        MPI_Wait(&plan, MPI_STATUS_IGNORE);
        verify(data, bytes, 5, "a plan that was to be freed or cancelled");
        MPI_Request_free(&plan);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    return class;
}
static void refused(void) {
    if (!expect_thalweg() || check_size < 2) return;
    BcastInit* native;
    *(void**)&native = dlsym(RTLD_DEFAULT, "PMPI_Bcast_init");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    for (int frees = 0; frees < 2; ++frees) {
        const int ours = class_while_active(bcast_init, frees);
        if (check_rank == 0)
            CHECK(ours != MPI_SUCCESS, "a plan that is active was %s", frees ? "freed" : "cancelled");
        /* MPICH and its kin end the process where a plan of theirs is cancelled, and let go of one that is
         * freed, for which the other ranks of MPICH's then wait for ever. */
        if (!is_open_mpi()) continue;
        const int theirs = class_while_active(native, frees);
        CHECK(ours == theirs, "%s: class %d, natively %d", frees ? "free" : "cancel", ours, theirs);
    }
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

/* Run by MPI_Finalize when it frees MPI_COMM_SELF: MPI still works, and so do plans. */
static unsigned char last_data[5000];
static int at_the_end(MPI_Comm self, int key, void* plan, void* extra) {
    (void)self, (void)key, (void)extra;
    for (unsigned round = 0; round < 3; ++round) {
        memset(last_data, poison_value, sizeof last_data);
        if (check_rank == 0) fill(last_data, sizeof last_data, round);
        MPI_Start(plan);
        MPI_Wait(plan, MPI_STATUS_IGNORE);
        verify(last_data, sizeof last_data, round, "a plan started while MPI_COMM_SELF is freed");
    }
    MPI_Request_free(plan);
    if (check_rank == 0) printf("ok: a plan in MPI_Finalize\n");
    return MPI_SUCCESS;
}
static void start_in_finalize(void) {
    static MPI_Request plan;
    int key = 0;
    bcast_init(last_data, sizeof last_data, MPI_BYTE, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &plan);
    expect_plan();
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, at_the_end, &key, NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, key, &plan);
}

/* Made and freed more often than there are numbers for them, some alive all the while. */
static void churn(void) {
    enum { alive = 5, rounds = 400 };
    static unsigned char data[alive][64];
    MPI_Request plans[alive];
    for (int i = 0; i < rounds; ++i) {
        const int slot = i % alive;
        if (i >= alive) MPI_Request_free(&plans[slot]);
        bcast_init(data[slot], 64, MPI_BYTE, i % check_size, MPI_COMM_WORLD, MPI_INFO_NULL, &plans[slot]);
        expect_plan();
        if (check_rank == i % check_size) fill(data[slot], 64, (unsigned)i);
        MPI_Start(&plans[slot]);
        MPI_Wait(&plans[slot], MPI_STATUS_IGNORE);
        verify(data[slot], 64, (unsigned)i, "a plan of many");
    }
    for (int i = 0; i < alive; ++i) MPI_Request_free(&plans[i]);
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, wanted_level());
    *(void**)&bcast_init = find_or_skip("MPI_Bcast_init");
    *(void**)&bcast_init_c = dlsym(RTLD_DEFAULT, "MPI_Bcast_init_c");
    again_and_again();
    opposite_orders();
    start_receive_wait();
    mixed();
    large_count();
    mismatched();
    after_failure();
    unseen();
    refused();
    churn();
    if (expect_thalweg()) start_in_finalize();
    /* One that is never freed: MPI_Finalize comes by it. */
    static unsigned char data[bytes];
    MPI_Request plan;
    bcast_init(data, bytes, MPI_BYTE, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &plan);
    MPI_Start(&plan);
    MPI_Wait(&plan, MPI_STATUS_IGNORE);
    return check_end();
}
