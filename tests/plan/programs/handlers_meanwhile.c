/* A thread sets the error handler of a communicator and asks for it again and again, while another one makes
 * calls on that communicator in which it is set up and its ranks agree: the handler is always the one that
 * was set last, and none is ever called. THALWEG_TEST_TAKEN=1: all were taken, but for the first gathers. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "check.h"

enum { communicators = 12, plans = 20, bytes = 3000, most_ranks = 8 };

typedef int AlltoallvInit(const void*, const int*, const int*, MPI_Datatype, void*, const int*, const int*,
                          MPI_Datatype, MPI_Comm, MPI_Info, MPI_Request*);
static AlltoallvInit* alltoallv_init;

static MPI_Errhandler handlers[2];
static MPI_Comm shared;
static atomic_int stop;
static atomic_ulong exchanges;

static void never(MPI_Comm* comm, int* code, ...) {
    (void)comm;
    FAIL("an error handler is called, with %d", *code);
}
static void nor_this(MPI_Comm* comm, int* code, ...) { never(comm, code); }

/* Ends with the first one set. */
static void* exchange_handlers(void* nothing) {
    for (int which = 1; which != 0 || !atomic_load(&stop); which = !which) {
        MPI_Errhandler now;
        MPI_Comm_set_errhandler(shared, handlers[which]);
        for (int again = 0; again < 8; ++again) {
            MPI_Comm_get_errhandler(shared, &now);
            if (now != handlers[which]) FAIL("another error handler than the one that was set");
            MPI_Errhandler_free(&now);
            sched_yield();
        }
        atomic_fetch_add(&exchanges, 1);
        usleep(5); /* the lock of the MPI is for the other thread, too */
    }
    MPI_Comm_set_errhandler(shared, handlers[0]);
    return nothing;
}

/* `seen`: what looked_at() said before the call. */
static void expect_taken(uint64_t seen, const char* what) {
    if (expect_thalweg() && check_size > 1 && getenv("THALWEG_TEST_TAKEN") != NULL)
        CHECK(looked_at() != seen && was_accelerated(), "%s: %s", what, last_reason());
}

static void broadcast(unsigned seed) {
    unsigned char* const data = guarded_new(bytes);
    if (check_rank == 0) fill(data, bytes, seed);
    const uint64_t seen = looked_at();
    MPI_Bcast(data, bytes, MPI_BYTE, 0, shared);
    expect_taken(seen, "a broadcast");
    verify(data, bytes, seed, "a broadcast");
    guarded_free(data, bytes);
}

/* The first that does not block asks for the set-up. */
static void gather(unsigned seed, int soon, int first) {
    unsigned char *const own = guarded_new(bytes), *const all = guarded_new((size_t)check_size * bytes);
    MPI_Request request = MPI_REQUEST_NULL;
    fill(own, bytes, seed + (unsigned)check_rank);
    const uint64_t seen = looked_at();
    if (soon)
        MPI_Iallgather(own, bytes, MPI_BYTE, all, bytes, MPI_BYTE, shared, &request);
    else
        MPI_Allgather(own, bytes, MPI_BYTE, all, bytes, MPI_BYTE, shared);
    if (!first) expect_taken(seen, soon ? "a nonblocking allgather" : "an allgather");
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int rank = 0; rank < check_size; ++rank)
        verify(all + rank * bytes, bytes, seed + (unsigned)rank, "an allgather");
    guarded_free(own, bytes);
    guarded_free(all, (size_t)check_size * bytes);
}

/* Whose sizes the ranks tell one another each time. */
static void plan(unsigned seed) {
    int counts[most_ranks], places[most_ranks];
    const size_t all = (size_t)check_size * bytes;
    unsigned char *const from = guarded_new(all), *const to = guarded_new(all);
    MPI_Request request;
    for (int rank = 0; rank < check_size; ++rank) {
        counts[rank] = bytes;
        places[rank] = rank * bytes;
        fill(from + rank * bytes, bytes, seed + (unsigned)(check_rank * check_size + rank));
    }
    alltoallv_init(from, counts, places, MPI_BYTE, to, counts, places, MPI_BYTE, shared, MPI_INFO_NULL,
                   &request);
    if (expect_thalweg() && check_size > 1) CHECK(was_accelerated(), "a plan: %s", last_reason());
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int rank = 0; rank < check_size; ++rank)
        verify(to + rank * bytes, bytes, seed + (unsigned)(rank * check_size + check_rank), "a plan");
    MPI_Request_free(&request);
    guarded_free(from, all);
    guarded_free(to, all);
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, MPI_THREAD_MULTIPLE);
    CHECK(check_size <= most_ranks, "too many ranks");
    *(void**)&alltoallv_init = dlsym(RTLD_DEFAULT, "MPI_Alltoallv_init");
    MPI_Comm_create_errhandler(never, &handlers[0]);
    MPI_Comm_create_errhandler(nor_this, &handlers[1]);
    for (unsigned i = 0; i < communicators; ++i) {
        pthread_t thread;
        MPI_Errhandler last;
        MPI_Comm_dup(MPI_COMM_WORLD, &shared);
        MPI_Comm_set_errhandler(shared, handlers[0]);
        atomic_store(&stop, 0);
        if (pthread_create(&thread, NULL, exchange_handlers, NULL) != 0) FAIL("no thread");
        const unsigned long before = atomic_load(&exchanges);
        while (atomic_load(&exchanges) == before) usleep(100);
        for (unsigned round = 0; round < 3; ++round) {
            broadcast(100 * i + round);
            gather(100 * i + 10 * round, 1, round == 0);
            gather(100 * i + 10 * round + 5, 0, round == 0);
        }
        for (unsigned made = 0; made < plans && alltoallv_init != NULL; ++made) plan(1000 * i + 100 * made);
        atomic_store(&stop, 1);
        pthread_join(thread, NULL);
        MPI_Comm_get_errhandler(shared, &last);
        CHECK(last == handlers[0], "the error handler that was set last is gone");
        MPI_Errhandler_free(&last);
        MPI_Comm_free(&shared);
    }
    MPI_Errhandler_free(&handlers[0]);
    MPI_Errhandler_free(&handlers[1]);
    return check_end();
}
