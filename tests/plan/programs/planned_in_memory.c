/* Persistent alltoalls between ranks of one host that a tuning table takes (planned.json: from 1000 bytes per
 * pair on): in the memory of the host, whatever thread level the program has. Shorter ones are the
 * library's. Receive buffers are poisoned before every start.
 *
 *     planned_in_memory [left]      with left: a plan is left to MPI_Finalize, where a callback starts it
 *     planned_in_memory refused     the memory cannot be had for one communicator, which is not tried again
 *     planned_in_memory either      the table (overlapped.json) has rows for overlapped ones, too, which take
 *                                   what those for persistent ones do not
 */
#include <fcntl.h>
#include <sys/resource.h>

#include "check.h"

enum { most_ranks = 8, longest = 300000, starts = 40 };

typedef int Init(const void*, const int*, const int*, MPI_Datatype, void*, const int*, const int*,
                 MPI_Datatype, MPI_Comm, MPI_Info, MPI_Request*);
static Init* alltoallv_init;

typedef struct {
    unsigned char *out, *in;
    int sent[most_ranks], received[most_ranks], from[most_ranks], to[most_ranks];
    int rank, size, ours;
    MPI_Request request;
} Plan;

/* Rank r sends `bytes` + r * `more` bytes to everybody. */
static void make(Plan* plan, MPI_Comm comm, int bytes, int more) {
    MPI_Comm_rank(comm, &plan->rank);
    MPI_Comm_size(comm, &plan->size);
    CHECK(plan->size <= most_ranks, "%d ranks", plan->size);
    plan->out = guarded_new(most_ranks * (size_t)longest);
    plan->in = guarded_new(most_ranks * (size_t)longest);
    for (int i = 0; i < plan->size; ++i) {
        plan->sent[i] = bytes + plan->rank * more;
        plan->received[i] = bytes + i * more;
        plan->from[i] = plan->to[i] = i * longest;
    }
    alltoallv_init(plan->out, plan->sent, plan->from, MPI_BYTE, plan->in, plan->received, plan->to, MPI_BYTE,
                   comm, MPI_INFO_NULL, &plan->request);
    plan->ours = was_accelerated();
}
static unsigned seed_of(int from, int to, unsigned round) {
    return 1000 * round + 8 * (unsigned)from + (unsigned)to;
}
static void fill_all(Plan* plan, unsigned round) {
    memset(plan->in, poison_value, most_ranks * (size_t)longest);
    for (int i = 0; i < plan->size; ++i)
        fill(plan->out + plan->from[i], (size_t)plan->sent[i], seed_of(plan->rank, i, round));
}
static void check_all(const Plan* plan, unsigned round, const char* what) {
    for (int i = 0; i < plan->size; ++i) {
        verify(plan->in + plan->to[i], (size_t)plan->received[i], seed_of(i, plan->rank, round), what);
        CHECK(plan->in[plan->to[i] + plan->received[i]] == poison_value, "%s: written behind block %d", what,
              i);
    }
}
static void drop(Plan* plan) {
    MPI_Request_free(&plan->request);
    guarded_free(plan->out, most_ranks * (size_t)longest);
    guarded_free(plan->in, most_ranks * (size_t)longest);
}
static void expect_ours(const Plan* plan, int ours, const char* what) {
    if (expect_thalweg() && plan->size > 1)
        CHECK(plan->ours == ours, "%s: %s", what, plan->ours ? "was taken" : last_reason());
}

static void every_size(MPI_Comm comm) {
    const int sizes[] = {1000, 16384, 16385, 65536, 200000};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; ++k)
        for (int more = 0; more <= 3001; more += 3001) {
            Plan plan;
            make(&plan, comm, sizes[k], more);
            expect_ours(&plan, 1, "a plan");
            for (unsigned round = 0; round < starts; ++round) {
                fill_all(&plan, round);
                MPI_Start(&plan.request);
                if (round % 3 == 0) {
                    int done = 0;
                    while (!done) MPI_Test(&plan.request, &done, MPI_STATUS_IGNORE);
                } else {
                    MPI_Wait(&plan.request, MPI_STATUS_IGNORE);
                }
                check_all(&plan, round, "a plan");
            }
            drop(&plan);
        }
}

