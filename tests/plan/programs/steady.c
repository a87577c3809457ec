/* A persistent alltoallv that is started, tested and waited for many times with other data each time: what
 * thalweg_get_plan_stats says of it, that nothing is set up between a start and its completion, and that
 * Thalweg takes no memory from the heap and maps none meanwhile, on whichever thread.
 *
 *     steady [allocating]     it may: over a transport that is made for tests
 *     steady barriers         ranks meet by barriers in every start, as with rma_lock
 *     steady strided          of every two bytes one is sent
 *     steady rows             of every two KiB one is sent, in messages that are copied between processes
 */
#include "mapping_count.h"
#include "set_up_calls.h"

typedef int AlltoallvInit(const void*, const int*, const int*, MPI_Datatype, void*, const int*, const int*,
                          MPI_Datatype, MPI_Comm, MPI_Info, MPI_Request*);

enum { most = 4000, row = 1024, most_rows = 100, place_bytes = most_rows * 2 * row };
/* An element: `run` bytes that are sent, and the bytes of memory that it takes. */
static int run = 1, stride = 1;

static void fill_strided(unsigned char* data, int count, unsigned seed) {
    for (int i = 0; i < count * run; ++i) data[i / run * stride + i % run] = pattern((uint64_t)i, seed);
}
static void verify_strided(const unsigned char* data, int count, unsigned seed) {
    for (int i = 0; i < count * stride; ++i) {
        const int sent = i / stride * run + i % stride;
        const unsigned char right = i % stride < run ? pattern((uint64_t)sent, seed) : poison_value;
        CHECK(data[i] == right, "a start: byte %d is wrong", i);
    }
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, wanted_level());
    const int may_allocate = argc > 1 && strcmp(argv[1], "allocating") == 0;
    const int meets = argc > 1 && strcmp(argv[1], "barriers") == 0;
    MPI_Datatype type = MPI_BYTE;
    if (argc > 1 && strcmp(argv[1], "strided") == 0) stride = 2;
    if (argc > 1 && strcmp(argv[1], "rows") == 0) run = row, stride = 2 * row;
    if (stride > 1) {
        MPI_Datatype bytes;
        MPI_Type_contiguous(run, MPI_BYTE, &bytes);
        MPI_Type_create_resized(bytes, 0, stride, &type);
        MPI_Type_commit(&type);
        MPI_Type_free(&bytes);
    }
    AlltoallvInit* alltoallv_init;
    int (*plan_stats)(size_t, thalweg_plan_stats*, size_t);
    *(void**)&alltoallv_init = find_or_skip("MPI_Alltoallv_init");
    *(void**)&plan_stats = dlsym(RTLD_DEFAULT, "thalweg_get_plan_stats");
    CHECK(plan_stats != NULL, "no thalweg_get_plan_stats");
    int counts[64], places[64];
    static unsigned char from[64 * place_bytes], to[64 * place_bytes];
    for (int peer = 0; peer < check_size; ++peer) {
        counts[peer] = run == 1 ? 100 + (check_rank + peer) * 300 % most
                                : 8 + (check_rank + peer) * 13 % (most_rows - 8);
        places[peer] = peer * (place_bytes / stride);
    }
    thalweg_plan_stats stats;
    CHECK(plan_stats(0, &stats, sizeof stats) == THALWEG_NOT_FOUND, "a plan before the first");
    MPI_Request plan;
    alltoallv_init(from, counts, places, type, to, counts, places, type, MPI_COMM_WORLD, MPI_INFO_NULL,
                   &plan);
    CHECK(was_accelerated(), "a plan was declined: %s", last_reason());
    thalweg_last_call call;
    CHECK(look_last_call(&call, sizeof call) == 0, "nothing is known of the plan");
    CHECK(plan_stats(0, &stats, sizeof stats) == THALWEG_OK && stats.starts == 0 && stats.init_seconds > 0,
          "a plan that was not started");
    CHECK(stats.break_even != stats.break_even, "a break-even of a plan that was not started: %g",
          stats.break_even);
    enum { starts = 40, first = 3 };
    find_us();
    CHECK(our_begin != 0, "the preload object is not mapped");
    CHECK(may_allocate || mapped_early() > 0, "what the preload object maps is not counted");
    check_traps();
    barriers_pass = meets;
    unsigned long taken = 0;
    uintptr_t taken_by = 0;
    for (int round = 0; round < starts; ++round) {
        for (int peer = 0; peer < check_size; ++peer) {
            fill_strided(from + places[peer] * stride, counts[peer], (unsigned)(round * 64 + check_rank));
            memset(to + places[peer] * stride, poison_value, (size_t)(counts[peer] * stride));
        }
        /* What a first start finds missing, such as a connection, it may make. */
        if (round == first) {
            set_traps();
            const int with_libucp = set_traps_below();
            CHECK(with_libucp || strstr(call.transport, "ucx") == NULL, "no libucp, but it is used");
            mapped_by_us = 0;
        }
        from_us = 0;
        counting = 1;
        MPI_Start(&plan);
        if (round % 2 == 0) {
            MPI_Wait(&plan, MPI_STATUS_IGNORE);
        } else {
            for (int flag = 0; !flag;) MPI_Test(&plan, &flag, MPI_STATUS_IGNORE);
        }
        counting = 0;
        if (round >= first && from_us != 0) taken += from_us, taken_by = latest_from_us;
        for (int peer = 0; peer < check_size; ++peer)
            verify_strided(to + places[peer] * stride, counts[peer], (unsigned)(round * 64 + peer));
    }
    lift_traps();
    CHECK(may_allocate || taken == 0,
          "%lu allocations in %d starts, one of them at +0x%lx of the preload object", taken, starts - first,
          (unsigned long)taken_by);
    CHECK(may_allocate || mapped_by_us == 0, "%lu mappings in %d starts", mapped_by_us, starts - first);
    MPI_Request_free(&plan);
    if (type != MPI_BYTE) MPI_Type_free(&type);
    CHECK(plan_stats(0, &stats, sizeof stats) == THALWEG_OK, "a freed plan's figures");
    CHECK(stats.starts == starts && stats.plan_seconds > 0, "%d starts", (int)stats.starts);
    CHECK(strcmp(stats.operation, "alltoallv_init") == 0, "operation %s", stats.operation);
    CHECK(plan_stats(1, &stats, sizeof stats) == THALWEG_NOT_FOUND, "a second plan");
    /* Of a program made with a newer header, and of one that was never right. */
    enum { more = sizeof stats + 24 };
    unsigned char* const newer = guarded_new(more);
    CHECK(plan_stats(0, (thalweg_plan_stats*)newer, sizeof stats - 1) == THALWEG_ERR_ARGUMENT, "no room");
    CHECK(newer[0] == poison_value, "a refused structure was written");
    CHECK(plan_stats(0, (thalweg_plan_stats*)newer, more) == THALWEG_OK, "a newer structure is refused");
    for (size_t i = sizeof stats; i < more; ++i) CHECK(newer[i] == 0, "unknown byte %zu was left", i);
    guarded_free(newer, more);
    CHECK(plan_stats(0, NULL, sizeof stats) == THALWEG_ERR_ARGUMENT, "no room for figures");
    return check_end();
}
