/* A program with an mpi_bcast_ of its own, as tools for Fortran alone have one, which rank 0 answers by the
 * library's pmpi_bcast_ and the others pass on. Under Open MPI nobody hears of rank 0's: then every call is
 * the library's on all ranks.
 */
#include "check.h"

#if defined(MPI_ABI_VERSION)
int main(void) { SKIP("its header knows no Fortran"); }
#else
#include "fortran.h"

enum { bytes = 20000, rounds = 4 };
static int broadcasts;

void mpi_bcast_(void* data, MPI_Fint* count, MPI_Fint* type, MPI_Fint* root, MPI_Fint* comm,
                MPI_Fint* error) {
    void (*next)(void*, MPI_Fint*, MPI_Fint*, MPI_Fint*, MPI_Fint*, MPI_Fint*);
    *(void**)&next = check_rank == 0 ? fortran("mpi_bcast", 1) : dlsym(RTLD_NEXT, "mpi_bcast_");
    ++broadcasts;
    next(data, count, type, root, comm, error);
}

int main(int argc, char** argv) {
    start_in_front(&argc, &argv);
    unsigned char* const data = guarded_new(bytes);
    MPI_Fint count = bytes, type = MPI_Type_c2f(MPI_BYTE), root = 0, comm = MPI_Comm_c2f(MPI_COMM_WORLD);
    void (*broadcast)(void*, MPI_Fint*, MPI_Fint*, MPI_Fint*, MPI_Fint*, MPI_Fint*);
    *(void**)&broadcast = fortran("mpi_bcast", 0);
    for (unsigned round = 0; round < rounds; ++round) {
        MPI_Fint error = -1;
        if (check_rank == 0) fill(data, bytes, round);
        broadcast(data, &count, &type, &root, &comm, &error);
        CHECK(error == MPI_SUCCESS, "a broadcast returned %d", (int)error);
        if (is_open_mpi()) CHECK(!was_accelerated(), "taken, though nobody hears of rank 0's");
        verify(data, bytes, round, "a broadcast that rank 0 hands to the library");
        MPI_Barrier(MPI_COMM_WORLD);
    }
    CHECK(broadcasts == rounds, "%d broadcasts came by", broadcasts);
    guarded_free(data, bytes);
    return check_end();
}
#endif
