/* Errors of persistent operations are raised on the communicator that they were made on, by the handler that
 * it has then, and once, while those of the world and of MPI_COMM_SELF end the job; also where the program
 * has freed that communicator, and where a request that is active is to be freed. So are those of what does
 * not block, whichever call completes it, alone or among others, and whether it has been asked after, by two
 * threads at once where the level allows that. */
#include <pthread.h>

#include "check.h"

typedef int BcastInit(void*, int, MPI_Datatype, int, MPI_Comm, MPI_Info, MPI_Request*);
static BcastInit* bcast_init;

enum { bytes = 60000, sent = 1000 }; /* sent: where less is expected */
static unsigned char data[bytes];

/* What the handlers heard of. */
static int heard[2], heard_class;
static MPI_Comm heard_on;
static void hear(int which, MPI_Comm* comm, int* code) {
    ++heard[which];
    heard_on = *comm;
    heard_class = class_of(*code);
}
static void hear_first(MPI_Comm* comm, int* code, ...) { hear(0, comm, code); }
static void hear_second(MPI_Comm* comm, int* code, ...) { hear(1, comm, code); }
static MPI_Errhandler handlers[2];

static void forget(void) { heard[0] = heard[1] = heard_class = 0; }

/* Of ranks 0 and 1. */
static MPI_Comm make_pair(void) {
    MPI_Comm pair;
    MPI_Comm_split(MPI_COMM_WORLD, check_rank < 2 ? 0 : MPI_UNDEFINED, check_rank, &pair);
    if (pair != MPI_COMM_NULL) MPI_Comm_set_errhandler(pair, handlers[0]);
    forget();
    return pair;
}

static void expect_plan(void) {
    if (expect_thalweg()) CHECK(was_accelerated(), "a plan was declined: %s", last_reason());
}

typedef enum { as_it_was, exchanged, freed, fates } Fate;
static const char* const fate_names[] = {"a communicator", "one whose handler was exchanged",
                                         "one that was freed"};

/* Rank 1 expects less than comes. */
static void mismatched(Fate fate, int tests) {
    MPI_Comm pair = make_pair();
    if (pair == MPI_COMM_NULL) return;
    const MPI_Comm made_on = pair;
    const int wrong = check_rank == 1, which = fate == exchanged;
    MPI_Request plan;
    int code = MPI_SUCCESS, flag = 0;
    bcast_init(data, wrong ? sent / 2 : sent, MPI_BYTE, 0, pair, MPI_INFO_NULL, &plan);
    expect_plan();
    if (fate == exchanged) MPI_Comm_set_errhandler(pair, handlers[1]);
    if (fate == freed) MPI_Comm_free(&pair);
    MPI_Start(&plan);
    if (tests)
        while (!flag && code == MPI_SUCCESS) code = MPI_Test(&plan, &flag, MPI_STATUS_IGNORE);
    else
        code = MPI_Wait(&plan, MPI_STATUS_IGNORE);
    CHECK(heard[which] == wrong && heard[!which] == 0, "%s: its handler ran %d times, another one %d times",
          fate_names[fate], heard[which], heard[!which]);
    if (wrong) {
        CHECK(heard_class == MPI_ERR_TRUNCATE, "%s: its handler heard of class %d", fate_names[fate],
              heard_class);
        if (fate != freed)
            CHECK(heard_on == made_on, "%s: its handler heard of another one", fate_names[fate]);
    }
    CHECK(class_of(code) == (wrong ? MPI_ERR_TRUNCATE : MPI_SUCCESS), "%s: class %d", fate_names[fate],
          class_of(code));
    CHECK(plan != MPI_REQUEST_NULL, "a plan is gone");
    MPI_Request_free(&plan);
    if (fate != freed) MPI_Comm_free(&pair);
}

