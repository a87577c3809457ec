/* A program with an mpi_wait_ of its own, as tools for Fortran alone have one, which completes by the
 * library's pmpi_wait_. Under Open MPI that calls no function in C, and nobody would hear that a request of
 * ours is waited for: what does not block is the library's there.
 */
#include "check.h"

#if defined(MPI_ABI_VERSION)
int main(void) { SKIP("its header knows no Fortran"); }
#else
#include "fortran.h"

enum { bytes = 20000, rounds = 4 };
static int waits;

void mpi_wait_(MPI_Fint* request, MPI_Fint* status, MPI_Fint* error) {
    void (*native)(MPI_Fint*, MPI_Fint*, MPI_Fint*);
    *(void**)&native = fortran("mpi_wait", 1);
    ++waits;
    native(request, status, error);
}

static void wait_in_fortran(MPI_Request* request) {
    MPI_Fint handle = MPI_Request_c2f(*request), status[sizeof(MPI_Status) / sizeof(MPI_Fint)], error = -1;
    void (*wait)(MPI_Fint*, MPI_Fint*, MPI_Fint*);
    *(void**)&wait = fortran("mpi_wait", 0);
    wait(&handle, status, &error);
    CHECK(error == MPI_SUCCESS, "a wait returned %d", (int)error);
    *request = MPI_Request_f2c(handle);
    CHECK(*request == MPI_REQUEST_NULL, "a request is left");
}

int main(int argc, char** argv) {
    start_in_front(&argc, &argv);
    unsigned char* const data = guarded_new(bytes);
    for (unsigned round = 0; round < rounds; ++round) {
        MPI_Request request;
        if (check_rank == 0) fill(data, bytes, round);
        MPI_Ibcast(data, bytes, MPI_BYTE, 0, MPI_COMM_WORLD, &request);
        if (is_open_mpi()) CHECK(!was_accelerated(), "taken, though nobody hears of its wait");
        wait_in_fortran(&request);
        verify(data, bytes, round, "a broadcast that the program waits for in Fortran");
        MPI_Barrier(MPI_COMM_WORLD); /* sets up */
    }
    CHECK(waits == rounds, "%d waits came by", waits);
    guarded_free(data, bytes);
    return check_end();
}
#endif
