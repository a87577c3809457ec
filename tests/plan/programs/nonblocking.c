/* MPI_Ibcast completed in every way that MPI has: several in flight, in another order than they were started
 * in, beside native requests, on communicators and with datatypes that are freed meanwhile, by another
 * thread where the level allows that. Every byte is checked. */
#include <pthread.h>

#include "check.h"

enum { in_flight = 4 };

typedef enum {
    by_wait,
    by_test,
    by_waitall,
    by_testall,
    by_waitany,
    by_testany,
    by_waitsome,
    by_testsome,
    by_status,
    ways
} Way;

static void complete(Way way, MPI_Request* requests, int count) {
    MPI_Status statuses[16];
    int indices[16], index, flag = 0, done = 0, some;
    switch (way) {
        case by_wait:
            for (int i = count; i-- > 0;) MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
            break;
        case by_test:
            for (int i = count; i-- > 0;)
                for (flag = 0; !flag;) MPI_Test(&requests[i], &flag, &statuses[0]);
            break;
        case by_waitall:
            MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
            break;
        case by_testall:
            while (!flag) MPI_Testall(count, requests, &flag, statuses);
            break;
        case by_waitany:
            for (; done < count; ++done) {
                MPI_Waitany(count, requests, &index, &statuses[0]);
                CHECK(index >= 0 && index < count && requests[index] == MPI_REQUEST_NULL, "waitany: %d",
                      index);
            }
            MPI_Waitany(count, requests, &index, MPI_STATUS_IGNORE);
            CHECK(index == MPI_UNDEFINED, "waitany of nothing: %d", index);
            break;
        case by_testany:
            while (done < count) {
                MPI_Testany(count, requests, &index, &flag, &statuses[0]);
                if (flag) ++done;
            }
            break;
        case by_waitsome:
            while (done < count) {
                MPI_Waitsome(count, requests, &some, indices, statuses);
                CHECK(some > 0, "waitsome: %d", some);
                done += some;
            }
            break;
        case by_testsome:
            while (done < count) {
                MPI_Testsome(count, requests, &some, indices, statuses);
                done += some;
            }
            break;
        default:
            for (int i = 0; i < count; ++i) {
                for (flag = 0; !flag;) MPI_Request_get_status(requests[i], &flag, &statuses[0]);
                CHECK(requests[i] != MPI_REQUEST_NULL, "get_status freed a request");
                MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
            }
    }
    for (int i = 0; i < count; ++i) CHECK(requests[i] == MPI_REQUEST_NULL, "way %d left request %d", way, i);
}

static void expect_taken(int taken, const char* what) {
    if (!expect_thalweg() || check_size == 1) return;
    CHECK(was_accelerated() == taken, "%s: %s (%s)", what, taken ? "was native" : "was taken", last_reason());
}

static void matrix(MPI_Comm comm) {
    static const size_t sizes[] = {1, 1000, 65536, 300007};
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    unsigned seed = 1;
    for (Way way = 0; way < ways; ++way)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; ++s) {
            const size_t bytes = sizes[s];
            unsigned char* data[in_flight];
            MPI_Request requests[in_flight + 2];
            int numbers[2] = {rank, -1};
            for (int i = 0; i < in_flight; ++i) {
                const int root = (i + (int)s) % size;
                data[i] = guarded_new(bytes);
                if (rank == root) fill(data[i], bytes, seed + (unsigned)i);
                MPI_Ibcast(data[i], (int)bytes, MPI_BYTE, root, comm, &requests[i]);
                if (size > 1) expect_taken(1, "a broadcast of the matrix");
            }
            /* A ring of native messages beside them. */
            MPI_Irecv(&numbers[1], 1, MPI_INT, (rank + size - 1) % size, 5, comm, &requests[in_flight]);
            MPI_Isend(&numbers[0], 1, MPI_INT, (rank + 1) % size, 5, comm, &requests[in_flight + 1]);
            complete(way, requests, in_flight + 2);
            CHECK(numbers[1] == (rank + size - 1) % size, "a native message beside ours");
            for (int i = 0; i < in_flight; ++i) {
                verify(data[i], bytes, seed + (unsigned)i, "a broadcast");
                guarded_free(data[i], bytes);
            }
            seed += in_flight;
        }
}

