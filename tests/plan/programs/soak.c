/* Random nonblocking operations, checked byte by byte: kinds, sizes, roots, communicators that come and go
 * while operations on them are pending, and completions in an order of each rank's own by every call that MPI
 * has. Arguments: how many operations, and a seed. What is started is drawn alike on all ranks; when it is
 * completed, and what a rank does meanwhile, by each rank for itself. With THALWEG_TEST_SOAK_SECONDS it ends
 * after that time, however many operations that were.
 */
#include <unistd.h>

#include "check.h"

enum { slots = 12, communicators = 4, most_bytes = 300000 };
enum kind { broadcast, allgather, allgatherv, allreduce, alltoall, barrier, kinds };

typedef struct {
    enum kind kind;
    int comm, size, rank, root, count; /* of ints, per rank */
    unsigned seed;
    int in_place;
    int taken; /* by Thalweg */
    int *own, *all;
    int *counts, *places;
} operation;

static operation operations[slots];
static MPI_Request requests[slots];
static MPI_Comm comms[communicators];
static uint64_t shared_state, own_state;

static unsigned draw(uint64_t* state, unsigned below) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (unsigned)((*state >> 11) % below);
}

static int value(unsigned seed, int rank, int i) {
    return (int)(pattern((uint64_t)i, seed * 131u + (unsigned)rank) & 0x3f) + i % 7 * 1000;
}

static void end(int slot);

/* World, a duplicate, the even and the odd ranks, the ranks in opposite order. Nobody waits here for what is
 * pending on the one before. */
static void renew(int which) {
#if defined(OPEN_MPI)
    /* Open MPI (4.1.4, 5.0.11) crashes where a communicator is freed before its nonblocking collectives end,
     * with nothing in front of it too. Waiting for these is safe: they were started by all. */
    for (int slot = 0; slot < slots; ++slot)
        if (requests[slot] != MPI_REQUEST_NULL && operations[slot].comm == which && !operations[slot].taken) {
            MPI_Wait(&requests[slot], MPI_STATUS_IGNORE);
            end(slot);
        }
#endif
    if (comms[which] != MPI_COMM_NULL) MPI_Comm_free(&comms[which]);
    if (which <= 1)
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[which]);
    else
        MPI_Comm_split(MPI_COMM_WORLD, which == 2 ? check_rank % 2 : 0, -check_rank, &comms[which]);
    MPI_Request request;
    MPI_Ibarrier(comms[which], &request); /* asks for the set-up, */
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Barrier(comms[which]); /* and gives the place for it */
}

static int count_of(const operation* op, int rank) {
    return op->kind == allgatherv ? op->count * (1 + rank % 3) / 2 : op->count;
}

/* What stands for the rank in the values that it has for another one. */
static int giver(const operation* op, int rank, int to) {
    return op->kind == alltoall ? rank * 64 + to : rank;
}

