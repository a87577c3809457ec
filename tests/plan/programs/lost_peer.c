/* A rank is killed; the launcher and MPI are told to go on. The survivor's broadcast ends with the error
 * class that MPI has for it, and not with a hang. Run under `mpiexec --with-ft ulfm`. */
#include <unistd.h>

#include "check.h"

#ifdef MPI_ERR_PROC_FAILED
int main(int argc, char** argv) {
    enum { bytes = 200000, dies_at = 20, calls = 10000 };
    check_start(&argc, &argv, MPI_THREAD_SINGLE);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    unsigned char* const data = calloc(1, bytes);
    for (int i = 0; i < calls; ++i) {
        int class = MPI_SUCCESS;
        if (i == dies_at && check_rank == 1) die();
        const int error = MPI_Bcast(data, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
        if (expect_thalweg()) CHECK(was_accelerated(), "call %d was native: %s", i, last_reason());
        if (error == MPI_SUCCESS) {
            usleep(10000); /* the news of a death takes a while */
            continue;
        }
        MPI_Error_class(error, &class);
        CHECK(i >= dies_at && class == MPI_ERR_PROC_FAILED, "call %d: error class %d", i, class);
        printf("the peer was lost at call %d\n", i);
        fflush(stdout);
        _exit(0); /* MPI_Finalize would wait for the dead */
    }
    FAIL("no error in %d calls after a rank died", calls - dies_at);
}
#else
int main(void) {
    printf("skipped: this MPI has no fault tolerance\n");
    return 77;
}
#endif
