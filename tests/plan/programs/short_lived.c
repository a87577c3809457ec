/* Communicators made, used for a few small collectives and freed, between hosts: none of them is set up,
 * which the thread of a set-up would show, and with PAIRS the loops take at most 1.1 times as long through us
 * as past us (PMPI), or at most 1.5 us more per communicator, as in churn.c. Large nonblocking collectives
 * are ours behind the first blocking one, others behind eight.
 *
 *     short_lived ITERATIONS [PAIRS]        of each kind
 */
#include "agents.h"
#include "check.h"

enum { most_ranks = 8, few = 7, alltoalls = 12, middle = 64 << 10, large = 1 << 20, most_pairs = 201 };

typedef enum { allgather, barrier, sum, nonblocking_alltoall, alltoall, kinds } Kind;
static const char* const names[] = {"MPI_Iallgather", "MPI_Ibarrier", "MPI_Iallreduce", "MPI_Ialltoall",
                                    "MPI_Alltoall"};

#define MADE(name) (past ? P##name : name)

/* What a step of a program does on a communicator of its own. */
static void use(Kind kind, MPI_Comm comm, int past) {
    int from[most_ranks], to[most_ranks], total = 0;
    MPI_Request request;
    for (int i = 0; i < check_size; ++i) from[i] = check_rank * most_ranks + i, to[i] = -1;
    switch (kind) {
        case allgather:
            MADE(MPI_Iallgather)(&check_rank, 1, MPI_INT, to, 1, MPI_INT, comm, &request);
            break;
        case barrier:
            MADE(MPI_Ibarrier)(comm, &request);
            break;
        case sum:
            MADE(MPI_Iallreduce)(&check_rank, &total, 1, MPI_INT, MPI_SUM, comm, &request);
            break;
        case nonblocking_alltoall:
            MADE(MPI_Ialltoall)(from, 1, MPI_INT, to, 1, MPI_INT, comm, &request);
            break;
        default:
            for (int call = 0; call < alltoalls; ++call)
                MADE(MPI_Alltoall)(from, 1, MPI_INT, to, 1, MPI_INT, comm);
    }
    if (kind != alltoall) {
        MADE(MPI_Wait)(&request, MPI_STATUS_IGNORE);
        MADE(MPI_Barrier)(comm); /* where a communicator would be set up */
    }
    for (int i = 0; i < check_size && kind != barrier && kind != sum; ++i)
        CHECK(to[i] == (kind == allgather ? i : i * most_ranks + check_rank), "%s: int %d is %d", names[kind],
              i, to[i]);
    if (kind == sum) CHECK(total == check_size * (check_size - 1) / 2, "a sum of %d", total);
}

static void loop(Kind kind, int count, int past) {
    for (int i = 0; i < count; ++i) {
        MPI_Comm comm;
        MADE(MPI_Comm_split)(MPI_COMM_WORLD, 0, check_rank, &comm);
        use(kind, comm, past);
        MADE(MPI_Comm_free)(&comm);
    }
}

/* Either comes first by turns; the slowest rank counts. */
static void expect_as_fast(Kind kind, int iterations, int pairs) {
    double mine[2 * most_pairs], most[2 * most_pairs], ratio[most_pairs], more[most_pairs];
    const int count = 1 + iterations / pairs;
    loop(kind, count, 0), loop(kind, count, 1);
    for (int i = 0; i < 2 * pairs; ++i) {
        const int past = (i + i / 2) % 2;
        PMPI_Barrier(MPI_COMM_WORLD);
        const double begin = seconds_now();
        loop(kind, count, past);
        mine[i / 2 * 2 + past] = seconds_now() - begin;
    }
    PMPI_Allreduce(mine, most, 2 * pairs, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    for (int i = 0; i < pairs; ++i) {
        ratio[i] = most[2 * i] / most[2 * i + 1];
        more[i] = 1e6 * (most[2 * i] - most[2 * i + 1]) / count;
    }
    const double times = median(ratio, pairs), longer = median(more, pairs);
    if (check_rank == 0)
        printf("%s, %d pairs of %d: %.3f times as long through Thalweg (%.3f to %.3f), %.3f us more\n",
               names[kind], pairs, count, times, ratio[0], ratio[pairs - 1], longer);
    CHECK(times <= 1.1 || longer <= 1.5,
          "%s: communicators cost %.3f times as much as natively, %.3f us more", names[kind], times, longer);
}

/* How many of these, each with a blocking collective behind it, are left to the library before one is ours;
 * -1: more than `most`. */
static int left_before_ours(int bytes, int most) {
    MPI_Comm comm;
    MPI_Request request;
    unsigned char* const own = guarded_new((size_t)bytes);
    unsigned char* const all = guarded_new((size_t)bytes * (size_t)check_size);
    int left = -1;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int call = 0; call <= most && left < 0; ++call) {
        fill(own, (size_t)bytes, (unsigned)(call * most_ranks + check_rank));
        MPI_Iallgather(own, bytes, MPI_BYTE, all, bytes, MPI_BYTE, comm, &request);
        if (was_accelerated()) left = call;
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (int rank = 0; rank < check_size; ++rank)
            verify(all + (size_t)rank * (size_t)bytes, (size_t)bytes, (unsigned)(call * most_ranks + rank),
                   "a gathered block");
        meet_on(comm);
    }
    MPI_Comm_free(&comm);
    guarded_free(own, (size_t)bytes);
    guarded_free(all, (size_t)bytes * (size_t)check_size);
    return left;
}

