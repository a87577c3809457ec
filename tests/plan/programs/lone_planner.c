/* A job of which only some ranks have loaded the object that takes persistent exchanges (mixed_planners.py):
 * they are the library's on all ranks, with a table that would take them. Or that for large counts: then all
 * calls are.
 *
 *     lone_planner [large]
 */
#include "check.h"

enum { bytes = 20000, most_ranks = 8 };

typedef int Init(const void*, const int*, const int*, MPI_Datatype, void*, const int*, const int*,
                 MPI_Datatype, MPI_Comm, MPI_Info, MPI_Request*);

typedef int BcastC(void*, MPI_Count, MPI_Datatype, int, MPI_Comm);

static int broadcast(void) {
    BcastC* const bcast_c = (BcastC*)find_or_skip("MPI_Bcast_c");
    unsigned char* const data = guarded_new(bytes);
    for (unsigned round = 0; round < 20; ++round) {
        const int root = (int)round % check_size;
        if (check_rank == root) fill(data, bytes, round);
        bcast_c(data, bytes, MPI_BYTE, root, MPI_COMM_WORLD);
        CHECK(!was_accelerated(), "a broadcast that another rank does not know of was taken");
        verify(data, bytes, round, "a broadcast of the library's");
    }
    guarded_free(data, bytes);
    return check_end();
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, MPI_THREAD_SINGLE);
    if (argc > 1 && strcmp(argv[1], "large") == 0) return broadcast();
    Init* const init = (Init*)find_or_skip("MPI_Alltoallv_init");
    CHECK(check_size <= most_ranks, "%d ranks", check_size);
    unsigned char* const from = guarded_new(most_ranks * bytes);
    unsigned char* const to = guarded_new(most_ranks * bytes);
    int counts[most_ranks], places[most_ranks];
    for (int i = 0; i < check_size; ++i) {
        counts[i] = bytes;
        places[i] = i * bytes;
        fill(from + places[i], bytes, (unsigned)(10 * check_rank + i));
    }
    MPI_Request request;
    init(from, counts, places, MPI_BYTE, to, counts, places, MPI_BYTE, MPI_COMM_WORLD, MPI_INFO_NULL,
         &request);
    CHECK(!was_accelerated(), "a plan that another rank does not know of was taken");
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < check_size; ++i)
        verify(to + places[i], bytes, (unsigned)(10 * i + check_rank), "a plan of the library's");
    MPI_Request_free(&request);
    guarded_free(from, most_ranks * bytes);
    guarded_free(to, most_ranks * bytes);
    return check_end();
}
