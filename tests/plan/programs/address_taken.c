/* A program that takes the address of a function of the Fortran library's, as one that passes MPI_Barrier to
 * a procedure does. Where it is not position-independent that address is one of its own, under the function's
 * name: it is no function of the program's, and every call is ours as before.
 *
 *     address_taken [fronted]      fronted: a tool in front has one that is the library's; so is every call
 */
#include "check.h"

#if !defined(LINKS_FORTRAN)
int main(void) {
    printf("skipped: this MPI has no Fortran library that C programs here can be linked with\n");
    return 77;
}
#else
enum { bytes = 20000, rounds = 3 };

void mpi_barrier_(MPI_Fint* comm, MPI_Fint* error);
static void (*volatile barrier)(MPI_Fint*, MPI_Fint*);

int main(int argc, char** argv) {
    check_start(&argc, &argv, MPI_THREAD_MULTIPLE);
    barrier = mpi_barrier_;
    Dl_info of_barrier, of_main;
    CHECK(dladdr(dlsym(RTLD_DEFAULT, "mpi_barrier_"), &of_barrier) != 0 && dladdr((void*)main, &of_main) != 0,
          "nobody has mpi_barrier_");
    const int taken = argc < 2;
    if (of_barrier.dli_fbase != of_main.dli_fbase) SKIP("this linker has no symbol for it in the program");
    unsigned char* const data = guarded_new(bytes);
    for (unsigned round = 0; round < rounds; ++round) {
        MPI_Fint comm = MPI_Comm_c2f(MPI_COMM_WORLD), error = -1;
        MPI_Request request;
        if (check_rank == 0) fill(data, bytes, round);
        MPI_Bcast(data, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
        CHECK(was_accelerated() == taken, "a broadcast was %s: %s", taken ? "native" : "taken",
              last_reason());
        verify(data, bytes, round, "a broadcast");
        barrier(&comm, &error);
        CHECK(error == MPI_SUCCESS, "a barrier returned %d", (int)error);
        if (check_rank == 0) fill(data, bytes, round + rounds);
        MPI_Ibcast(data, bytes, MPI_BYTE, 0, MPI_COMM_WORLD, &request);
        if (round > 0)
            CHECK(was_accelerated() == taken, "a nonblocking broadcast was %s: %s",
                  taken ? "native" : "taken", last_reason());
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        verify(data, bytes, round + rounds, "a nonblocking broadcast");
        MPI_Barrier(MPI_COMM_WORLD); /* sets up */
    }
    guarded_free(data, bytes);
    return check_end();
}
#endif
