/* What a status says of our requests: no bytes, not cancelled, no error unless there was one, from every
 * completion call; what it says of a native message beside them is the message's; of a plan that is not
 * active it says nothing; and who of several has failed. */
#include "check.h"

typedef int BcastInit(void*, int, MPI_Datatype, int, MPI_Comm, MPI_Info, MPI_Request*);

enum { bytes = 20000, message = 37, tag = 5, untouched = 12345 };
static unsigned char data[bytes], sent[message], received[message];

typedef enum {
    by_wait,
    by_test,
    by_all,
    by_testall,
    by_any,
    by_testany,
    by_some,
    by_testsome,
    by_asking,
    ways
} Way;

static void clear(MPI_Status* status) {
    memset(status, poison_value, sizeof *status);
    status->MPI_ERROR = untouched;
}

static void expect_ours(const MPI_Status* status, const char* what) {
    int count = -1, elements = -1, cancelled = -1;
    MPI_Get_count(status, MPI_INT, &count);
    MPI_Get_elements(status, MPI_INT, &elements);
    MPI_Test_cancelled(status, &cancelled);
    CHECK(count == 0 && elements == 0, "%s: %d ints, %d elements", what, count, elements);
    CHECK(!cancelled, "%s: cancelled", what);
    CHECK(status->MPI_ERROR == untouched || status->MPI_ERROR == MPI_SUCCESS, "%s: error %d", what,
          status->MPI_ERROR);
}
static void expect_message(const MPI_Status* status) {
    int count = -1, cancelled = -1;
    MPI_Get_count(status, MPI_BYTE, &count);
    MPI_Test_cancelled(status, &cancelled);
    CHECK(count == message && !cancelled, "a message: %d bytes, cancelled %d", count, cancelled);
    CHECK(status->MPI_SOURCE == (check_rank + check_size - 1) % check_size && status->MPI_TAG == tag,
          "a message: from %d with tag %d", status->MPI_SOURCE, status->MPI_TAG);
}
static void expect_one(int index, int native, const MPI_Status* status, const char* what) {
    if (index == native)
        expect_message(status);
    else
        expect_ours(status, what);
}

/* Completes three requests, of which number `native` is the receive. */
static void complete(Way way, MPI_Request* requests, int native, const char* what) {
    MPI_Status statuses[3];
    int flag = 0, some = 0, indices[3];
    for (int i = 0; i < 3; ++i) clear(&statuses[i]);
    for (int i = 0; i < 3 && way <= by_test; ++i) {
        if (way == by_wait) MPI_Wait(&requests[i], &statuses[i]);
        for (flag = way == by_wait; !flag;) MPI_Test(&requests[i], &flag, &statuses[i]);
    }
    for (int i = 0; i < 3 && way == by_asking; ++i) {
        for (flag = 0; !flag;) MPI_Request_get_status(requests[i], &flag, &statuses[i]);
        expect_one(i, native, &statuses[i], what);
        clear(&statuses[i]);
        MPI_Wait(&requests[i], &statuses[i]);
    }
    if (way == by_all) MPI_Waitall(3, requests, statuses);
    while (way == by_testall && !flag) MPI_Testall(3, requests, &flag, statuses);
    if (way < by_any || way == by_asking) {
        for (int i = 0; i < 3; ++i) expect_one(i, native, &statuses[i], what);
        return;
    }
    for (int left = 3; left > 0; left -= some) {
        some = 1;
        for (int i = 0; i < 3; ++i) clear(&statuses[i]);
        if (way == by_any) MPI_Waitany(3, requests, indices, &statuses[0]);
        if (way == by_testany) MPI_Testany(3, requests, indices, &some, &statuses[0]);
        if (way == by_some) MPI_Waitsome(3, requests, &some, indices, statuses);
        if (way == by_testsome) MPI_Testsome(3, requests, &some, indices, statuses);
        for (int i = 0; i < some; ++i) expect_one(indices[i], native, &statuses[i], what);
    }
}

