/* Persistent alltoalls over windows, which THALWEG_ALLTOALLV names: restarts with other data each time into
 * poisoned memory, zero counts, gaps, types of other shapes on the two sides, a communicator that is gone,
 * several plans completed and freed in an order of its rank's own, two that are completed crosswise, and more
 * plans than there are windows. report.py counts what must have happened.
 *
 *     windows [conforms] [crowd] [STARTS]
 *
 * conforms: also starts in an order of the rank's own, and sits in native calls between. crowd: more plans
 * than a communicator has windows. STARTS: how often the small plan is started, 50 by default.
 */
#include "check.h"

typedef int AlltoallInit(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, MPI_Comm, MPI_Info,
                         MPI_Request*);
typedef int AlltoallvInit(const void*, const int*, const int*, MPI_Datatype, void*, const int*, const int*,
                          MPI_Datatype, MPI_Comm, MPI_Info, MPI_Request*);
typedef int AlltoallwInit(const void*, const int*, const int*, const MPI_Datatype*, void*, const int*,
                          const int*, const MPI_Datatype*, MPI_Comm, MPI_Info, MPI_Request*);
static AlltoallInit* alltoall_init;
static AlltoallvInit* alltoallv_init;
static AlltoallwInit* alltoallw_init;

enum { most_ranks = 8, several = 3, many = 66, gone = -7 };

/* Ints from one rank to another; a third of the pairs has none. */
static int count_of(int from, int to, int unit) {
    const int mix = from * 31 + to * 17 + from * to * 7 + 5;
    return mix % 3 == 0 ? 0 : mix % 5 * unit + 1;
}
static int value_of(int from, int to, int round, int i) {
    return (from * 64 + to) * 1000003 + round * 8191 + i * 3;
}

/* One plan of this rank: blocks from the last rank's to the first's with holes; received ints lie `stride`
 * apart. */
typedef struct {
    int send_counts[most_ranks], receive_counts[most_ranks], send_at[most_ranks], receive_at[most_ranks];
    int *from, *to, room, stride;
    MPI_Request request;
} Plan;

static void lay_out(Plan* plan, int unit, int stride) {
    int from = 1, to = 1;
    for (int peer = check_size - 1; peer >= 0; --peer) {
        plan->send_counts[peer] = count_of(check_rank, peer, unit);
        plan->receive_counts[peer] = count_of(peer, check_rank, unit);
        plan->send_at[peer] = from;
        plan->receive_at[peer] = to;
        from += plan->send_counts[peer];
        to += plan->receive_counts[peer] + 1;
    }
    plan->stride = stride;
    plan->room = (to + 1) * stride;
    plan->from = malloc((size_t)(from + 1) * sizeof(int));
    plan->to = malloc((size_t)plan->room * sizeof(int));
}
static void plan_make(Plan* plan, int unit, int stride, MPI_Comm comm) {
    MPI_Datatype type = MPI_INT;
    lay_out(plan, unit, stride);
    if (stride != 1) {
        MPI_Type_create_resized(MPI_INT, 0, stride * (MPI_Aint)sizeof(int), &type);
        MPI_Type_commit(&type);
    }
    alltoallv_init(plan->from, plan->send_counts, plan->send_at, MPI_INT, plan->to, plan->receive_counts,
                   plan->receive_at, type, comm, MPI_INFO_NULL, &plan->request);
    CHECK(was_accelerated(), "a plan: %s", last_reason());
    if (stride != 1) MPI_Type_free(&type);
}
static void prepare(Plan* plan, int round) {
    for (int i = 0; i < plan->room; ++i) plan->to[i] = gone;
    for (int peer = 0; peer < check_size; ++peer)
        for (int i = 0; i < plan->send_counts[peer]; ++i)
            plan->from[plan->send_at[peer] + i] = value_of(check_rank, peer, round, i);
}
static void check_plan(const Plan* plan, int round, const char* what) {
    int right = 0, untouched = 0;
    for (int peer = 0; peer < check_size; ++peer)
        for (int i = 0; i < plan->receive_counts[peer]; ++i, ++right)
            CHECK(
                plan->to[(plan->receive_at[peer] + i) * plan->stride] == value_of(peer, check_rank, round, i),
                "%s, round %d: int %d from %d is wrong", what, round, i, peer);
    for (int i = 0; i < plan->room; ++i) untouched += plan->to[i] == gone;
    CHECK(untouched == plan->room - right, "%s, round %d: %d ints between the blocks were written", what,
          round, plan->room - right - untouched);
}
static void plan_free(Plan* plan) {
    MPI_Request_free(&plan->request);
    free(plan->from);
    free(plan->to);
}

static void restarts(int unit, int stride, int rounds) {
    Plan plan;
    plan_make(&plan, unit, stride, MPI_COMM_WORLD);
    for (int round = 0; round < rounds; ++round) {
        prepare(&plan, round);
        MPI_Start(&plan.request);
        if (round % 2 == 0)
            MPI_Wait(&plan.request, MPI_STATUS_IGNORE);
        else
            for (int flag = 0; !flag;) MPI_Test(&plan.request, &flag, MPI_STATUS_IGNORE);
        check_plan(&plan, round, "a restart");
    }
    plan_free(&plan);
}

