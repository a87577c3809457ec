/* A thread asks what has become of requests that another one waits for. MPI_Request_get_status completes
 * nothing, so it may, as long as the one that waits cannot be through: one more of its requests, its first or
 * its last, is complete only when the other thread has asked for the last time. By turns a rank is the root
 * of that one, and starts it when all have. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "check.h"

enum { in_flight = 6, bytes = 20000, rounds = 600, asked_tag = 5 };

static unsigned char data[in_flight + 1][bytes];
static MPI_Request requests[in_flight + 1];
/* Rounds that have been started. */
static _Atomic int begun;

/* The last one is in front in every other round. */
static int place_of(int i, int round) { return (i + round % 2) % (in_flight + 1); }
static int gate_root(int round) { return round % check_size; }

static void* ask(void* unused) {
    (void)unused;
    for (int round = 1; round <= rounds; ++round) {
        while (atomic_load(&begun) < round) sched_yield();
        for (int done = 0; done < in_flight; sched_yield()) {
            done = 0;
            for (int i = 0; i < in_flight; ++i) {
                int flag = 0;
                MPI_Request_get_status(requests[place_of(i, round)], &flag, MPI_STATUS_IGNORE);
                done += flag != 0;
            }
        }
        MPI_Send(NULL, 0, MPI_BYTE, gate_root(round), asked_tag, MPI_COMM_WORLD);
    }
    return NULL;
}

static void start(int i, int root, int round) {
    memset(data[i], poison_value, bytes);
    if (check_rank == root) fill(data[i], bytes, (unsigned)(round * (in_flight + 1) + i));
    MPI_Ibcast(data[i], bytes, MPI_BYTE, root, MPI_COMM_WORLD, &requests[place_of(i, round)]);
    if (expect_thalweg()) CHECK(was_accelerated(), "a broadcast: %s", last_reason());
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, MPI_THREAD_MULTIPLE);
    CHECK(check_size > 1, "asked_while_waiting on 2 ranks or more");
    MPI_Request first;
    MPI_Ibcast(data[0], 1, MPI_BYTE, 0, MPI_COMM_WORLD, &first); /* asks for the set-up */
    MPI_Wait(&first, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    pthread_t other;
    CHECK(pthread_create(&other, NULL, ask, NULL) == 0, "no thread");
    for (int round = 1; round <= rounds; ++round) {
        const int root = gate_root(round);
        for (int i = 0; i < in_flight; ++i) start(i, i % check_size, round);
        if (check_rank != root) start(in_flight, root, round);
        atomic_store(&begun, round);
        if (check_rank == root) {
            for (int rank = 0; rank < check_size; ++rank)
                MPI_Recv(NULL, 0, MPI_BYTE, rank, asked_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            start(in_flight, root, round);
        }
        MPI_Waitall(in_flight + 1, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i <= in_flight; ++i)
            verify(data[i], bytes, (unsigned)(round * (in_flight + 1) + i),
                   "a broadcast that was asked after");
    }
    pthread_join(other, NULL);
    return check_end();
}