/* The communicator and the datatype are gone when the data arrives. */
static void freed_meanwhile(void) {
    enum { count = 5000 };
    MPI_Comm comm;
    MPI_Datatype every_second;
    MPI_Request request;
    static int data[2 * count];
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Ibcast(data, 1, MPI_INT, 0, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Barrier(comm);
    MPI_Type_vector(count, 1, 2, MPI_INT, &every_second);
    MPI_Type_commit(&every_second);
    for (int i = 0; i < 2 * count; ++i) data[i] = check_rank == 0 && i % 2 == 0 ? i + 7 : -1;
    MPI_Ibcast(data, 1, every_second, 0, comm, &request);
    if (check_size > 1) expect_taken(1, "a strided broadcast");
    MPI_Type_free(&every_second);
    MPI_Comm_free(&comm);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < 2 * count; ++i)
        CHECK(data[i] == (i % 2 == 0 ? i + 7 : -1), "a strided broadcast: byte %d is %d wrong", 4 * i,
              data[i]);
}

/* What is not set up is declined, and set up by the next blocking collective. */
static void set_up_by(int which, MPI_Comm parent) {
    MPI_Comm comm;
    MPI_Request request;
    int value = 0, sum = 0;
    MPI_Comm_dup(parent, &comm);
    unsigned char* const data = guarded_new(50000);
    for (int round = 0; round < 3; ++round) {
        if (check_rank == 0) fill(data, 50000, (unsigned)round);
        MPI_Ibcast(data, 50000, MPI_BYTE, 0, comm, &request);
        expect_taken(round > 0 || getenv("THALWEG_SETUP") != NULL, "a broadcast before set-up");
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        verify(data, 50000, (unsigned)round, "a broadcast around set-up");
        if (which == 0) MPI_Barrier(comm);
        if (which == 1) MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, comm);
        if (which == 2) MPI_Bcast(&value, 1, MPI_INT, 0, comm);
    }
    guarded_free(data, 50000);
    MPI_Comm_free(&comm);
}

static void* wait_for_it(void* request) {
    MPI_Wait(request, MPI_STATUS_IGNORE);
    return NULL;
}

/* Started by one thread, completed by another, while the first starts more. */
static void other_thread(void) {
    enum { rounds = 20, bytes = 100000 };
    unsigned char* data[rounds];
    MPI_Request requests[rounds];
    pthread_t threads[rounds];
    for (int i = 0; i < rounds; ++i) {
        data[i] = guarded_new(bytes);
        if (check_rank == i % check_size) fill(data[i], bytes, (unsigned)i);
        MPI_Ibcast(data[i], bytes, MPI_BYTE, i % check_size, MPI_COMM_WORLD, &requests[i]);
        pthread_create(&threads[i], NULL, wait_for_it, &requests[i]);
    }
    for (int i = 0; i < rounds; ++i) {
        pthread_join(threads[i], NULL);
        verify(data[i], bytes, (unsigned)i, "a broadcast completed by another thread");
        guarded_free(data[i], bytes);
    }
}

