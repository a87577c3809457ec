/* Every form of MPI_Alltoall, MPI_Alltoallv, MPI_Alltoallw and MPI_Allgatherv, each also with counts of
 * MPI_Count: blocking, nonblocking, persistent. Counts, displacements and types die as soon as a call that we
 * took has returned: they are overwritten and freed before anything is started or completed.
 * THALWEG_TEST_TAKEN=1: all were taken; else the persistent ones, which are the library's own, are left out.
 */
#include "call_forms.h"
#include "ragged_blocks.h"

typedef enum { alltoall, alltoallv, alltoallw, allgatherv, kinds } Kind;

static char name[64];
static void* find_form(Kind kind, Time time, int wide) {
    static const char* const names[kinds] = {"lltoall", "lltoallv", "lltoallw", "llgatherv"};
    snprintf(name, sizeof name, "MPI_%s%s%s%s", time == nonblocking ? "Ia" : "A", names[kind],
             time == persistent ? "_init" : "", wide ? "_c" : "");
    return dlsym(RTLD_DEFAULT, name);
}

/* Blocks of `count` ints each; those that a rank sends to all are one. */
static Blocks even_new(int count, int one) {
    Blocks blocks = {.stride = 1, .total = one ? count : count * check_size};
    blocks.counts = malloc((size_t)check_size * sizeof(int));
    blocks.places = malloc((size_t)check_size * sizeof(int));
    for (int peer = 0; peer < check_size; ++peer) {
        blocks.counts[peer] = count;
        blocks.places[peer] = one ? 0 : peer * count;
    }
    blocks.data = malloc((size_t)(blocks.total + 1) * sizeof(int));
    return blocks;
}

/* Ints leave; of an alltoallw bytes arrive. */
static void call(void* function, Kind kind, Time time, int wide, const Blocks* from, const Blocks* to,
                 MPI_Datatype type, MPI_Request* request) {
    const int count = from->counts[0], bytes = kind == alltoallw ? (int)sizeof(int) : 1;
    const MPI_Comm comm = MPI_COMM_WORLD;
    if (kind == alltoall) {
        call_alike(function, time, wide, comm, from->data, count, type, to->data, count, request);
        return;
    }
    const void* const counts = numbers(check_size, to->counts, bytes, wide);
    const void* const places = numbers(check_size, to->places, bytes, wide);
    if (kind == allgatherv) {
        call_gather(function, time, wide, comm, from->data, count, type, to->data, counts, places, request);
        return;
    }
    const void* const sent = numbers(check_size, from->counts, 1, wide);
    const void* const sent_at = numbers(check_size, from->places, bytes, wide);
    if (kind == alltoallv) {
        call_ragged(function, time, comm, from->data, sent, sent_at, type, to->data, counts, places, request);
        return;
    }
    MPI_Datatype* const sent_types = array_new(check_size, sizeof(MPI_Datatype));
    MPI_Datatype* const types = array_new(check_size, sizeof(MPI_Datatype));
    for (int peer = 0; peer < check_size; ++peer) sent_types[peer] = type, types[peer] = MPI_BYTE;
    call_typed(function, time, comm, from->data, sent, sent_at, sent_types, to->data, counts, places, types,
               request);
}

/* As put(): of an allgather all ranks get the same. */
static void put_alike(Blocks* from, int round) {
    for (int i = 0; i < from->counts[0]; ++i) from->data[i] = value_of(check_rank, 0, round, i);
}
static void verify_gathered(const Blocks* to, int round) {
    for (int peer = 0; peer < check_size; ++peer)
        for (int i = 0; i < to->counts[peer]; ++i)
            CHECK(to->data[to->places[peer] + i] == value_of(peer, 0, round, i),
                  "%s, round %d: from %d, byte %d is wrong", name, round, peer, 4 * i);
}

static void exchange(Kind kind, Time time, int wide, int unit) {
    void* const function = find_form(kind, time, wide);
    if (function == NULL) return;
    const Shape shape = {unit, 1};
    const int ragged = kind == alltoallv || kind == alltoallw, gather = kind == allgatherv;
    Blocks from = ragged ? blocks_new(&shape, 1, 1, 1) : even_new(unit, gather);
    Blocks to = ragged ? blocks_new(&shape, 0, 0, 1) : even_new(unit, 0);
    MPI_Request request = MPI_REQUEST_NULL;
    for (int round = 0; round < 3; ++round) {
        int late = 0;
        MPI_Datatype type;
        poison(&to);
        if (gather)
            put_alike(&from, round);
        else
            put(&from, round);
        if (time != persistent || round == 0) {
            MPI_Type_contiguous(1, MPI_INT, &type);
            MPI_Type_commit(&type);
            call(function, kind, time, wide, &from, &to, type, &request);
            if (expect_thalweg() && getenv("THALWEG_TEST_TAKEN") != NULL && check_size > 1)
                CHECK(was_accelerated(), "%s: %s", name, last_reason());
            late = time == nonblocking && !(expect_thalweg() && was_accelerated());
            if (!late) let_go(&type);
        }
        if (time == persistent) MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (late) let_go(&type);
        if (gather)
            verify_gathered(&to, round);
        else
            verify_blocks(&to, round, name);
    }
    if (time == persistent) MPI_Request_free(&request);
    blocks_free(&from);
    blocks_free(&to);
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, wanted_level());
    MPI_Request request;
    MPI_Ibarrier(MPI_COMM_WORLD, &request); /* asks for the set-up */
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    const int plans = getenv("THALWEG_TEST_TAKEN") != NULL && expect_thalweg() && check_size > 1;
    for (Kind kind = 0; kind < kinds; ++kind)
        for (Time time = 0; time < (plans ? times : persistent); ++time)
            for (int wide = 0; wide < 2; ++wide) {
                exchange(kind, time, wide, 7);
                exchange(kind, time, wide, 9001);
            }
    if (check_rank == 0 && find_form(alltoallw, nonblocking, 1) == NULL)
        printf("not looked at: counts of MPI_Count, which this MPI lacks\n");
    return check_end();
}
