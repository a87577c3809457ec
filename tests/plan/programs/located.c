/* Where the ranks of the world are in it, and those of a duplicate that shares its group, nobody looks for:
 * libraries that look for each rank among all take time that grows with the square of their number. Those of
 * other communicators are looked for, and found. Preloaded behind Thalweg is faults.c, which counts. */
#include "check.h"

enum { bytes = 100000 };

static int (*translations)(void);

/* One that sets the communicator up; how often Thalweg looked for ranks meanwhile. */
static int broadcast(MPI_Comm comm, unsigned seed) {
    int rank = -1;
    MPI_Comm_rank(comm, &rank);
    unsigned char* const data = guarded_new(bytes);
    if (rank == 0) fill(data, bytes, seed);
    const int before = translations();
    MPI_Bcast(data, bytes, MPI_BYTE, 0, comm);
    const int after = translations();
    CHECK(was_accelerated(), "a broadcast is native: %s", last_reason());
    verify(data, bytes, seed, "a broadcast");
    guarded_free(data, bytes);
    return after - before;
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, MPI_THREAD_SINGLE);
    *(void**)&translations = dlsym(RTLD_DEFAULT, "thalweg_test_translations");
    CHECK(translations != NULL, "faults.c is not preloaded");
    const int of_world = broadcast(MPI_COMM_WORLD, 1);
    CHECK(of_world == 0, "%d times ranks of the world are looked for in it", of_world);
    MPI_Comm turned, twin;
    MPI_Comm_split(MPI_COMM_WORLD, 0, -check_rank, &turned);
    const int of_turned = broadcast(turned, 2);
    CHECK(of_turned > 0, "nobody looks for ranks in another order: the counter sees nothing");
    MPI_Comm_free(&turned);
    MPI_Comm_dup(MPI_COMM_WORLD, &twin);
    const int of_twin = broadcast(twin, 3);
    if (is_open_mpi()) CHECK(of_twin == 0, "%d times ranks of a duplicate are looked for", of_twin);
    MPI_Comm_free(&twin);
    return check_end();
}
