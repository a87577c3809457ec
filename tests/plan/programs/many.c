/* More communicators at a time than there are channels, of all kinds of groups: those that get none are left
 * to the native library, by all their ranks alike, and nothing is created for them; two threads that set
 * communicators up at the same time, so that they reach for the same channel. */
#include <pthread.h>

#include "check.h"

enum { communicators = 80, channels = 64, bytes = 20000 };

/* 1: it had a channel; 0: the native library had it, and says so. */
static int use(MPI_Comm comm, unsigned seed) {
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    unsigned char* const data = guarded_new(bytes);
    const int root = (int)(seed % (unsigned)size);
    if (rank == root) fill(data, bytes, seed);
    MPI_Bcast(data, bytes, MPI_BYTE, root, comm);
    verify(data, bytes, seed, "one of many");
    guarded_free(data, bytes);
    if (!expect_thalweg() || size == 1) return 0;
    const int ours = was_accelerated();
    int all[2], mine[2] = {ours, -ours};
    CHECK(ours || strstr(last_reason(), "channels are in use"), "native: %s", last_reason());
    MPI_Allreduce(mine, all, 2, MPI_INT, MPI_MAX, comm);
    CHECK(all[0] == ours && all[1] == -ours, "some ranks have a channel and some have none");
    return ours;
}

/* Holds them all; then frees every second one and makes it anew, so that channels change hands. */
static void held(void) {
    MPI_Comm comms[communicators];
    int served = 0;
    for (int i = 0; i < communicators; ++i) {
        const int color = i % 4 == 3 && check_rank == i % check_size; /* now and then all but one */
        MPI_Comm_split(MPI_COMM_WORLD, color, i % 2 ? check_rank : -check_rank, &comms[i]);
        const int ours = use(comms[i], (unsigned)i);
        int size;
        MPI_Comm_size(comms[i], &size);
        if (expect_thalweg() && size > 1 && i < channels) CHECK(ours, "communicator %d has no channel", i);
        served += ours;
    }
    if (expect_thalweg()) CHECK(served <= channels, "%d channels at a time", served);
    for (int i = 0; i < communicators; i += 2) {
        MPI_Comm_free(&comms[i]);
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
        /* On all ranks the one that was freed had a channel, or there is none left. */
        const int ours = use(comms[i], (unsigned)(1000 + i));
        if (expect_thalweg() && i < channels) CHECK(ours, "nothing was given back for communicator %d", i);
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
    held(); /* all were given back */
    return check_end();
}