/* Started and waited for in opposite orders, beside messages of the library. */
static void in_any_order(MPI_Comm comm) {
    Plan plans[3];
    for (int k = 0; k < 3; ++k) make(&plans[k], comm, 20000 * (k + 1), 7 * k);
    for (unsigned round = 0; round < starts; ++round) {
        MPI_Request requests[4];
        int number = -1, index = 0;
        MPI_Irecv(&number, 1, MPI_INT, (plans[0].rank + 1) % plans[0].size, 5, comm, &requests[3]);
        for (int k = 0; k < 3; ++k) fill_all(&plans[k], round + 50 * (unsigned)k);
        for (int k = 0; k < 3; ++k) MPI_Start(&plans[plans[0].rank % 2 ? 2 - k : k].request);
        for (int k = 0; k < 3; ++k) requests[k] = plans[k].request;
        const int mine = (int)round;
        MPI_Send(&mine, 1, MPI_INT, (plans[0].rank + plans[0].size - 1) % plans[0].size, 5, comm);
        if (round % 2) {
            MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
        } else {
            for (int left = 4; left > 0; --left) MPI_Waitany(4, requests, &index, MPI_STATUS_IGNORE);
        }
        CHECK(number == mine, "a message beside them: %d", number);
        for (int k = 0; k < 3; ++k) check_all(&plans[k], round + 50 * (unsigned)k, "plans in any order");
    }
    for (int k = 2; k >= 0; --k) drop(&plans[k]);
}

/* While ranks sit in a native call the agent goes on. */
static void beside_others(MPI_Comm comm) {
    Plan plan;
    make(&plan, comm, 250000, 0);
    for (unsigned round = 0; round < 8; ++round) {
        fill_all(&plan, round);
        MPI_Start(&plan.request);
        MPI_Barrier(comm);
        MPI_Wait(&plan.request, MPI_STATUS_IGNORE);
        check_all(&plan, round, "a plan behind a barrier");
    }
    drop(&plan);
}

/* Short ones are the library's, however many, and long ones behind them are not. */
static void short_ones(MPI_Comm comm) {
    Plan plan;
    for (int k = 0; k < 40; ++k) {
        const int is_long = k > 20 && k % 4 == 0;
        make(&plan, comm, is_long ? 5000 : 100, 0);
        expect_ours(&plan, is_long, is_long ? "a long plan behind short ones" : "a short plan");
        fill_all(&plan, (unsigned)k);
        MPI_Start(&plan.request);
        MPI_Wait(&plan.request, MPI_STATUS_IGNORE);
        check_all(&plan, (unsigned)k, "plans short and long");
        drop(&plan);
    }
    /* On average short, but not for everybody. */
    make(&plan, comm, 10, 200);
    expect_ours(&plan, 0, "a plan that is short on average");
    drop(&plan);
}