static void begin(int slot) {
    operation* const op = &operations[slot];
    static const int limits[] = {2, 60, 1500, 20000, most_bytes / 4};
    op->kind = (enum kind)draw(&shared_state, kinds);
    op->comm = (int)draw(&shared_state, communicators);
    op->seed = draw(&shared_state, 1u << 30);
    op->in_place = (int)draw(&shared_state, 3) == 0;
    op->count = (int)draw(&shared_state, (unsigned)limits[draw(&shared_state, 40) % 5]);
    const unsigned root = draw(&shared_state, 1u << 20);
    const MPI_Comm comm = comms[op->comm];
    MPI_Comm_size(comm, &op->size);
    MPI_Comm_rank(comm, &op->rank);
    op->root = (int)(root % (unsigned)op->size);
    const size_t size = (size_t)op->size;
    if (op->count > most_bytes / 4 / op->size && op->kind != broadcast) op->count /= op->size;
    const int blocks = op->kind == alltoall ? op->size : 1; /* that a rank gives */
    op->own = malloc(((size_t)op->count * 2 * (size_t)blocks + 1) * sizeof(int));
    op->counts = malloc(2 * size * sizeof(int));
    op->places = op->counts + op->size;
    int total = 0;
    for (int rank = 0; rank < op->size; ++rank) {
        op->counts[rank] = count_of(op, rank);
        op->places[rank] = total;
        total += op->counts[rank] + 1; /* a hole, which nobody may write to */
    }
    const int gathers = op->kind == allgather || op->kind == allgatherv;
    const int length = gathers ? total : op->count * blocks + 1;
    op->all = malloc((size_t)length * sizeof(int));
    for (int i = 0; i < length; ++i) op->all[i] = -5;
    const int mine = count_of(op, op->rank);
    for (int to = 0; to < blocks; ++to)
        for (int i = 0; i < mine; ++i) op->own[to * mine + i] = value(op->seed, giver(op, op->rank, to), i);
    int* const target = op->kind == allgather    ? op->all + op->rank * op->count
                        : op->kind == allgatherv ? op->all + op->places[op->rank]
                                                 : op->all;
    if (op->in_place || (op->kind == broadcast && op->rank == op->root))
        memcpy(target, op->own, (size_t)(mine * blocks) * sizeof(int));
    const void* const send = op->in_place ? MPI_IN_PLACE : op->own;
    MPI_Request* const request = &requests[slot];
    switch (op->kind) {
        case broadcast:
            MPI_Ibcast(op->all, op->count, MPI_INT, op->root, comm, request);
            break;
        case allgather:
            MPI_Iallgather(send, mine, MPI_INT, op->all, op->count, MPI_INT, comm, request);
            break;
        case allgatherv:
            MPI_Iallgatherv(send, mine, MPI_INT, op->all, op->counts, op->places, MPI_INT, comm, request);
            break;
        case allreduce:
            MPI_Iallreduce(send, op->all, op->count, MPI_INT, MPI_SUM, comm, request);
            break;
        case alltoall:
            MPI_Ialltoall(send, mine, MPI_INT, op->all, mine, MPI_INT, comm, request);
            break;
        default:
            MPI_Ibarrier(comm, request);
    }
}

static void end(int slot) {
    operation* const op = &operations[slot];
    const char* const names[] = {"broadcast", "allgather", "allgatherv", "allreduce", "alltoall", "barrier"};
    const int in_blocks = op->kind == allgather || op->kind == allgatherv || op->kind == alltoall;
    for (int rank = 0; rank < op->size && in_blocks; ++rank) {
        const int* const block = op->all + (op->kind == allgatherv ? op->places[rank] : rank * op->count);
        const int from = giver(op, rank, op->rank);
        for (int i = 0; i < op->counts[rank]; ++i)
            CHECK(block[i] == value(op->seed, from, i), "%s of %d: block %d, byte %d is wrong",
                  names[op->kind], op->count, rank, 4 * i);
        if (op->kind == allgatherv) CHECK(block[op->counts[rank]] == -5, "a hole was written to");
    }
    for (int i = 0; i < op->count && (op->kind == broadcast || op->kind == allreduce); ++i) {
        int wanted = 0;
        for (int rank = 0; rank < op->size; ++rank)
            if (op->kind == allreduce || rank == op->root) wanted += value(op->seed, rank, i);
        CHECK(op->all[i] == wanted, "%s of %d: byte %d is wrong: %d, not %d", names[op->kind], op->count,
              4 * i, op->all[i], wanted);
    }
    if (op->kind == broadcast || op->kind == allreduce)
        CHECK(op->all[op->count] == -5, "%s wrote too much", names[op->kind]);
    if (op->kind == alltoall) CHECK(op->all[op->count * op->size] == -5, "an alltoall wrote too much");
    free(op->own);
    free(op->all);
    free(op->counts);
    op->all = NULL;
}

