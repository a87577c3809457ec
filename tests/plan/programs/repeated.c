/* MPI_Alltoallv, MPI_Alltoall and MPI_Alltoallw, and MPI_Ialltoallv, called again and again on one
 * communicator, where one rank alone changes its counts, displacements, types or buffers, or frees memory and
 * gets the same address again: nothing hangs and every byte is right. THALWEG_TEST_TAKEN=1: all were taken;
 * =trial: the first eight were not, one of the next up to the 65th was, and sixteen more ran in both ways in
 * turns; and what that cost and gained is told.
 *
 *     repeated [CALLS]        120 by default
 */
#include "check.h"

enum { most = 3000 };

/* What rank `from` has for `to` at a call: its row changes at the calls that are its turn, and stays. */
static int count_of(int from, int to, int call) {
    const int turns = (call + check_size - 1 - from) / check_size;
    const unsigned mix = (unsigned)(from * 7 + to * 13 + turns / 4 * 31);
    return mix % 4 == 0 ? 0 : (int)(mix * 37 % most);
}
static int value_of(int from, int to, int call, int i) {
    return from * 1000003 + to * 10007 + call * 101 + i;
}

/* One rank's side of a call. */
typedef struct {
    int *counts, *places, *data;
    size_t room;
} Blocks;

static Blocks blocks_new(void) {
    Blocks blocks;
    blocks.counts = malloc((size_t)check_size * sizeof(int));
    blocks.places = malloc((size_t)check_size * sizeof(int));
    blocks.room = (size_t)check_size * (most + 8);
    blocks.data = malloc(blocks.room * sizeof(int));
    return blocks;
}
static void blocks_free(Blocks* blocks) {
    free(blocks->counts);
    free(blocks->places);
    free(blocks->data);
}

/* Places in an order and with gaps that change with `way`. */
static void lay_out(Blocks* blocks, int sends, int call, int way) {
    int at = way % 5;
    for (int i = 0; i < check_size; ++i) {
        const int peer = way % 2 ? check_size - 1 - i : i;
        blocks->counts[peer] = sends ? count_of(check_rank, peer, call) : count_of(peer, check_rank, call);
        blocks->places[peer] = at;
        at += blocks->counts[peer] + way % 3;
    }
    for (size_t i = 0; i < blocks->room; ++i) blocks->data[i] = -7;
    for (int peer = 0; sends && peer < check_size; ++peer)
        for (int i = 0; i < blocks->counts[peer]; ++i)
            blocks->data[blocks->places[peer] + i] = value_of(check_rank, peer, call, i);
}
static void verify_blocks(const Blocks* blocks, int call) {
    size_t right = 0;
    for (int peer = 0; peer < check_size; ++peer)
        for (int i = 0; i < blocks->counts[peer]; ++i, ++right)
            CHECK(blocks->data[blocks->places[peer] + i] == value_of(peer, check_rank, call, i),
                  "call %d: from %d, byte %d is wrong", call, peer, 4 * i);
    for (size_t i = 0; i < blocks->room; ++i) right += blocks->data[i] == -7;
    CHECK(right == blocks->room, "call %d: a byte between the blocks is wrong", call);
}

static void expect_taken(int call) {
    const char* const taken = getenv("THALWEG_TEST_TAKEN");
    if (taken == NULL || !expect_thalweg() || check_size == 1) return;
    if (strcmp(taken, "trial") != 0)
        CHECK(was_accelerated(), "call %d: %s", call, last_reason());
    else {
        static int first = -1;
        if (call == 0) first = -1;
        if (first < 0 && was_accelerated()) first = call;
        CHECK(first < 0 ? call < 64 : first >= 8, "the set-up came in call %d", first);
        if (first >= 0 && call < first + 17)
            CHECK(was_accelerated() == (call == first || tried_as_schedule(call - first - 1)),
                  "call %d of the trial that began in call %d: %s", call, first, last_reason());
    }
}

/* Calls with this rank's memory new each time it is its turn; at the same address where the allocator gives
 * it back. */
