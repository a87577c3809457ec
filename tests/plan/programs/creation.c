/* While a thread of one rank waits inside the creation of a communicator, the others come to it only after a
 * broadcast with that rank, on an older or on a younger communicator, that is the one to set it up: what we
 * do there must not wait for that creation. Every MPI completes this alone. */
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "check.h"

enum { bytes = 60000, patience_s = 200 };

static MPI_Comm parent, made;
static volatile int inside;

static void* create(void* ignored) {
    (void)ignored;
    inside = 1;
    MPI_Comm_dup(parent, &made);
    return NULL;
}

static void broadcast(MPI_Comm comm, int root, unsigned seed) {
    int rank;
    MPI_Comm_rank(comm, &rank);
    unsigned char* const data = guarded_new(bytes);
    if (rank == root) fill(data, bytes, seed);
    MPI_Bcast(data, bytes, MPI_BYTE, root, comm);
    verify(data, bytes, seed, "a broadcast beside a creation");
    if (expect_thalweg()) CHECK(was_accelerated(), "native: %s", last_reason());
    guarded_free(data, bytes);
}

/* `early` enters the creation from `from` first; `comm` has not been used before. */
static void beside(MPI_Comm from, MPI_Comm comm, int early, unsigned seed) {
    parent = from;
    inside = 0;
    pthread_t other;
    if (check_rank == early) {
        pthread_create(&other, NULL, create, NULL);
        while (!inside) usleep(1000);
        usleep(200000); /* deep inside by now */
    }
    for (int i = 0; i < 3; ++i) broadcast(comm, i % check_size, seed + (unsigned)i);
    if (check_rank == early)
        pthread_join(other, NULL);
    else
        create(NULL);
    broadcast(made, early, seed + 50);
    MPI_Comm_free(&made);
}

static void out_of_patience(int signal) {
    (void)signal;
    static const char text[] = "hung: a broadcast waits for a communicator that another thread creates\n";
    if (write(2, text, sizeof text - 1) < 0) _exit(2);
    _exit(1);
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, MPI_THREAD_MULTIPLE);
    signal(SIGALRM, out_of_patience);
    alarm(patience_s);
    MPI_Comm older, younger[4];
    MPI_Comm_dup(MPI_COMM_WORLD, &older);
    for (int i = 0; i < 4; ++i)
        MPI_Comm_split(MPI_COMM_WORLD, 0, i % 2 ? check_rank : -check_rank, &younger[i]);
    beside(MPI_COMM_WORLD, younger[0], 0, 100);
    beside(MPI_COMM_WORLD, younger[1], check_size - 1, 200);
    beside(older, younger[2], 0, 300);
    beside(younger[0], younger[3], check_size - 1, 400);
    beside(younger[1], older, 0, 500);
    for (int i = 0; i < 4; ++i) MPI_Comm_free(&younger[i]);
    MPI_Comm_free(&older);
    return check_end();
}
