/* Two threads ask at once what has become of the same requests. MPI_Request_get_status, and its younger forms
 * where the library has them, complete nothing, so any number of threads may. Each asks until all of several
 * operations are complete, a plan among them where there is one; then one thread completes them and looks at
 * every byte. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "check.h"

typedef int BcastInit(void*, int, MPI_Datatype, int, MPI_Comm, MPI_Info, MPI_Request*);
typedef int StatusAll(int, const MPI_Request*, int*, MPI_Status*);
typedef int StatusAny(int, const MPI_Request*, int*, int*, MPI_Status*);
typedef int StatusSome(int, const MPI_Request*, int*, int*, MPI_Status*);

enum { in_flight = 8, bytes = 20000, rounds = 1500 };
enum { one_by_one, by_all, by_any, by_some, ways };

static StatusAll* ask_all;
static StatusAny* ask_any;
static StatusSome* ask_some;

static unsigned char data[in_flight][bytes];
static MPI_Request requests[in_flight];
/* Rounds that have been started, and that the other thread is through with. */
static _Atomic int begun, asked;
/* Of the requests: plans, which MPICH 5.0.2's MPI_Request_get_status_some does not name though they are
 * complete. */
static int plans;

static void ask(int way) {
    int indices[in_flight], flag = 0, some = 0;
    while (way == by_all && ask_all != NULL && !flag) {
        ask_all(in_flight, requests, &flag, MPI_STATUSES_IGNORE);
        sched_yield();
    }
    while (way == by_any && ask_any != NULL && !flag) {
        ask_any(in_flight, requests, &indices[0], &flag, MPI_STATUS_IGNORE);
        sched_yield();
    }
    while (way == by_some && ask_some != NULL && some < in_flight - plans) {
        ask_some(in_flight, requests, &some, indices, MPI_STATUSES_IGNORE);
        sched_yield();
    }
    for (int done = 0; done < in_flight;) {
        done = 0;
        for (int i = 0; i < in_flight; ++i) {
            MPI_Request_get_status(requests[i], &flag, MPI_STATUS_IGNORE);
            done += flag != 0;
        }
        sched_yield();
    }
}

static void* ask_too(void* unused) {
    (void)unused;
    for (int round = 1; round <= rounds; ++round) {
        while (atomic_load(&begun) < round) sched_yield();
        ask(round % ways);
        atomic_store(&asked, round);
    }
    return NULL;
}

static int root_of(int i) { return i == 0 ? 0 : i % check_size; }

static void start(int round, int planned) {
    for (int i = 0; i < in_flight; ++i) {
        memset(data[i], poison_value, bytes);
        if (check_rank == root_of(i)) fill(data[i], bytes, (unsigned)(in_flight * round + i));
        if (i == 0 && planned) {
            MPI_Start(&requests[i]);
            continue;
        }
        MPI_Ibcast(data[i], bytes, MPI_BYTE, root_of(i), MPI_COMM_WORLD, &requests[i]);
        if (expect_thalweg()) CHECK(was_accelerated(), "a broadcast: %s", last_reason());
    }
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, MPI_THREAD_MULTIPLE);
    CHECK(check_size > 1, "asked_by_two on 2 ranks or more");
    BcastInit* init;
    *(void**)&init = dlsym(RTLD_DEFAULT, "MPI_Bcast_init");
    *(void**)&ask_all = dlsym(RTLD_DEFAULT, "MPI_Request_get_status_all");
    *(void**)&ask_any = dlsym(RTLD_DEFAULT, "MPI_Request_get_status_any");
    *(void**)&ask_some = dlsym(RTLD_DEFAULT, "MPI_Request_get_status_some");
    MPI_Ibcast(data[0], 1, MPI_BYTE, 0, MPI_COMM_WORLD, &requests[0]); /* asks for the set-up */
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    const int planned = init != NULL && expect_thalweg();
    if (planned) {
        init(data[0], bytes, MPI_BYTE, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
        CHECK(was_accelerated(), "a plan: %s", last_reason());
        plans = 1;
    }
    pthread_t other;
    CHECK(pthread_create(&other, NULL, ask_too, NULL) == 0, "no thread");
    for (int round = 1; round <= rounds; ++round) {
        start(round, planned);
        atomic_store(&begun, round);
        ask(round % ways);
        while (atomic_load(&asked) < round) sched_yield();
        MPI_Waitall(in_flight, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i < in_flight; ++i)
            verify(data[i], bytes, (unsigned)(in_flight * round + i), "a broadcast that two asked after");
    }
    pthread_join(other, NULL);
    if (planned) MPI_Request_free(&requests[0]);
    return check_end();
}
