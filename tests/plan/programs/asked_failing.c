/* A thread asks after an exchange that fails, until it is complete: each rank sends itself a byte more than
 * it has room for. Another one comes to MPI_Waitall while the first one, in MPI_Request_get_status, puts the
 * data in its place, which takes a while: it is told of the failure all the same. Its other request is a
 * receive of what the first thread sends when it has asked for the last time. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "check.h"

enum { most_ranks = 8, own = 16 << 20, other = 10, rounds = 8, asked_tag = 5 };

static MPI_Comm comm;
static MPI_Request requests[2];
/* Calls that the other thread has begun in this round. */
static _Atomic unsigned long asked;

static void nap(long ns) { nanosleep(&(struct timespec){0, ns}, NULL); }

static void* ask(void* unused) {
    (void)unused;
    for (int flag = 0; !flag; sched_yield()) {
        atomic_fetch_add(&asked, 1);
        const int code = MPI_Request_get_status(requests[0], &flag, MPI_STATUS_IGNORE);
        CHECK(code == MPI_SUCCESS, "who asks: class %d", class_of(code));
    }
    MPI_Send(NULL, 0, MPI_BYTE, check_rank, asked_tag, MPI_COMM_WORLD);
    return NULL;
}

static unsigned char *from, *to;
static int sent[most_ranks], received[most_ranks], from_places[most_ranks], to_places[most_ranks];
static MPI_Datatype spread; /* every second byte, so that what comes has to be put in its place */

static void start(void) {
    MPI_Ialltoallv(from, sent, from_places, MPI_BYTE, to, received, to_places, spread, comm, &requests[0]);
}

static void fail(int round) {
    for (int peer = 0; peer < check_size; ++peer)
        fill(from + from_places[peer], (size_t)sent[peer], (unsigned)(round * 4096 + check_rank * 64 + peer));
    memset(to, poison_value, 2 * ((size_t)own + (size_t)check_size * other));
    MPI_Irecv(NULL, 0, MPI_BYTE, check_rank, asked_tag, MPI_COMM_WORLD, &requests[1]);
    start();
    CHECK(was_accelerated(), "an exchange: %s", last_reason());
    pthread_t thread;
    atomic_store(&asked, 0);
    CHECK(pthread_create(&thread, NULL, ask, NULL) == 0, "no thread");
    /* It has been in one call for some time. */
    for (unsigned long seen = 0; seen == 0 || seen != atomic_load(&asked); nap(1000000))
        seen = atomic_load(&asked);
    MPI_Status statuses[2];
    const int code = MPI_Waitall(2, requests, statuses);
    CHECK(code == MPI_ERR_IN_STATUS, "round %d: who waits is told of class %d", round, class_of(code));
    CHECK(class_of(statuses[0].MPI_ERROR) == MPI_ERR_TRUNCATE, "round %d: the exchange: class %d", round,
          class_of(statuses[0].MPI_ERROR));
    CHECK(statuses[1].MPI_ERROR == MPI_SUCCESS, "round %d: the receive: class %d", round,
          class_of(statuses[1].MPI_ERROR));
    pthread_join(thread, NULL);
    for (int peer = 0; peer < check_size; ++peer) {
        unsigned char* const block = to + 2 * (size_t)to_places[peer];
        for (int i = 0; i < received[peer]; ++i) block[i] = block[2 * (size_t)i];
        verify(block, (size_t)received[peer], (unsigned)(round * 4096 + peer * 64 + check_rank),
               "an exchange that was asked after");
    }
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, MPI_THREAD_MULTIPLE);
    CHECK(check_size > 1 && check_size <= most_ranks, "asked_failing on 2 to %d ranks", most_ranks);
    /* Libraries judge this differently. */
    if (!expect_thalweg()) return check_end();
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Type_create_resized(MPI_BYTE, 0, 2, &spread);
    MPI_Type_commit(&spread);
    int from_total = 0, to_total = 0;
    for (int peer = 0; peer < check_size; ++peer) {
        received[peer] = peer == check_rank ? own : other;
        sent[peer] = received[peer] + (peer == check_rank);
        from_places[peer] = from_total, to_places[peer] = to_total;
        from_total += sent[peer], to_total += received[peer];
    }
    from = malloc((size_t)from_total);
    to = malloc(2 * ((size_t)own + (size_t)check_size * other));
    CHECK(from != NULL && to != NULL, "no memory");
    sent[check_rank] -= 1;
    memset(from, 0, (size_t)from_total);
    start(); /* asks for the set-up */
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Barrier(comm);
    sent[check_rank] += 1;
    for (int round = 0; round < rounds; ++round) fail(round);
    free(from);
    free(to);
    MPI_Type_free(&spread);
    MPI_Comm_free(&comm);
    return check_end();
}