/* The same without a plan: set up by the first one and the barrier. */
static void mismatched_once(int tests) {
    MPI_Comm pair = make_pair();
    if (pair == MPI_COMM_NULL) return;
    const int wrong = check_rank == 1;
    MPI_Request request;
    int code = MPI_SUCCESS, flag = 0;
    MPI_Ibcast(data, sent, MPI_BYTE, 0, pair, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Barrier(pair);
    MPI_Ibcast(data, wrong ? sent / 2 : sent, MPI_BYTE, 0, pair, &request);
    CHECK(was_accelerated(), "a broadcast was declined: %s", last_reason());
    if (tests)
        while (!flag && code == MPI_SUCCESS) code = MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    else
        code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(heard[0] == wrong && heard[1] == 0, "a broadcast: the handler ran %d times", heard[0]);
    if (wrong)
        CHECK(heard_on == pair && heard_class == MPI_ERR_TRUNCATE, "a broadcast: class %d", heard_class);
    CHECK(class_of(code) == (wrong ? MPI_ERR_TRUNCATE : MPI_SUCCESS), "a broadcast: class %d",
          class_of(code));
    CHECK(request == MPI_REQUEST_NULL, "a request is left");
    MPI_Comm_free(&pair);
}

typedef enum { by_waitall, by_testall, by_waitany, by_testany, by_waitsome, by_testsome, asked, ways } Way;
static const char* const way_names[] = {"MPI_Waitall",           "MPI_Testall",  "MPI_Waitany",
                                        "MPI_Testany",           "MPI_Waitsome", "MPI_Testsome",
                                        "MPI_Request_get_status"};

/* Completes the second of three requests; what the call for one would return, from the status where the call
 * is for several. */
static int complete_second(Way way, MPI_Request* requests) {
    MPI_Status statuses[3];
    int code = MPI_SUCCESS, flag = 0, some = 0, indices[3] = {-1, -1, -1};
    if (way == asked) {
        while (!flag) {
            code = MPI_Request_get_status(requests[1], &flag, MPI_STATUS_IGNORE);
            CHECK(code == MPI_SUCCESS, "asked after one that has failed: class %d", class_of(code));
        }
        CHECK(heard[0] == 0, "a handler heard of a request that was asked after");
        return MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    }
    if (way == by_waitall) code = MPI_Waitall(3, requests, statuses);
    while (way == by_testall && !flag && code == MPI_SUCCESS)
        code = MPI_Testall(3, requests, &flag, statuses);
    if (way == by_waitall || way == by_testall)
        return code == MPI_ERR_IN_STATUS ? statuses[1].MPI_ERROR : code;
    for (;;) {
        some = 1;
        if (way == by_waitany) code = MPI_Waitany(3, requests, indices, statuses);
        if (way == by_testany) code = MPI_Testany(3, requests, indices, &some, statuses);
        if (way == by_waitsome) code = MPI_Waitsome(3, requests, &some, indices, statuses);
        if (way == by_testsome) code = MPI_Testsome(3, requests, &some, indices, statuses);
        for (int i = 0; i < some; ++i)
            if (indices[i] == 1) return code == MPI_ERR_IN_STATUS ? statuses[i].MPI_ERROR : code;
        CHECK(code == MPI_SUCCESS, "%s: class %d", way_names[way], class_of(code));
    }
}

/* Beside a message to oneself and a request that is none. */
static void mismatched_among(Way way, int planned) {
    MPI_Comm pair = make_pair();
    if (pair == MPI_COMM_NULL) return;
    const int wrong = check_rank == 1, count = wrong ? sent / 2 : sent;
    MPI_Request requests[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    char to = 1, from = 0;
    if (planned) {
        bcast_init(data, count, MPI_BYTE, 0, pair, MPI_INFO_NULL, &requests[1]);
        expect_plan();
        MPI_Start(&requests[1]);
    } else {
        MPI_Ibcast(data, sent, MPI_BYTE, 0, pair, &requests[1]);
        MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
        MPI_Barrier(pair);
        MPI_Ibcast(data, count, MPI_BYTE, 0, pair, &requests[1]);
        CHECK(was_accelerated(), "a broadcast was declined: %s", last_reason());
    }
    MPI_Irecv(&from, 1, MPI_BYTE, check_rank, 4, MPI_COMM_WORLD, &requests[0]);
    MPI_Send(&to, 1, MPI_BYTE, check_rank, 4, MPI_COMM_WORLD);
    const int class = class_of(complete_second(way, requests));
    CHECK(class == (wrong ? MPI_ERR_TRUNCATE : MPI_SUCCESS), "%s, planned %d: class %d", way_names[way],
          planned, class);
    CHECK(MPI_Waitall(3, requests, MPI_STATUSES_IGNORE) == MPI_SUCCESS, "%s, planned %d: told of twice",
          way_names[way], planned);
    CHECK(from == to, "%s, planned %d: the message beside it", way_names[way], planned);
    CHECK(heard[0] == wrong && heard[1] == 0, "%s, planned %d: the handler ran %d times", way_names[way],
          planned, heard[0]);
    if (wrong)
        CHECK(heard_on == pair && heard_class == MPI_ERR_TRUNCATE, "%s, planned %d: it heard of class %d",
              way_names[way], planned, heard_class);
    CHECK((requests[1] != MPI_REQUEST_NULL) == planned, "%s, planned %d: the request", way_names[way],
          planned);
    if (planned) MPI_Request_free(&requests[1]);
    MPI_Comm_free(&pair);
}

static MPI_Request asked_for;
/* By a call that passes Thalweg, again and again: it may come in the very moment in which the other thread
 * has ended the operation. What it returned last. */
static void* ask_past(void* result) {
    int code = MPI_SUCCESS, flag = 0;
    while (!flag && code == MPI_SUCCESS) code = PMPI_Request_get_status(asked_for, &flag, MPI_STATUS_IGNORE);
    *(int*)result = code;
    return NULL;
}

static void mismatched_while_two_ask(void) {
    enum { rounds = 10 }; /* each has a lane that is not used again */
    for (int round = 0; round < rounds; ++round) {
        MPI_Comm pair = make_pair();
        if (pair == MPI_COMM_NULL) continue;
        const int wrong = check_rank == 1;
        pthread_t other;
        int flag = 0, others = MPI_SUCCESS;
        MPI_Ibcast(data, sent, MPI_BYTE, 0, pair, &asked_for);
        MPI_Wait(&asked_for, MPI_STATUS_IGNORE);
        MPI_Barrier(pair);
        MPI_Ibcast(data, wrong ? sent / 2 : sent, MPI_BYTE, 0, pair, &asked_for);
        CHECK(was_accelerated(), "a broadcast was declined: %s", last_reason());
        CHECK(pthread_create(&other, NULL, ask_past, &others) == 0, "no thread");
        while (!flag) {
            const int code = MPI_Request_get_status(asked_for, &flag, MPI_STATUS_IGNORE);
            CHECK(code == MPI_SUCCESS, "one of two that ask: class %d", class_of(code));
        }
        pthread_join(other, NULL);
        CHECK(others == MPI_SUCCESS, "the other one that asks: class %d", class_of(others));
        CHECK(heard[0] == 0, "a handler heard of a request that two asked after");
        const int class = class_of(MPI_Wait(&asked_for, MPI_STATUS_IGNORE));
        CHECK(class == (wrong ? MPI_ERR_TRUNCATE : MPI_SUCCESS), "two have asked: class %d", class);
        CHECK(heard[0] == wrong && heard[1] == 0, "two have asked: the handler ran %d times", heard[0]);
        MPI_Comm_free(&pair);
    }
}

static MPI_Comm* to_free;
static void hear_and_free(MPI_Comm* comm, int* code, ...) {
    hear(0, comm, code);
    MPI_Comm_free(to_free);
}

/* Rank 1 expects less than comes by two plans that one call completes: of a communicator that is freed, whose
 * handler hears of both at once, or of two, where the handler of the first frees the second. */
static void two_mismatched(int of_one) {
    MPI_Comm pair = make_pair(), twin;
    if (pair == MPI_COMM_NULL) return;
    MPI_Comm_dup(pair, &twin);
    static unsigned char more[sent];
    const int wrong = check_rank == 1, count = wrong ? sent / 2 : sent;
    const char* const which = of_one ? "two plans of one" : "two whose first frees the second";
    MPI_Errhandler frees;
    MPI_Comm_create_errhandler(hear_and_free, &frees);
    MPI_Request plans[2];
    MPI_Status statuses[2];
    to_free = &twin;
    if (!of_one) MPI_Comm_set_errhandler(pair, frees);
    MPI_Comm_set_errhandler(twin, handlers[1]);
    bcast_init(data, count, MPI_BYTE, 0, pair, MPI_INFO_NULL, &plans[0]);
    expect_plan();
    bcast_init(more, count, MPI_BYTE, 0, of_one ? pair : twin, MPI_INFO_NULL, &plans[1]);
    expect_plan();
    if (of_one) MPI_Comm_free(&pair);
    MPI_Startall(2, plans);
    const int code = MPI_Waitall(2, plans, statuses);
    CHECK(code == (wrong ? MPI_ERR_IN_STATUS : MPI_SUCCESS), "%s: class %d", which, class_of(code));
    for (int i = 0; i < 2 && wrong; ++i)
        CHECK(class_of(statuses[i].MPI_ERROR) == MPI_ERR_TRUNCATE, "%s: class %d of request %d", which,
              class_of(statuses[i].MPI_ERROR), i);
    CHECK(heard[0] == wrong && heard[1] == 0, "%s: the handlers ran %d and %d times", which, heard[0],
          heard[1]);
    for (int i = 0; i < 2; ++i) MPI_Request_free(&plans[i]);
    if (of_one || !wrong) MPI_Comm_free(&twin);
    if (!of_one) MPI_Comm_free(&pair);
    MPI_Errhandler_free(&frees);
}

/* Rank 0 frees a plan that is active because its root starts later. */
static void active(void) {
    MPI_Comm pair = make_pair();
    if (pair == MPI_COMM_NULL) return;
    MPI_Request plan;
    bcast_init(data, bytes, MPI_BYTE, 1, pair, MPI_INFO_NULL, &plan);
    expect_plan();
    memset(data, poison_value, bytes);
    if (check_rank == 1) fill(data, bytes, 3);
    if (check_rank == 0) {
        MPI_Start(&plan);
        MPI_Request same = plan;
        const int code = MPI_Request_free(&same);
        CHECK(class_of(code) == MPI_ERR_REQUEST, "an active plan: class %d", class_of(code));
        CHECK(same == plan, "a call that failed has changed a request");
        CHECK(heard[0] == 1 && heard[1] == 0, "an active plan: the handler ran %d times", heard[0]);
        CHECK(heard_on == pair && heard_class == MPI_ERR_REQUEST, "an active plan: class %d", heard_class);
        MPI_Send(NULL, 0, MPI_BYTE, 1, 3, pair);
    } else {
        MPI_Recv(NULL, 0, MPI_BYTE, 0, 3, pair, MPI_STATUS_IGNORE);
        MPI_Start(&plan);
    }
    CHECK(MPI_Wait(&plan, MPI_STATUS_IGNORE) == MPI_SUCCESS, "a plan that was to be freed");
    verify(data, bytes, 3, "a plan that was to be freed");
    MPI_Request_free(&plan);
    MPI_Comm_free(&pair);
}

int main(int argc, char** argv) {
    const int level = wanted_level();
    check_start(&argc, &argv, level);
    *(void**)&bcast_init = find_or_skip("MPI_Bcast_init");
    MPI_Comm_create_errhandler(hear_first, &handlers[0]);
    MPI_Comm_create_errhandler(hear_second, &handlers[1]);
    /* Plans of the library are not ours to judge. */
    if (check_size > 1 && expect_thalweg()) {
        for (Fate fate = as_it_was; fate < fates; ++fate)
            for (int tests = 0; tests < 2; ++tests) mismatched(fate, tests);
        for (int tests = 0; tests < 2; ++tests) mismatched_once(tests);
        for (Way way = by_waitall; way < ways; ++way)
            for (int planned = 0; planned < 2; ++planned) mismatched_among(way, planned);
        for (int of_one = 0; of_one < 2; ++of_one) two_mismatched(of_one);
        if (level == MPI_THREAD_MULTIPLE) mismatched_while_two_ask();
        active();
    }
    MPI_Errhandler_free(&handlers[0]);
    MPI_Errhandler_free(&handlers[1]);
    return check_end();
}