static void alltoallv(int calls, int nonblocking) {
    Blocks from = blocks_new(), to = blocks_new();
    MPI_Datatype one;
    int way[2] = {0, 0};
    MPI_Type_contiguous(1, MPI_INT, &one);
    MPI_Type_commit(&one);
    for (int call = 0; call < calls; ++call) {
        const int mine = call % check_size == check_rank;
        const int change = call / check_size % 4;
        if (mine && change == 1) ++way[0];
        if (mine && change == 2) ++way[1];
        if (mine && change == 3) {
            blocks_free(&to);
            blocks_free(&from);
            from = blocks_new();
            to = blocks_new();
        }
        lay_out(&from, 1, call, way[0]);
        lay_out(&to, 0, call, way[1]);
        MPI_Request beside;
        int token = check_rank == 0 ? call : -1;
        if (call % 3 == 0) MPI_Ibcast(&token, 1, MPI_INT, 0, MPI_COMM_WORLD, &beside);
        const MPI_Datatype sent = mine ? one : MPI_INT;
        if (nonblocking) {
            MPI_Request request;
            MPI_Ialltoallv(from.data, from.counts, from.places, sent, to.data, to.counts, to.places, MPI_INT,
                           MPI_COMM_WORLD, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        } else {
            MPI_Alltoallv(from.data, from.counts, from.places, sent, to.data, to.counts, to.places, MPI_INT,
                          MPI_COMM_WORLD);
            expect_taken(call);
        }
        if (call % 3 == 0) {
            MPI_Wait(&beside, MPI_STATUS_IGNORE);
            CHECK(token == call, "a broadcast beside");
        }
        verify_blocks(&to, call);
    }
    MPI_Type_free(&one);
    blocks_free(&from);
    blocks_free(&to);
}

static void alltoallw(int calls) {
    Blocks from = blocks_new(), to = blocks_new();
    MPI_Datatype* const ints = malloc((size_t)check_size * sizeof(MPI_Datatype));
    for (int peer = 0; peer < check_size; ++peer) ints[peer] = MPI_INT;
    for (int call = 0; call < calls; ++call) {
        lay_out(&from, 1, call, call % check_size == check_rank);
        lay_out(&to, 0, call, 1);
        for (int peer = 0; peer < check_size; ++peer) {
            from.places[peer] *= (int)sizeof(int);
            to.places[peer] *= (int)sizeof(int);
        }
        MPI_Alltoallw(from.data, from.counts, from.places, ints, to.data, to.counts, to.places, ints,
                      MPI_COMM_WORLD);
        for (int peer = 0; peer < check_size; ++peer) to.places[peer] /= (int)sizeof(int);
        verify_blocks(&to, call);
    }
    free(ints);
    blocks_free(&from);
    blocks_free(&to);
}

/* What the report says of repeated calls that have been tried: the same on all ranks. */
static void tried(void) {
    const char* const taken = getenv("THALWEG_TEST_TAKEN");
    if (taken == NULL || strcmp(taken, "trial") != 0 || !expect_thalweg()) return;
    int (*plan_stats)(size_t, thalweg_plan_stats*, size_t);
    *(void**)&plan_stats = dlsym(RTLD_DEFAULT, "thalweg_get_plan_stats");
    thalweg_plan_stats stats;
    CHECK(plan_stats(0, &stats, sizeof stats) == THALWEG_OK && strcmp(stats.operation, "alltoallv") == 0,
          "the repeated calls have no figures");
    CHECK(stats.starts >= 8 && stats.once_measured == 1, "%d starts", (int)stats.starts);
    const double mine[4] = {stats.init_seconds, stats.once_seconds, stats.plan_seconds, stats.break_even};
    double most[4];
    MPI_Allreduce(mine, most, 4, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    for (int i = 0; i < 4; ++i)
        CHECK(mine[i] == most[i] && mine[i] > 0, "figure %d: %g here, %g elsewhere", i, mine[i], most[i]);
    const double gain = stats.once_seconds - stats.plan_seconds;
    CHECK(gain > 0 ? stats.break_even > 0.99 * stats.init_seconds / gain : stats.break_even > 1e300,
          "%g calls to gain %g s by %g s", stats.break_even, gain, stats.init_seconds);
}

/* Sizes change on all ranks, buffers and in-place on some calls. */
static void alltoall(int calls) {
    for (int call = 0; call < calls; ++call) {
        const int count = call % 7 == 0 ? 0 : call * 97 % 2000, placed = call % 4 == 3;
        int* const from = malloc(((size_t)check_size * (size_t)count + 1) * sizeof(int));
        int* const to = malloc(((size_t)check_size * (size_t)count + 1) * sizeof(int));
        for (int i = 0; i < check_size * count; ++i) {
            from[i] = value_of(check_rank, i / count, call, i % count);
            to[i] = placed ? from[i] : -7;
        }
        to[check_size * count] = -7;
        MPI_Alltoall(placed ? MPI_IN_PLACE : (const void*)from, count, MPI_INT, to, count, MPI_INT,
                     MPI_COMM_WORLD);
        for (int i = 0; i < check_size * count; ++i)
            CHECK(to[i] == value_of(i / count, check_rank, call, i % count), "an alltoall: byte %d is wrong",
                  4 * i);
        CHECK(to[check_size * count] == -7, "an alltoall: a byte behind the buffer is wrong");
        free(from);
        free(to);
    }
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, wanted_level());
    const int calls = argc > 1 ? atoi(argv[1]) : 120;
    alltoallv(calls, 0);
    tried();
    alltoallv(calls, 1);
    alltoallw(calls / 3);
    alltoall(calls / 3);
    return check_end();
}