/* Calls of which no rank knows whether they are small count as all others. */
static void many_small(void) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int call = 0; call < few; ++call) use(barrier, comm, 0);
    if (expect_thalweg()) CHECK(agents() == 0, "%d nonblocking calls set a communicator up", few);
    MPI_Comm_free(&comm);
}

/* Of blocks that differ every rank knows the mean: none of these would be ours. */
static void many_short_gathers(void) {
    int own[2] = {check_rank, -check_rank}, all[2 * most_ranks], counts[most_ranks], places[most_ranks];
    MPI_Request request;
    MPI_Comm comm;
    for (int i = 0; i < check_size; ++i) {
        counts[i] = 1 + i % 2;
        places[i] = i == 0 ? 0 : places[i - 1] + counts[i - 1];
    }
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int call = 0; call < 3 * few; ++call) {
        memset(all, 0x5c, sizeof all);
        MPI_Iallgatherv(own, counts[check_rank], MPI_INT, all, counts, places, MPI_INT, comm, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (int i = 0; i < check_size; ++i)
            CHECK(all[places[i]] == i && (counts[i] == 1 || all[places[i] + 1] == -i),
                  "call %d: the block of rank %d begins with %d", call, i, all[places[i]]);
        MPI_Barrier(comm);
    }
    if (expect_thalweg()) CHECK(agents() == 0, "short MPI_Iallgathervs set a communicator up");
    MPI_Comm_free(&comm);
}

/* Nor do short persistent ones pay for a set-up when they are made. */
static void short_plans(void) {
    int (*init)(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Info, MPI_Request*);
    *(void**)&init = dlsym(RTLD_DEFAULT, "MPI_Allreduce_init");
    for (int i = 0; i < few && init != NULL; ++i) {
        MPI_Request request;
        MPI_Comm comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        int own = 0, total = 0;
        init(&own, &total, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &request);
        for (int start = 1; start < 4; ++start) {
            own = start * (check_rank + 1);
            MPI_Start(&request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            CHECK(total == start * check_size * (check_size + 1) / 2, "start %d: a sum of %d", start, total);
        }
        MPI_Request_free(&request);
        MPI_Comm_free(&comm);
    }
    if (expect_thalweg()) CHECK(agents() == 0, "short MPI_Allreduce_inits set a communicator up");
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, wanted_level());
    const int iterations = argc > 1 ? atoi(argv[1]) : 20, pairs = argc > 2 ? atoi(argv[2]) : 0;
    CHECK(check_size <= most_ranks && pairs <= most_pairs, "%d ranks, %d pairs", check_size, pairs);
    for (Kind kind = 0; kind < kinds; ++kind) {
        loop(kind, iterations, 0);
        if (expect_thalweg()) CHECK(agents() == 0, "%s: a communicator was set up", names[kind]);
        if (pairs > 0) expect_as_fast(kind, iterations, pairs);
    }
    many_small();
    many_short_gathers();
    short_plans();
    const int of_large = left_before_ours(large, 10), of_middle = left_before_ours(middle, 20);
    if (expect_thalweg()) {
        CHECK(of_large == 1, "of allgathers of 1 MiB number %d is the first of ours: %s", of_large,
              last_reason());
        CHECK(of_middle == 8, "of allgathers of 64 KiB number %d is the first of ours: %s", of_middle,
              last_reason());
    }
    return check_end();
}
