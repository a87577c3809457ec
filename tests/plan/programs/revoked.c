/* A rank revokes the communicator on which another one waits for it in a broadcast: that ends with the class
 * that MPI has for it, and not with a hang. Run under `mpiexec --with-ft ulfm`. */
#include <unistd.h>

#include "check.h"

#ifdef MPI_ERR_REVOKED
#pragma weak MPIX_Comm_revoke
int MPIX_Comm_revoke(MPI_Comm);

int main(int argc, char** argv) {
    enum { bytes = 200000, calls = 20 };
    alarm(100);
    check_start(&argc, &argv, MPI_THREAD_SINGLE);
    if (MPIX_Comm_revoke == NULL) SKIP("this MPI revokes no communicators");
    MPI_Comm comm;
    MPI_Comm_split(MPI_COMM_WORLD, 0, check_rank, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    unsigned char* const data = guarded_new(bytes);
    for (unsigned i = 0; i < calls; ++i) {
        if (check_rank == 0) fill(data, bytes, i);
        MPI_Bcast(data, bytes, MPI_BYTE, 0, comm);
        CHECK(!was_accelerated(), "call %u is not the library's", i);
        verify(data, bytes, i, "a broadcast");
    }
    if (check_rank == 0) {
        usleep(100000); /* the others wait by then */
        MPIX_Comm_revoke(comm);
    } else {
        const int code = MPI_Bcast(data, bytes, MPI_BYTE, 0, comm);
        CHECK(class_of(code) == MPI_ERR_REVOKED, "who waited has heard of class %d", class_of(code));
    }
    guarded_free(data, bytes);
    return check_end();
}
#else
int main(void) {
    printf("skipped: this MPI has no fault tolerance\n");
    return 77;
}
#endif
