/* A persistent alltoallv that THALWEG_ALLTOALLV names, of which a rank is killed between a start and its
 * completion, where the others wait for it: in the exchange, or in the epoch of a window. ended.py says what
 * must become of the job. */
#include "check.h"

typedef int AlltoallvInit(const void*, const int*, const int*, MPI_Datatype, void*, const int*, const int*,
                          MPI_Datatype, MPI_Comm, MPI_Info, MPI_Request*);

enum { most_ranks = 8, block = 200000, rounds = 1000, dies_at = 10 };

int main(int argc, char** argv) {
    check_start(&argc, &argv, wanted_level());
    AlltoallvInit* alltoallv_init;
    *(void**)&alltoallv_init = find_or_skip("MPI_Alltoallv_init");
    int counts[most_ranks], places[most_ranks];
    unsigned char* const from = guarded_new((size_t)check_size * block);
    unsigned char* const to = guarded_new((size_t)check_size * block);
    for (int peer = 0; peer < check_size; ++peer) counts[peer] = block, places[peer] = peer * block;
    MPI_Request plan;
    alltoallv_init(from, counts, places, MPI_BYTE, to, counts, places, MPI_BYTE, MPI_COMM_WORLD,
                   MPI_INFO_NULL, &plan);
    CHECK(was_accelerated(), "a plan: %s", last_reason());
    for (int round = 0; round < rounds; ++round) {
        for (int peer = 0; peer < check_size; ++peer)
            fill(from + places[peer], block, (unsigned)(64 * round + check_rank));
        MPI_Start(&plan);
        if (round == dies_at && check_rank == check_size - 1) die();
        MPI_Wait(&plan, MPI_STATUS_IGNORE);
        /* What the dead one's last blocks are is nobody's business. */
        for (int peer = 0; peer < check_size && round < dies_at; ++peer)
            verify(to + places[peer], block, (unsigned)(64 * round + peer), "a start");
    }
    FAIL("%d starts without the dead rank", (int)rounds);
}
