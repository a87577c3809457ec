/* A program of sessions alone, twice in one process where the library bears it: MPI_COMM_WORLD does not
 * exist, and every collective is right. */
#include "check.h"

#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
#if defined(OMPI_MAJOR_VERSION) || (defined(MPICH_NUMVERSION) && MPICH_NUMVERSION < 40100000)
enum { epochs = 1 }; /* Open MPI 5.0.11 and MPICH 4.0.2 crash in the second MPI_Session_init of a process */
#else
enum { epochs = 2 };
#endif
enum { bytes = 100000 };

static void collectives(MPI_Comm comm, unsigned seed) {
    unsigned char* const data = guarded_new(bytes);
    unsigned char* const all = guarded_new((size_t)bytes * (size_t)check_size);
    for (int round = 0; round < 5; ++round, seed += 50) {
        const int root = round % check_size;
        memset(data, poison_value, bytes);
        if (check_rank == root) fill(data, bytes, seed);
        MPI_Bcast(data, bytes, MPI_BYTE, root, comm);
        verify(data, bytes, seed, "a broadcast");
        MPI_Request request;
        memset(all, poison_value, (size_t)bytes * (size_t)check_size);
        fill(data, bytes, seed + 1 + (unsigned)check_rank);
        MPI_Iallgather(data, bytes, MPI_BYTE, all, bytes, MPI_BYTE, comm, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (int rank = 0; rank < check_size; ++rank)
            verify(all + (size_t)rank * bytes, bytes, seed + 1 + (unsigned)rank, "an allgather");
        int sum = 0;
        MPI_Allreduce(&check_rank, &sum, 1, MPI_INT, MPI_SUM, comm);
        CHECK(sum == check_size * (check_size - 1) / 2, "a sum is wrong: byte 0");
    }
    guarded_free(data, bytes);
    guarded_free(all, (size_t)bytes * (size_t)check_size);
}

int main(void) {
    /* Intel MPI 2021.18 has left its launcher by the second MPI_Session_init. */
    const int most = is_intel_mpi() ? 1 : epochs;
    for (int epoch = 0; epoch < most; ++epoch) {
        MPI_Session session;
        MPI_Group group;
        MPI_Comm comm, twin;
        if (MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session) != MPI_SUCCESS) return 77;
        MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
        if (MPI_Comm_create_from_group(group, "session-only", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm) !=
            MPI_SUCCESS) {
            printf("skipped: no communicator from a session here\n");
            return 77;
        }
        MPI_Group_free(&group);
        MPI_Comm_rank(comm, &check_rank);
        MPI_Comm_size(comm, &check_size);
        collectives(comm, 1000u * (unsigned)epoch);
        MPI_Comm_dup(comm, &twin);
        collectives(twin, 1000u * (unsigned)epoch + 500);
        MPI_Comm_free(&twin);
        MPI_Comm_free(&comm);
        int initialized = -1;
        MPI_Initialized(&initialized);
        /* Intel MPI 2021.18 says so of its own accord. */
        CHECK(!initialized || is_intel_mpi(), "the world was initialized by somebody");
        MPI_Session_finalize(&session);
    }
    if (check_rank == 0) printf("ok: %lu checks on %d ranks\n", check_count, check_size);
    return 0;
}
#else
int main(void) {
    printf("skipped: this MPI has no sessions\n");
    return 77;
}
#endif
