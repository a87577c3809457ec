/* A plan that moves more than 2 GiB in one start, all of it from or to rank 0, with counts and displacements
 * that are ints: what adds them up is not. The other end is the second half of the ranks. Every byte is
 * checked, and what the ranks take of memory.
 *
 *     large_plans ALGORITHM [out]        out: not back as well
 */
#include "check.h"

typedef int AlltoallvInit(const void*, const int*, const int*, MPI_Datatype, void*, const int*, const int*,
                          MPI_Datatype, MPI_Comm, MPI_Info, MPI_Request*);

enum { most_ranks = 8, rounds = 2 };
static const size_t total = ((size_t)1 << 31) + (3 << 20) + 12345;

/* The second half; rank 0's blocks lie side by side. */
static int is_far(int rank) { return rank >= check_size / 2; }
static size_t bytes_of(int rank) {
    const size_t ranks = (size_t)(check_size - check_size / 2);
    return is_far(rank) ? total / ranks + (size_t)rank * 4099 : 0;
}

static unsigned char* data;
static int counts[most_ranks], places[most_ranks], none[most_ranks];
static size_t own_bytes;

/* Each block in the memory of this rank, where it takes part in an exchange. */
static void each(int writes, unsigned seed) {
    for (int peer = 0; peer < check_size; ++peer) {
        if (counts[peer] == 0) continue;
        const unsigned its = seed + (unsigned)(check_rank == 0 ? peer : check_rank);
        if (writes)
            fill(data + places[peer], (size_t)counts[peer], its);
        else
            verify(data + places[peer], (size_t)counts[peer], its, "a block");
    }
}

static void exchange(AlltoallvInit* alltoallv_init, const char* algorithm, int back) {
    const int sends = (check_rank == 0) != back;
    unsigned char nothing[1] = {0};
    MPI_Request plan;
    if (sends)
        alltoallv_init(data, counts, places, MPI_BYTE, nothing, none, none, MPI_BYTE, MPI_COMM_WORLD,
                       MPI_INFO_NULL, &plan);
    else
        alltoallv_init(nothing, none, none, MPI_BYTE, data, counts, places, MPI_BYTE, MPI_COMM_WORLD,
                       MPI_INFO_NULL, &plan);
    CHECK(was_accelerated(), "a plan: %s", last_reason());
    thalweg_last_call call;
    CHECK(look_last_call(&call, sizeof call) == 0 && strstr(call.algorithm, algorithm) == call.algorithm,
          "not by %s", algorithm);
    for (int round = 0; round < rounds; ++round) {
        const unsigned seed = (unsigned)(1000 * back + 64 * round);
        if (sends)
            each(1, seed);
        else
            memset(data, poison_value, own_bytes);
        MPI_Start(&plan);
        MPI_Wait(&plan, MPI_STATUS_IGNORE);
        each(0, seed); /* what was sent is as it was */
    }
    MPI_Request_free(&plan);
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, wanted_level());
    AlltoallvInit* alltoallv_init;
    *(void**)&alltoallv_init = find_or_skip("MPI_Alltoallv_init");
    CHECK(argc > 1 && check_size > 2 && check_size <= most_ranks, "large_plans ALGORITHM on 3 ranks or more");
    for (int peer = 0; peer < check_size; ++peer) {
        if (check_rank != 0 && peer != 0) continue;
        const size_t bytes = bytes_of(check_rank == 0 ? peer : check_rank);
        counts[peer] = (int)bytes;
        places[peer] = (int)own_bytes;
        if (bytes != 0) CHECK((size_t)places[peer] == own_bytes, "a displacement that is no int");
        own_bytes += bytes;
    }
    if (check_rank == 0) CHECK(own_bytes > INT32_MAX, "only %zu bytes", own_bytes);
    data = guarded_new(own_bytes);
    exchange(alltoallv_init, argv[1], 0);
    if (argc < 3) exchange(alltoallv_init, argv[1], 1);
    guarded_free(data, own_bytes);
    long kib = status_kib("VmHWM: %ld"), all = 0;
    MPI_Allreduce(&kib, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    CHECK(all < 8l << 20, "the ranks had %ld KiB in memory", all);
    return check_end();
}