/* Completes what happens to be done, or one, or all, by any call. */
static void complete_some(void) {
    int flag = 0, index = MPI_UNDEFINED, some = 0, indices[slots];
    MPI_Request before[slots];
    memcpy(before, requests, sizeof before);
    switch (draw(&own_state, 9)) {
        case 0:
            MPI_Test(&requests[draw(&own_state, slots)], &flag, MPI_STATUS_IGNORE);
            break;
        case 1:
            MPI_Testany(slots, requests, &index, &flag, MPI_STATUS_IGNORE);
            break;
        case 2:
            MPI_Testsome(slots, requests, &some, indices, MPI_STATUSES_IGNORE);
            break;
        case 3:
            MPI_Testall(slots, requests, &flag, MPI_STATUSES_IGNORE);
            break;
        case 4:
            usleep(draw(&own_state, 300));
            break;
        case 5: {
            const unsigned slot = draw(&own_state, slots);
            if (requests[slot] != MPI_REQUEST_NULL)
                MPI_Request_get_status(requests[slot], &flag, MPI_STATUS_IGNORE);
            break;
        }
        case 6: {
            int arrived = 0;
            MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &arrived, MPI_STATUS_IGNORE);
            break;
        }
        default:
            break;
    }
    for (int slot = 0; slot < slots; ++slot)
        if (before[slot] != MPI_REQUEST_NULL && requests[slot] == MPI_REQUEST_NULL) end(slot);
}

/* Everybody is about to start something in this slot. Waiting for just that is safe: it was started by all.
 */
static void vacate(int slot) {
    MPI_Request before[slots];
    memcpy(before, requests, sizeof before);
    if (before[slot] == MPI_REQUEST_NULL) return;
    int index, some, indices[slots];
    switch (draw(&own_state, 4)) {
        case 0:
            MPI_Waitall(slots, requests, MPI_STATUSES_IGNORE);
            break;
        case 1:
            while (requests[slot] != MPI_REQUEST_NULL)
                MPI_Waitany(slots, requests, &index, MPI_STATUS_IGNORE);
            break;
        case 2:
            while (requests[slot] != MPI_REQUEST_NULL)
                MPI_Waitsome(slots, requests, &some, indices, MPI_STATUSES_IGNORE);
            break;
        default:
            MPI_Wait(&requests[slot], MPI_STATUS_IGNORE);
    }
    for (int i = 0; i < slots; ++i)
        if (before[i] != MPI_REQUEST_NULL && requests[i] == MPI_REQUEST_NULL) end(i);
}

/* Rank 0's clock says for all whether there is time for more. */
static int time_left(double until) {
    int more = seconds_now() < until;
    MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return more;
}

int main(int argc, char** argv) {
    const int count = argc > 1 ? atoi(argv[1]) : 1000;
    const unsigned seed = argc > 2 ? (unsigned)atoi(argv[2]) : 1;
    check_start(&argc, &argv, wanted_level());
    shared_state = 0x9e3779b97f4a7c15ull * (seed + 1);
    own_state = shared_state + 77 * ((uint64_t)check_rank + 1);
    for (int i = 0; i < slots; ++i) requests[i] = MPI_REQUEST_NULL;
    for (int i = 0; i < communicators; ++i) {
        comms[i] = MPI_COMM_NULL;
        renew(i);
    }
    const char* const limit = getenv("THALWEG_TEST_SOAK_SECONDS");
    const double began = seconds_now();
    int taken = 0, started = 0;
    for (; started < count; ++started) {
        if (limit != NULL && started % 500 == 499 && !time_left(began + atof(limit))) break;
        const int slot = (int)draw(&shared_state, slots);
        vacate(slot);
        if (draw(&shared_state, 60) == 0) renew((int)draw(&shared_state, communicators));
        begin(slot);
        operations[slot].taken = was_accelerated();
        taken += operations[slot].taken;
        for (unsigned n = draw(&own_state, 4); n > 0; --n) complete_some();
    }
    for (int slot = 0; slot < slots; ++slot) vacate(slot);
    for (int i = 0; i < communicators; ++i) MPI_Comm_free(&comms[i]);
    if (check_rank == 0)
        printf("seed %u: %d of %d operations were taken, %.0f s\n", seed, taken, started,
               seconds_now() - began);
    if (expect_thalweg() && check_size > 2)
        CHECK(taken > started / 2, "only %d of %d were taken", taken, started);
    return check_end();
}