/* A completion call that we do not see may wait; it does not say "complete" before the data is there. */
static void unseen(void) {
    enum { bytes = 30000 };
    unsigned char* const data = guarded_new(bytes);
    MPI_Request request;
    int flag = 0;
    if (check_rank == 0) {
        for (int rank = 1; rank < check_size; ++rank)
            MPI_Recv(NULL, 0, MPI_BYTE, rank, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        fill(data, bytes, 8);
        MPI_Ibcast(data, bytes, MPI_BYTE, 0, MPI_COMM_WORLD, &request);
    } else {
        MPI_Ibcast(data, bytes, MPI_BYTE, 0, MPI_COMM_WORLD, &request);
        for (int i = 0; i < 100; ++i) {
            PMPI_Test(&request, &flag, MPI_STATUS_IGNORE);
            CHECK(!flag, "complete before its root came");
        }
        MPI_Send(NULL, 0, MPI_BYTE, 0, 6, MPI_COMM_WORLD);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    verify(data, bytes, 8, "a broadcast tested from outside");
    guarded_free(data, bytes);
}

/* Many at a time, large ones in pieces, and blocking broadcasts in between. */
static void many(void) {
    enum { count = 300, bytes = 3000 };
    static unsigned char data[count][bytes], blocking[5000];
    static MPI_Request requests[count];
    for (int i = 0; i < count; ++i) {
        memset(data[i], poison_value, bytes);
        if (check_rank == i % check_size) fill(data[i], bytes, (unsigned)i);
        MPI_Ibcast(data[i], bytes, MPI_BYTE, i % check_size, MPI_COMM_WORLD, &requests[i]);
        if (i % 50 == 0) {
            if (check_rank == 0) fill(blocking, sizeof blocking, (unsigned)i);
            MPI_Bcast(blocking, sizeof blocking, MPI_BYTE, 0, MPI_COMM_WORLD);
            verify(blocking, sizeof blocking, (unsigned)i, "a blocking broadcast among others");
        }
    }
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < count; ++i) verify(data[i], bytes, (unsigned)i, "one of many");
    const size_t large = 70u << 20;
    unsigned char* const big = guarded_new(large);
    MPI_Request request;
    if (check_rank == check_size - 1) fill(big, large, 99);
    MPI_Ibcast(big, (int)large, MPI_BYTE, check_size - 1, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    verify(big, large, 99, "one in pieces");
    guarded_free(big, large);
}

#ifndef MPI_ABI_VERSION
/* Null pointers while one of ours is alive: the error that this library gives, not a crash. */
static void null_pointers(void) {
    MPI_Request request;
    int value = check_rank, index;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    /* Its root starts last: elsewhere it is pending. */
    for (int peer = 1; peer < check_size && check_rank == 0; ++peer)
        MPI_Recv(NULL, 0, MPI_BYTE, peer, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Ibcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD, &request);
    CHECK(class_of(MPI_Wait(NULL, MPI_STATUS_IGNORE)) == class_of(PMPI_Wait(NULL, MPI_STATUS_IGNORE)),
          "wait");
    CHECK(class_of(MPI_Waitall(1, NULL, MPI_STATUSES_IGNORE)) ==
              class_of(PMPI_Waitall(1, NULL, MPI_STATUSES_IGNORE)),
          "waitall");
    CHECK(class_of(MPI_Waitany(1, NULL, &index, MPI_STATUS_IGNORE)) ==
              class_of(PMPI_Waitany(1, NULL, &index, MPI_STATUS_IGNORE)),
          "waitany");
    CHECK(class_of(MPI_Waitsome(1, &request, NULL, &index, MPI_STATUSES_IGNORE)) ==
              class_of(PMPI_Waitsome(1, &request, NULL, &index, MPI_STATUSES_IGNORE)),
          "waitsome without a count");
    CHECK(request != MPI_REQUEST_NULL, "the broadcast is over");
#if !defined(OPEN_MPI) /* which writes there all the same */
    CHECK(class_of(MPI_Ibcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD, NULL)) ==
              class_of(PMPI_Ibcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD, NULL)),
          "ibcast");
    CHECK(class_of(MPI_Ibarrier(MPI_COMM_WORLD, NULL)) == class_of(PMPI_Ibarrier(MPI_COMM_WORLD, NULL)),
          "ibarrier");
#endif
    CHECK(class_of(MPI_Start(NULL)) == class_of(PMPI_Start(NULL)), "start");
    CHECK(class_of(MPI_Request_free(NULL)) == class_of(PMPI_Request_free(NULL)), "request_free");
    CHECK(class_of(MPI_Cancel(NULL)) == class_of(PMPI_Cancel(NULL)), "cancel");
    if (check_rank != 0) MPI_Send(NULL, 0, MPI_BYTE, 0, 4, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(value == 0, "the broadcast beside them");
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}
#endif

/* Freeing or cancelling what is active: what this library says of its own. */
static void errors(void) {
    if (check_size < 2) return;
    enum { bytes = 200000 };
    int class_ours = 0, class_native = 0;
    static unsigned char* data; /* not freed: what the freed requests receive may still arrive */
    data = guarded_new(bytes);
    MPI_Request request;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int native = 0; native < 2; ++native) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (check_rank == 0) {
            int (*const ibcast)(void*, int, MPI_Datatype, int, MPI_Comm, MPI_Request*) =
                native ? PMPI_Ibcast : MPI_Ibcast;
            /* Its root starts later: it is active. */
            ibcast(data, bytes, MPI_BYTE, 1, MPI_COMM_WORLD, &request);
            MPI_Request same = request;
            MPI_Error_class(MPI_Cancel(&same), native ? &class_native : &class_ours);
            MPI_Send(NULL, 0, MPI_BYTE, 1, 3, MPI_COMM_WORLD);
        } else {
            if (check_rank == 1) MPI_Recv(NULL, 0, MPI_BYTE, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            if (check_rank == 1) fill(data, bytes, 6);
            if (native)
                PMPI_Ibcast(data, bytes, MPI_BYTE, 1, MPI_COMM_WORLD, &request);
            else
                MPI_Ibcast(data, bytes, MPI_BYTE, 1, MPI_COMM_WORLD, &request);
        }
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        verify(data, bytes, 6, "a broadcast that was to be cancelled");
    }
    CHECK(class_ours == class_native, "cancel: class %d, natively %d", class_ours, class_native);
    for (int native = 0; native < 2; ++native) {
        MPI_Barrier(MPI_COMM_WORLD);
        int freed = 0;
        if (check_rank == 0) {
            if (native)
                PMPI_Ibcast(data, bytes, MPI_BYTE, 1, MPI_COMM_WORLD, &request);
            else
                MPI_Ibcast(data, bytes, MPI_BYTE, 1, MPI_COMM_WORLD, &request);
            MPI_Error_class(MPI_Request_free(&request), native ? &class_native : &class_ours);
            freed = request == MPI_REQUEST_NULL;
            MPI_Send(NULL, 0, MPI_BYTE, 1, 3, MPI_COMM_WORLD);
        } else {
            if (check_rank == 1) MPI_Recv(NULL, 0, MPI_BYTE, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            if (native)
                PMPI_Ibcast(data, bytes, MPI_BYTE, 1, MPI_COMM_WORLD, &request);
            else
                MPI_Ibcast(data, bytes, MPI_BYTE, 1, MPI_COMM_WORLD, &request);
        }
        if (!freed) MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    CHECK(class_ours == class_native, "free: class %d, natively %d", class_ours, class_native);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char** argv) {
    const int level = wanted_level();
    check_start(&argc, &argv, level);
    for (int which = 0; which < 3; ++which) set_up_by(which, MPI_COMM_WORLD);
    MPI_Request request;
    int value = 0;
    MPI_Ibcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    matrix(MPI_COMM_WORLD);
    freed_meanwhile();
    if (level == MPI_THREAD_MULTIPLE) other_thread();
    unseen();
    many();
    if (argc > 1 && strcmp(argv[1], "errors") == 0) {
        errors();
#ifndef MPI_ABI_VERSION  /* MPICH's library of the standard ABI crashes in MPI_Waitall(1, NULL) itself */
        null_pointers(); /* MPICH does not forget that MPI_COMM_SELF was given a handler */
#endif
    }
    return check_end();
}
