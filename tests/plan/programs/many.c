/* More communicators at a time than there are channels on one private communicator, of all kinds of groups;
 * two threads that set communicators up at the same time, so that they reach for the same channel. */
#include <pthread.h>

#include "check.h"

enum { communicators = 80, bytes = 20000 };

static void use(MPI_Comm comm, unsigned seed) {
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    unsigned char* const data = guarded_new(bytes);
    const int root = (int)(seed % (unsigned)size);
    if (rank == root) fill(data, bytes, seed);
    MPI_Bcast(data, bytes, MPI_BYTE, root, comm);
    verify(data, bytes, seed, "one of many");
    if (expect_thalweg() && size > 1) CHECK(was_accelerated(), "native: %s", last_reason());
    guarded_free(data, bytes);
}

/* Holds them all; then frees every second one and makes it anew, so that channels change hands. */
static void held(void) {
    MPI_Comm comms[communicators];
    for (int i = 0; i < communicators; ++i) {
        const int color = i % 4 == 3 && check_rank == i % check_size; /* now and then all but one */
        MPI_Comm_split(MPI_COMM_WORLD, color, i % 2 ? check_rank : -check_rank, &comms[i]);
        use(comms[i], (unsigned)i);
    }
    for (int i = 0; i < communicators; i += 2) {
        MPI_Comm_free(&comms[i]);
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
        use(comms[i], (unsigned)(1000 + i));
        use(comms[i + 1], (unsigned)(2000 + i));
    }
    for (int i = 0; i < communicators; ++i) use(comms[i], (unsigned)(3000 + i));
    for (int i = 0; i < communicators; ++i) MPI_Comm_free(&comms[i]);
}

enum { rounds = 60 };
static MPI_Comm twins[2][rounds];

static void* set_up(void* argument) {
    MPI_Comm* const mine = argument;
    for (int i = 0; i < rounds; ++i) {
        use(mine[i], (unsigned)i);
        use(mine[i], (unsigned)(i + 500));
    }
    return NULL;
}

static void at_once(void) {
    for (int i = 0; i < rounds; ++i) {
        MPI_Comm_dup(MPI_COMM_WORLD, &twins[0][i]);
        MPI_Comm_dup(MPI_COMM_WORLD, &twins[1][i]);
    }
    pthread_t other;
    pthread_create(&other, NULL, set_up, twins[1]);
    set_up(twins[0]);
    pthread_join(other, NULL);
    for (int i = 0; i < rounds; ++i) {
        MPI_Comm_free(&twins[0][i]);
        MPI_Comm_free(&twins[1][i]);
    }
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, MPI_THREAD_MULTIPLE);
    held();
    at_once();
    return check_end();
}
