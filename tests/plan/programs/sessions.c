/* A session first, the world later, and one rank enters the world late. The barrier after which the
 * launcher's store holds everybody's word is over by then: a rank that left its word only in MPI_Init would
 * be missed by those that came before it, and not by those after.
 *
 * A barrier that is wrapped here, as by a tool in front of Thalweg, arrives there after the session's, too.
 */
#include <unistd.h>

#include "check.h"

#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
int MPI_Barrier(MPI_Comm comm) {
    int (*next)(MPI_Comm);
    *(void**)&next = dlsym(RTLD_NEXT, "MPI_Barrier");
    return next(comm);
}

int main(int argc, char** argv) {
    enum { bytes = 100000 };
    MPI_Session session;
    MPI_Group group;
    MPI_Comm comm;
    int rank = 0;
    const int late = argc > 1 ? atoi(argv[1]) : 0;
    if (MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session) != MPI_SUCCESS) return 77;
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, "plan-test", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm);
    MPI_Group_free(&group);
    MPI_Barrier(comm);
    MPI_Comm_rank(comm, &rank);
    if (rank == late) usleep(300000);
    check_start(&argc, &argv, MPI_THREAD_SINGLE);
    unsigned char* const data = guarded_new(bytes);
    for (int root = 0; root < check_size; ++root) {
        if (check_rank == root) fill(data, bytes, (unsigned)root);
        MPI_Bcast(data, bytes, MPI_BYTE, root, MPI_COMM_WORLD);
        verify(data, bytes, (unsigned)root, "the world after a session");
        if (expect_thalweg() && check_size > 1) CHECK(was_accelerated(), "native: %s", last_reason());
        if (check_rank == root) fill(data, bytes, 100 + (unsigned)root);
        MPI_Bcast(data, bytes, MPI_BYTE, root, comm);
        verify(data, bytes, 100 + (unsigned)root, "the session's communicator");
        if (expect_thalweg() && check_size > 1)
            CHECK(!was_accelerated(), "a communicator that was there before MPI_Init is ours");
    }
    guarded_free(data, bytes);
    MPI_Comm_free(&comm);
    MPI_Session_finalize(&session);
    return check_end();
}
#else
int main(void) {
    printf("skipped: this MPI has no sessions\n");
    return 77;
}
#endif