/* Blocks of one size, in place as well: then the input is what the start finds. */
static void alike(int count, int placed) {
    const int all = count * check_size;
    int* const from = malloc((size_t)all * sizeof(int));
    int* const to = malloc((size_t)all * sizeof(int));
    MPI_Request request;
    alltoall_init(placed ? MPI_IN_PLACE : (const void*)from, count, MPI_INT, to, count, MPI_INT,
                  MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    CHECK(was_accelerated(), "blocks of one size: %s", last_reason());
    for (int round = 0; round < 3; ++round) {
        for (int i = 0; i < all; ++i) {
            from[i] = value_of(check_rank, i / count, round, i % count);
            to[i] = placed ? from[i] : gone;
        }
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (int i = 0; i < all; ++i)
            CHECK(to[i] == value_of(i / count, check_rank, round, i % count), "blocks of one size: int %d",
                  i);
    }
    MPI_Request_free(&request);
    free(from);
    free(to);
}

/* Every second int is sent, by a type of its own for each peer; bytes are received. */
static void typed(void) {
    Plan plan;
    MPI_Datatype sent[most_ranks], received[most_ranks];
    int ones[most_ranks], bytes[most_ranks], from_at[most_ranks], to_at[most_ranks];
    lay_out(&plan, 40, 1);
    int* const spread = malloc(2 * (size_t)plan.room * (size_t)check_size * sizeof(int) + 4096);
    for (int peer = 0, at = 0; peer < check_size; ++peer) {
        MPI_Type_vector(plan.send_counts[peer], 1, 2, MPI_INT, &sent[peer]);
        MPI_Type_commit(&sent[peer]);
        received[peer] = MPI_BYTE;
        ones[peer] = 1;
        bytes[peer] = plan.receive_counts[peer] * (int)sizeof(int);
        from_at[peer] = at * (int)sizeof(int);
        to_at[peer] = plan.receive_at[peer] * (int)sizeof(int);
        at += 2 * plan.send_counts[peer];
    }
    alltoallw_init(spread, ones, from_at, sent, plan.to, bytes, to_at, received, MPI_COMM_WORLD,
                   MPI_INFO_NULL, &plan.request);
    CHECK(was_accelerated(), "types: %s", last_reason());
    for (int peer = 0; peer < check_size; ++peer) MPI_Type_free(&sent[peer]);
    for (int round = 0; round < 3; ++round) {
        for (int i = 0; i < plan.room; ++i) plan.to[i] = gone;
        for (int peer = 0; peer < check_size; ++peer)
            for (int i = 0; i < plan.send_counts[peer]; ++i)
                spread[from_at[peer] / (int)sizeof(int) + 2 * i] = value_of(check_rank, peer, round, i);
        MPI_Start(&plan.request);
        MPI_Wait(&plan.request, MPI_STATUS_IGNORE);
        check_plan(&plan, round, "types");
    }
    free(spread);
    plan_free(&plan);
}

/* Plans on a communicator that is freed before they are started. Completed in another order on every rank;
 * where requests conform, started so too. */
static void orders(int conforms) {
    Plan plans[several];
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int i = 0; i < several; ++i) plan_make(&plans[i], 1 + 300 * i, 1, comm);
    MPI_Comm_free(&comm);
    for (int round = 0; round < 6; ++round) {
        for (int i = 0; i < several; ++i) prepare(&plans[i], round);
        for (int i = 0; i < several; ++i)
            MPI_Start(&plans[conforms ? (i + check_rank + round) % several : i].request);
        /* The others complete theirs while the last rank is in a native call. */
        if (conforms && round % 2 == 0 && check_rank == check_size - 1)
            MPI_Recv(NULL, 0, MPI_BYTE, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < several; ++i)
            MPI_Wait(&plans[(several - i + check_rank) % several].request, MPI_STATUS_IGNORE);
        if (conforms && round % 2 == 0 && check_rank == 0)
            MPI_Send(NULL, 0, MPI_BYTE, check_size - 1, 3, MPI_COMM_WORLD);
        for (int i = 0; i < several; ++i) check_plan(&plans[i], round, "one of several");
    }
    for (int i = 0; i < several; ++i) plan_free(&plans[(i + check_rank) % several]);
}

/* Two plans in which everybody sends to everybody, started in one order. Every second rank completes the
 * other one first, by calls of each kind. Where starts do not block, it has started the first one before the
 * rank in front of it starts any, and starts the second one behind that: so of each plan one of the two does
 * not find at its start that it can go on, and waits for the other plan then. */