/* The receive is the last, the first or the middle one. */
static void beside_a_message(BcastInit* init) {
    MPI_Request plan = MPI_REQUEST_NULL;
    if (init != NULL) {
        init(data, bytes, MPI_BYTE, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &plan);
        CHECK(was_accelerated(), "a plan: %s", last_reason());
    }
    for (int round = 0; round < 2 * ways; ++round) {
        MPI_Request requests[3], message_sent;
        const int native = round % 3;
        for (int i = 0; i < 3; ++i) {
            if (i == native) {
                MPI_Irecv(received, message, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
                          &requests[i]);
            } else if (i == (native + 1) % 3 && init != NULL) {
                MPI_Start(&plan);
                requests[i] = plan;
            } else {
                MPI_Ibarrier(MPI_COMM_WORLD, &requests[i]);
                if (expect_thalweg() && check_size > 1)
                    CHECK(was_accelerated(), "a barrier: %s", last_reason());
            }
        }
        MPI_Isend(sent, message, MPI_BYTE, (check_rank + 1) % check_size, tag, MPI_COMM_WORLD, &message_sent);
        complete((Way)(round % ways), requests, native, init != NULL ? "a plan or a barrier" : "a barrier");
        MPI_Wait(&message_sent, MPI_STATUS_IGNORE);
    }
    if (init != NULL) {
        MPI_Status status;
        int flag = 0, count = -1;
        clear(&status);
        MPI_Test(&plan, &flag, &status);
        MPI_Get_count(&status, MPI_BYTE, &count);
        CHECK(flag && status.MPI_SOURCE == MPI_ANY_SOURCE && status.MPI_TAG == MPI_ANY_TAG && count == 0,
              "a plan that is not active: %d, from %d with tag %d, %d bytes", flag, status.MPI_SOURCE,
              status.MPI_TAG, count);
        MPI_Request_free(&plan);
    }
}

/* Of three requests of rank 1 the second one fails, because its root sends too much. */
static void failed(void) {
    if (!expect_thalweg() || check_size < 2) return;
    MPI_Comm pair;
    MPI_Request requests[3], message_sent;
    MPI_Status statuses[3];
    int class = MPI_SUCCESS, flag = 0;
    MPI_Comm_split(MPI_COMM_WORLD, check_rank < 2 ? 0 : MPI_UNDEFINED, check_rank, &pair);
    if (pair != MPI_COMM_NULL) {
        MPI_Ibarrier(pair, &requests[0]);
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        MPI_Barrier(pair);
    }
    MPI_Ibarrier(MPI_COMM_WORLD, &requests[0]);
    if (pair == MPI_COMM_NULL) {
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        return;
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(pair, MPI_ERRORS_RETURN);
    MPI_Ibcast(data, check_rank == 0 ? 1000 : 500, MPI_BYTE, 0, pair, &requests[1]);
    CHECK(was_accelerated(), "a broadcast: %s", last_reason());
    MPI_Irecv(received, message, MPI_BYTE, check_rank, tag, MPI_COMM_WORLD, &requests[2]);
    MPI_Isend(sent, message, MPI_BYTE, check_rank, tag, MPI_COMM_WORLD, &message_sent);
    MPI_Wait(&message_sent, MPI_STATUS_IGNORE);
    /* Else the failure may leave the others pending. */
    for (int i = 0; i < 3; i += 2)
        for (flag = 0; !flag;) MPI_Request_get_status(requests[i], &flag, MPI_STATUS_IGNORE);
    for (int i = 0; i < 3; ++i) clear(&statuses[i]);
    const int code = MPI_Waitall(3, requests, statuses);
    if (check_rank == 1) {
        CHECK(code == MPI_ERR_IN_STATUS, "one of three has failed: code %d", code);
        MPI_Error_class(statuses[1].MPI_ERROR, &class);
        CHECK(class == MPI_ERR_TRUNCATE, "the one that has failed: class %d", class);
        CHECK(requests[1] == MPI_REQUEST_NULL, "the one that has failed is left");
        for (int i = 0; i < 3; i += 2) {
            /* MPICH does not look at what comes behind. */
            const int pending = statuses[i].MPI_ERROR == MPI_ERR_PENDING;
            CHECK(pending || statuses[i].MPI_ERROR == MPI_SUCCESS, "request %d has not failed: %d", i,
                  statuses[i].MPI_ERROR);
            CHECK((requests[i] == MPI_REQUEST_NULL) == !pending, "request %d", i);
            MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
        }
    } else {
        CHECK(code == MPI_SUCCESS, "none of three has failed: code %d", code);
        for (int i = 0; i < 3; ++i) CHECK(requests[i] == MPI_REQUEST_NULL, "request %d is left", i);
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_free(&pair);
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, wanted_level());
    BcastInit* init;
    *(void**)&init = dlsym(RTLD_DEFAULT, "MPI_Bcast_init");
    MPI_Request request;
    MPI_Ibarrier(MPI_COMM_WORLD, &request); /* asks for the set-up */
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    beside_a_message(NULL);
    if (init != NULL && expect_thalweg() && check_size > 1) beside_a_message(init);
    failed();
    return check_end();
}
