/* A thread asks after an exchange that fails, until it is complete: each rank sends itself a byte more than
 * it has room for. Another one comes to MPI_Waitall while the first one, in MPI_Request_get_status, puts the
 * data in its place, which takes a while: it is told of the failure all the same. Its other request is a
 * receive of what the first thread sends when it has asked for the last time. MPICH ends the job where it is
 * let wait, beside a request that is null, for one that is not quite complete (faults.c).
 *
 *     asked_failing [behind]
 *
 * `behind`: it comes to MPI_Testall while the exchange goes on, as another rank has not started it yet, and
 * is behind Thalweg, where a tool holds it up (gate.c), when the first thread asks for the first time.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "check.h"

enum { most_ranks = 8, own = 16 << 20, other = 10, rounds = 8, asked_tag = 5 };

static MPI_Comm comm;
/* The last one is null. */
static MPI_Request requests[3];
/* Calls that the other thread has begun in this round. */
static _Atomic unsigned long asked;

/* The first thread may ask, and has asked. */
static _Atomic int may_ask, has_asked = 1;
static int behind;

static void nap(long ns) { nanosleep(&(struct timespec){0, ns}, NULL); }

/* Called by the tool. */
void thalweg_test_gate(void) {
    atomic_store(&may_ask, 1);
    while (!atomic_load(&has_asked)) sched_yield();
}

static void send_to(int rank) { MPI_Send(NULL, 0, MPI_BYTE, rank, asked_tag, MPI_COMM_WORLD); }

static void* ask(void* unused) {
    (void)unused;
    while (!atomic_load(&may_ask)) sched_yield();
    for (int rank = 0; behind && rank < check_size; ++rank)
        if (rank != check_rank) send_to(rank);
    for (int flag = 0; !flag; sched_yield()) {
        atomic_fetch_add(&asked, 1);
        const int code = MPI_Request_get_status(requests[0], &flag, MPI_STATUS_IGNORE);
        CHECK(code == MPI_SUCCESS, "who asks: class %d", class_of(code));
    }
    send_to(check_rank);
    for (int flag = !behind; !flag;) MPI_Request_get_status(requests[1], &flag, MPI_STATUS_IGNORE);
    atomic_store(&has_asked, 1);
    return NULL;
}

static unsigned char *from, *to;
static int sent[most_ranks], received[most_ranks], from_places[most_ranks], to_places[most_ranks];
static MPI_Datatype spread; /* every second byte, so that what comes has to be put in its place */

static void start(void) {
    MPI_Ialltoallv(from, sent, from_places, MPI_BYTE, to, received, to_places, spread, comm, &requests[0]);
}

static void receive_from(int rank, MPI_Request* request) {
    MPI_Irecv(NULL, 0, MPI_BYTE, rank, asked_tag, MPI_COMM_WORLD, request);
}

/* Behind a call that has returned `code`. */
static void expect_failure(int code, const MPI_Status* statuses, int round) {
    CHECK(code == MPI_ERR_IN_STATUS, "round %d: who completes is told of class %d", round, class_of(code));
    CHECK(class_of(statuses[0].MPI_ERROR) == MPI_ERR_TRUNCATE, "round %d: the exchange: class %d", round,
          class_of(statuses[0].MPI_ERROR));
    CHECK(statuses[1].MPI_ERROR == MPI_SUCCESS, "round %d: the receive: class %d", round,
          class_of(statuses[1].MPI_ERROR));
}

static void complete_meanwhile(int round) {
    pthread_t thread;
    MPI_Status statuses[3];
    int flag = 0;
    atomic_store(&asked, 0);
    atomic_store(&has_asked, 0);
    atomic_store(&may_ask, !behind);
    CHECK(pthread_create(&thread, NULL, ask, NULL) == 0, "no thread");
    if (behind) {
        const int code = MPI_Testall(3, requests, &flag, statuses);
        CHECK(flag, "round %d: what is known to be complete is not", round);
        expect_failure(code, statuses, round);
    } else {
        /* It has been in one call for some time. */
        for (unsigned long seen = 0; seen == 0 || seen != atomic_load(&asked); nap(1000000))
            seen = atomic_load(&asked);
        expect_failure(MPI_Waitall(3, requests, statuses), statuses, round);
    }
    pthread_join(thread, NULL);
}

static void fail(int round) {
    /* Who completes while its other thread asks; the others start when that does. */
    const int asks = !behind || check_rank == round % check_size;
    for (int peer = 0; peer < check_size; ++peer)
        fill(from + from_places[peer], (size_t)sent[peer], (unsigned)(round * 4096 + check_rank * 64 + peer));
    memset(to, poison_value, 2 * ((size_t)own + (size_t)check_size * other));
    receive_from(asks ? check_rank : round % check_size, &requests[1]);
    if (!asks) MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    start();
    CHECK(was_accelerated(), "an exchange: %s", last_reason());
    if (asks) {
        complete_meanwhile(round);
    } else {
        const int code = MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        CHECK(class_of(code) == MPI_ERR_TRUNCATE, "round %d: class %d", round, class_of(code));
    }
    for (int peer = 0; peer < check_size; ++peer) {
        unsigned char* const block = to + 2 * (size_t)to_places[peer];
        for (int i = 0; i < received[peer]; ++i) block[i] = block[2 * (size_t)i];
        verify(block, (size_t)received[peer], (unsigned)(round * 4096 + peer * 64 + check_rank),
               "an exchange that was asked after");
    }
}

int main(int argc, char** argv) {
    behind = argc > 1 && strcmp(argv[1], "behind") == 0;
    check_start(&argc, &argv, MPI_THREAD_MULTIPLE);
    CHECK(check_size > 1 && check_size <= most_ranks, "asked_failing on 2 to %d ranks", most_ranks);
    /* Libraries judge this differently. */
    if (!expect_thalweg()) return check_end();
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Type_create_resized(MPI_BYTE, 0, 2, &spread);
    MPI_Type_commit(&spread);
    int from_total = 0, to_total = 0;
    requests[2] = MPI_REQUEST_NULL;
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