static void crossed(void) {
    enum { count = 5, calls = 3 };
    const char* const way = getenv("THALWEG_ALLTOALLV");
    const int staged = way != NULL && (strcmp(way, "rma_pscw") == 0 || strcmp(way, "rma_get") == 0);
    const int odd = check_rank % 2, partner = odd ? check_rank - 1 : check_rank + 1;
    const int all = count * check_size;
    /* Pages apart: where windows, or what else was registered, share pages, MPICH 4.0.2 confuses their
     * begins. */
    const size_t apart = 1 << 16;
    int *from[2], *to[2];
    for (int i = 0; i < 2; ++i) from[i] = aligned_alloc(apart, apart), to[i] = aligned_alloc(apart, apart);
    MPI_Request requests[2];
    for (int i = 0; i < 2; ++i)
        alltoall_init(from[i], count, MPI_INT, to[i], count, MPI_INT, MPI_COMM_WORLD, MPI_INFO_NULL,
                      &requests[i]);
    CHECK(was_accelerated(), "two plans: %s", last_reason());
    for (int round = 0; round < 2 * calls; ++round) {
        for (int i = 0; i < 2 * all; ++i) {
            from[i / all][i % all] = value_of(check_rank, i % all / count, round, i);
            to[i / all][i % all] = gone;
        }
        if (staged && !odd && partner < check_size)
            MPI_Recv(NULL, 0, MPI_BYTE, partner, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Start(&requests[0]);
        if (staged && odd) {
            MPI_Send(NULL, 0, MPI_BYTE, partner, 4, MPI_COMM_WORLD);
            MPI_Recv(NULL, 0, MPI_BYTE, partner, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        MPI_Start(&requests[1]);
        if (staged && !odd && partner < check_size) MPI_Send(NULL, 0, MPI_BYTE, partner, 4, MPI_COMM_WORLD);
        MPI_Request turns[2] = {requests[odd], requests[1 - odd]};
        if (round % calls == 0) MPI_Waitall(2, turns, MPI_STATUSES_IGNORE);
        for (int i = 0; i < 2 && round % calls == 1; ++i) MPI_Wait(&turns[i], MPI_STATUS_IGNORE);
        for (int i = 0, flag; i < 2 && round % calls == 2; i += flag != 0)
            MPI_Test(&turns[i], &flag, MPI_STATUS_IGNORE);
        for (int i = 0; i < 2 * all; ++i) {
            const int peer = i % all / count, sent = i - i % all + check_rank * count + i % count;
            CHECK(to[i / all][i % all] == value_of(peer, check_rank, round, sent),
                  "two plans, round %d: int %d from %d is wrong", round, i, peer);
        }
    }
    for (int i = 0; i < 2; ++i) MPI_Request_free(&requests[i]), free(from[i]), free(to[i]);
}

/* The pool has 64 windows: later plans exchange messages, and everything goes on as before. */
static void crowd(void) {
    static Plan plans[many];
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int i = 0; i < many; ++i) plan_make(&plans[i], 1 + i % 7, 1, comm);
    for (int i = 0; i < many; i += 13) {
        prepare(&plans[i], i);
        MPI_Start(&plans[i].request);
        MPI_Wait(&plans[i].request, MPI_STATUS_IGNORE);
        check_plan(&plans[i], i, "one of many");
    }
    for (int i = 0; i < many; ++i) plan_free(&plans[(i * 5 + check_rank) % many]);
    /* All are given back now. */
    plan_make(&plans[0], 9, 1, comm);
    prepare(&plans[0], 1);
    MPI_Start(&plans[0].request);
    MPI_Wait(&plans[0].request, MPI_STATUS_IGNORE);
    check_plan(&plans[0], 1, "after many");
    plan_free(&plans[0]);
    MPI_Comm_free(&comm);
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, wanted_level());
    *(void**)&alltoall_init = dlsym(RTLD_DEFAULT, "MPI_Alltoall_init");
    *(void**)&alltoallv_init = find_or_skip("MPI_Alltoallv_init");
    *(void**)&alltoallw_init = dlsym(RTLD_DEFAULT, "MPI_Alltoallw_init");
    int conforms = 0, crowded = 0, starts = 50;
    for (int i = 1; i < argc; ++i) {
        conforms |= strcmp(argv[i], "conforms") == 0;
        crowded |= strcmp(argv[i], "crowd") == 0;
        if (atoi(argv[i]) > 0) starts = atoi(argv[i]);
    }
    restarts(1, 1, starts);
    restarts(3000, 1, starts / 5);
    restarts(100, 2, starts / 5);
    alike(700, 0);
    alike(5, 1);
    typed();
    orders(conforms);
    crossed();
    if (crowded) crowd();
    /* What is not persistent goes its own way. */
    int* const zeros = calloc(most_ranks, sizeof(int));
    int none[2];
    MPI_Request request;
    MPI_Ialltoallv(&none[0], zeros, zeros, MPI_INT, &none[1], zeros, zeros, MPI_INT, MPI_COMM_WORLD,
                   &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    free(zeros);
    /* Never freed: MPI_Finalize comes by it. */
    static Plan left;
    plan_make(&left, 2, 1, MPI_COMM_WORLD);
    return check_end();
}
