/* A program that asks after its broadcast by MPI_Request_get_status_any alone, until that is complete. Where
 * the object with that name is not loaded, nothing would complete one of ours: what does not block is the
 * library's.
 *
 *     questions [unseen]     unseen: it is not loaded
 */
#include "check.h"

enum { bytes = 20000, rounds = 5 };

/* By its name: who relies on it is found by that. */
#if !defined(OPEN_MPI) && (MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION > 0))
static const int is_here = 1;
static int is_complete(MPI_Request request) {
    int index, flag = 0;
    MPI_Request_get_status_any(1, &request, &index, &flag, MPI_STATUS_IGNORE);
    return flag;
}
#else
static const int is_here = 0;
static int is_complete(MPI_Request request) { return request != MPI_REQUEST_NULL; }
#endif

int main(int argc, char** argv) {
    const int unseen = argc > 1 && strcmp(argv[1], "unseen") == 0;
    alarm(100);
    check_start(&argc, &argv, MPI_THREAD_MULTIPLE);
    if (!is_here) SKIP("this MPI has no MPI_Request_get_status_any");
    unsigned char* const data = guarded_new(bytes);
    for (unsigned round = 0; round < rounds; ++round) {
        MPI_Request request;
        if (check_rank == 0) fill(data, bytes, round);
        MPI_Ibcast(data, bytes, MPI_BYTE, 0, MPI_COMM_WORLD, &request);
        /* The first one asks for the set-up. */
        if (expect_thalweg() && check_size > 1 && round > 0)
            CHECK(was_accelerated() != unseen, "a broadcast was %s: %s", unseen ? "taken" : "not taken",
                  last_reason());
        while (!is_complete(request)) continue;
        verify(data, bytes, round, "a broadcast that was asked after");
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    guarded_free(data, bytes);
    return check_end();
}