/* Equal blocks, of which all ranks know the bytes. */
static void equal_blocks(MPI_Comm comm) {
    typedef int Init(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, MPI_Comm, MPI_Info,
                     MPI_Request*);
    Init* alltoall_init;
    *(void**)&alltoall_init = dlsym(RTLD_DEFAULT, "MPI_Alltoall_init");
    enum { most = 70000 };
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    unsigned char* const out = guarded_new(most_ranks * (size_t)most);
    unsigned char* const in = guarded_new(most_ranks * (size_t)most);
    for (int bytes = 100; bytes <= most; bytes *= 7) {
        MPI_Request request;
        alltoall_init(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, comm, MPI_INFO_NULL, &request);
        if (expect_thalweg() && size > 1)
            CHECK(was_accelerated() == bytes >= 1000, "blocks of %d bytes: %s", bytes, last_reason());
        for (unsigned round = 0; round < starts; ++round) {
            memset(in, poison_value, most_ranks * (size_t)most);
            for (int i = 0; i < size; ++i)
                fill(out + (size_t)i * bytes, (size_t)bytes, seed_of(rank, i, round));
            MPI_Start(&request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            for (int i = 0; i < size; ++i)
                verify(in + (size_t)i * bytes, (size_t)bytes, seed_of(i, rank, round), "equal blocks");
            CHECK(in[(size_t)size * bytes] == poison_value, "written behind %d blocks", size);
        }
        MPI_Request_free(&request);
    }
    guarded_free(out, most_ranks * (size_t)most);
    guarded_free(in, most_ranks * (size_t)most);
}

static void run_once(Plan* plan, unsigned round, const char* what) {
    fill_all(plan, round);
    MPI_Start(&plan->request);
    MPI_Wait(&plan->request, MPI_STATUS_IGNORE);
    check_all(plan, round, what);
    drop(plan);
}

/* Rank 0 has too few descriptors left while the first plan is made, and enough for those that follow: on that
 * communicator they are the library's all the same, without a set-up, and on another one they are not. */
static void refused(void) {
    MPI_Comm twin, other;
    Plan plan;
    MPI_Comm_dup(MPI_COMM_WORLD, &twin);
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    struct rlimit before, few;
    CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0, "there is no limit on open files");
    const int next = open("/dev/null", O_RDONLY);
    close(next);
    few = before;
    few.rlim_cur = (rlim_t)next + 64; /* what a set-up opens, but not what it leaves to the program */
    if (check_rank == 0) CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0, "the limit stays");
    make(&plan, twin, 5000, 0);
    if (check_rank == 0) CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0, "the limit stays low");
    expect_ours(&plan, 0, "a plan without descriptors");
    run_once(&plan, 1, "a plan without descriptors");
    for (unsigned round = 2; round < 5; ++round) {
        make(&plan, twin, 5000, 0);
        expect_ours(&plan, 0, "a plan where a set-up has failed");
        run_once(&plan, round, "a plan where a set-up has failed");
    }
    make(&plan, other, 5000, 0);
    expect_ours(&plan, 1, "a plan on another communicator");
    run_once(&plan, 6, "a plan on another communicator");
    MPI_Comm_free(&twin);
    MPI_Comm_free(&other);
}

static Plan last;
static int start_late(MPI_Comm comm, int keyval, void* value, void* state) {
    (void)comm, (void)keyval, (void)value, (void)state;
    fill_all(&last, 7);
    MPI_Start(&last.request);
    MPI_Wait(&last.request, MPI_STATUS_IGNORE);
    check_all(&last, 7, "a plan started in MPI_Finalize");
    return MPI_SUCCESS;
}

int main(int argc, char** argv) {
    const char* level = getenv("THALWEG_TEST_LEVEL");
    check_start(&argc, &argv,
                level != NULL && strcmp(level, "multiple") == 0 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE);
    *(void**)&alltoallv_init = dlsym(RTLD_DEFAULT, "MPI_Alltoallv_init");
    if (alltoallv_init == NULL) return check_end();
    if (argc > 1 && strcmp(argv[1], "refused") == 0) {
        refused();
        return check_end();
    }
    every_size(MPI_COMM_WORLD);
    in_any_order(MPI_COMM_WORLD);
    beside_others(MPI_COMM_WORLD);
    equal_blocks(MPI_COMM_WORLD);
    for (int round = 0; round < 20; ++round) {
        MPI_Comm half;
        MPI_Comm_split(MPI_COMM_WORLD, check_rank % 2, -check_rank, &half);
        Plan plan;
        make(&plan, half, 30000, 11);
        expect_ours(&plan, 1, "a plan on a part");
        MPI_Comm_free(&half); /* its plan goes on */
        fill_all(&plan, (unsigned)round);
        MPI_Start(&plan.request);
        MPI_Wait(&plan.request, MPI_STATUS_IGNORE);
        check_all(&plan, (unsigned)round, "a plan whose communicator was freed");
        drop(&plan);
    }
    if (argc == 1 || strcmp(argv[1], "either") != 0) {
        MPI_Comm twin;
        MPI_Comm_dup(MPI_COMM_WORLD, &twin);
        short_ones(twin);
        MPI_Comm_free(&twin);
    }
    if (argc > 1 && strcmp(argv[1], "left") == 0) {
        int keyval;
        make(&last, MPI_COMM_WORLD, 40000, 3);
        MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, start_late, &keyval, NULL);
        MPI_Comm_set_attr(MPI_COMM_SELF, keyval, NULL);
    }
    return check_end();
}
