/* Two communicators that set themselves up at the same time, in allgathers of two threads, pick the same of
 * the two channels that are left: the one that comes later takes the other, and its allgather goes on.
 *
 * Its ranks pick by what was in use when they came: ranks 0 and 1 come before they set the other communicator
 * up, of which rank 2 knows nothing, and rank 2 comes when that has been done. Of two free channels both pick
 * the same one in half of the rounds. */
#include <pthread.h>
#include <unistd.h>

#include "check.h"

enum { ranks = 3, bytes = 3000, most = 70, left = 2, rounds = 16, head_start_us = 50000 };

static void gather(MPI_Comm comm, unsigned seed) {
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    unsigned char* const own = guarded_new(bytes);
    unsigned char* const all = guarded_new(ranks * bytes);
    fill(own, bytes, seed + (unsigned)rank);
    MPI_Allgather(own, bytes, MPI_BYTE, all, bytes, MPI_BYTE, comm);
    for (int i = 0; i < size; ++i) verify(all + i * bytes, bytes, seed + (unsigned)i, "an allgather");
    guarded_free(own, bytes);
    guarded_free(all, ranks * bytes);
}

static void* gather_in_thread(void* comm) {
    gather(*(MPI_Comm*)comm, 100);
    return NULL;
}

/* Some algorithm that an odd number of ranks cannot use: where they are is found out, and nothing is opened.
 */
static void find_places(MPI_Comm comm) {
    set_option("THALWEG_ALLGATHER", "neighbour_exchange");
    gather(comm, 50);
    CHECK(!was_accelerated(), "an odd number of ranks exchanges in pairs");
    set_option("THALWEG_ALLGATHER", "ring");
}

static void set_up_both(void) {
    MPI_Comm all, some;
    MPI_Comm_dup(MPI_COMM_WORLD, &all);
    MPI_Comm_split(MPI_COMM_WORLD, check_rank < ranks - 1 ? 0 : MPI_UNDEFINED, 0, &some);
    find_places(all);
    if (check_rank < ranks - 1) {
        pthread_t other;
        pthread_create(&other, NULL, gather_in_thread, &all);
        usleep(head_start_us); /* waits for rank 2 by now */
        gather(some, 200);
        if (check_rank == 0) MPI_Send(NULL, 0, MPI_BYTE, ranks - 1, 7, MPI_COMM_WORLD);
        pthread_join(other, NULL);
        if (expect_thalweg()) {
            gather(some, 300);
            CHECK(was_accelerated(), "the first has no channel: %s", last_reason());
        }
        MPI_Comm_free(&some);
    } else {
        MPI_Recv(NULL, 0, MPI_BYTE, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        gather(all, 100);
    }
    gather(all, 400);
    if (expect_thalweg()) CHECK(was_accelerated(), "the other has no channel: %s", last_reason());
    MPI_Comm_free(&all);
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, MPI_THREAD_MULTIPLE);
    CHECK(check_size == ranks, "%d ranks", ranks);
    MPI_Comm held[most];
    int count = 0;
    while (count < most) {
        MPI_Comm_dup(MPI_COMM_WORLD, &held[count++]);
        gather(held[count - 1], (unsigned)count);
        if (!was_accelerated()) break;
    }
    /* The last one has none. */
    for (int i = 0; i <= left && count > 0; ++i) MPI_Comm_free(&held[--count]);
    for (int round = 0; round < rounds; ++round) set_up_both();
    while (count > 0) MPI_Comm_free(&held[--count]);
    return check_end();
}
