/* A program that was built with persistent collectives, under an MPI library that has none: linked to their
 * names, it would not start without Thalweg. Every byte of every start is checked, the data differ each time.
 * "neighbours": those of a topology are there as well, "no_neighbours": an error says that they are not.
 * "fails": the plans themselves are an error. "wrong": calls of one rank are. "freed", behind faults.c: ranks
 * cannot agree while the program frees the communicator of its plans. "left", behind faults.c: each plan
 * outlives the communicator that it was made on. */
#include "check.h"
#include "left_plans.h"
#include "odd_exchange.h"

enum { starts = 20, most = 300 };

/* Waits in one of the ways that a program has. */
static void finish(MPI_Request* plan, int way) {
    int done = 0;
    switch (way % 4) {
        case 0:
            MPI_Wait(plan, MPI_STATUS_IGNORE);
            break;
        case 1:
            while (!done) MPI_Test(plan, &done, MPI_STATUS_IGNORE);
            break;
        case 2:
            MPI_Waitall(1, plan, MPI_STATUSES_IGNORE);
            break;
        default:
            MPI_Waitany(1, plan, &done, MPI_STATUS_IGNORE);
            CHECK(done == 0, "MPI_Waitany says %d", done);
    }
    CHECK(*plan != MPI_REQUEST_NULL, "a plan is gone after it was waited for");
}

static void exchanges(MPI_Comm comm) {
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    Exchange vector = exchange_new(size, rank), typed = exchange_new(size, rank);
    MPI_Request plans[2];
    MPI_Datatype bytes, odd;
    MPI_Type_contiguous(1, MPI_BYTE, &bytes);
    MPI_Type_commit(&bytes);
#if MPI_VERSION >= 4 /* Of a type of large counts the calls of small ones do not tell what it is. */
    MPI_Type_vector_c(1, 1, 1, MPI_BYTE, &odd);
#else
    MPI_Type_vector(1, 1, 1, MPI_BYTE, &odd);
#endif
    MPI_Type_commit(&odd);
    for (int peer = 0; peer < size; peer += 2) typed.types[peer] = odd;
#ifdef MPICH_VERSION /* which looks at no type of no elements */
    for (int peer = 0; peer < size; ++peer)
        if (typed.counts[0][peer] == 0 && typed.counts[1][peer] == 0) typed.types[peer] = MPI_DATATYPE_NULL;
#endif
    /* Nor need such a message have a place. */
    const int none = size == 1 && typed.types[0] == MPI_DATATYPE_NULL;
    MPI_Alltoallv_init(vector.send, vector.counts[0], none ? NULL : vector.places[0],
                       none ? MPI_DATATYPE_NULL : MPI_BYTE, vector.receive, vector.counts[1],
                       none ? NULL : vector.places[1], none ? MPI_DATATYPE_NULL : bytes, comm, MPI_INFO_NULL,
                       &plans[0]);
    MPI_Alltoallw_init(typed.send, typed.counts[0], typed.places[0], typed.types, typed.receive,
                       typed.counts[1], typed.places[1], typed.types, comm, MPI_INFO_NULL, &plans[1]);
    MPI_Type_free(&bytes);
    MPI_Type_free(&odd);
    for (int turn = 0; turn < starts; ++turn) {
        exchange_fill(&vector, size, rank, turn);
        exchange_fill(&typed, size, rank, turn + 1000);
        /* Ranks start and wait in different orders, and some sit in other calls meanwhile. */
        const int first = (rank + turn) % 2;
        if (turn % 3 == 0) {
            MPI_Startall(2, plans);
        } else {
            MPI_Start(&plans[first]);
            MPI_Start(&plans[1 - first]);
        }
        if (turn % 5 == 2) MPI_Barrier(comm);
        if (turn % 5 == 4) {
            int token = rank;
            MPI_Sendrecv_replace(&token, 1, MPI_INT, (rank + 1) % size, 9, (rank + size - 1) % size, 9, comm,
                                 MPI_STATUS_IGNORE);
        }
        finish(&plans[1 - first], turn);
        finish(&plans[first], turn + 1);
        exchange_verify(&vector, size, rank, turn, "MPI_Alltoallv_init");
        exchange_verify(&typed, size, rank, turn + 1000, "MPI_Alltoallw_init");
    }
    MPI_Request_free(&plans[0]);
    MPI_Request_free(&plans[1]);
    exchange_free(&vector);
    exchange_free(&typed);
}

static void others(MPI_Comm comm) {
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    const int root = size - 1, block = 48;
    const size_t all = (size_t)(block * size);
    unsigned char *send = guarded_new(all), *blocks = guarded_new(all), *gathered = guarded_new(all),
                  *spread = guarded_new(all), *told = guarded_new(most), *swapped = guarded_new(all);
    int mine = 0, sum = 0;
    int *counts = malloc(sizeof(int) * (size_t)size), *places = malloc(sizeof(int) * (size_t)size);
    for (int peer = 0; peer < size; ++peer) {
        counts[peer] = block - peer % 2;
        places[peer] = block * peer;
    }
    MPI_Request plans[7];
    MPI_Alltoall_init(send, block, MPI_BYTE, blocks, block, MPI_BYTE, comm, MPI_INFO_NULL, &plans[0]);
    MPI_Allgather_init(send, block, MPI_BYTE, gathered, block, MPI_BYTE, comm, MPI_INFO_NULL, &plans[1]);
    MPI_Allgatherv_init(send, counts[rank], MPI_BYTE, spread, counts, places, MPI_BYTE, comm, MPI_INFO_NULL,
                        &plans[2]);
    MPI_Bcast_init(told, most, MPI_BYTE, root, comm, MPI_INFO_NULL, &plans[3]);
    MPI_Allreduce_init(&mine, &sum, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &plans[4]);
    MPI_Barrier_init(comm, MPI_INFO_NULL, &plans[5]);
    MPI_Alltoall_init(MPI_IN_PLACE, 0, MPI_BYTE, swapped, block, MPI_BYTE, comm, MPI_INFO_NULL, &plans[6]);
    for (int turn = 0; turn < starts; ++turn) {
        for (int peer = 0; peer < size; ++peer) {
            fill(send + block * peer, (size_t)block, seed_of(rank, peer, turn));
            fill(swapped + block * peer, (size_t)block, seed_of(rank, peer, turn + 500));
        }
        memset(blocks, poison_value, all);
        memset(gathered, poison_value, all);
        memset(spread, poison_value, all);
        memset(told, poison_value, most);
        if (rank == root) fill(told, most, (unsigned)turn);
        mine = rank + turn;
        sum = -1;
        MPI_Startall(7, plans);
        if (turn % 2 == 0)
            MPI_Waitall(7, plans, MPI_STATUSES_IGNORE);
        else
            for (int i = 0; i < 7; ++i) finish(&plans[(i + rank) % 7], turn / 2);
        for (int peer = 0; peer < size; ++peer) {
            verify(blocks + block * peer, (size_t)block, seed_of(peer, rank, turn), "MPI_Alltoall_init");
            verify(swapped + block * peer, (size_t)block, seed_of(peer, rank, turn + 500), "in place");
            verify(gathered + block * peer, (size_t)block, seed_of(peer, 0, turn), "MPI_Allgather_init");
            verify(spread + block * peer, (size_t)counts[peer], seed_of(peer, 0, turn),
                   "MPI_Allgatherv_init");
            for (int i = counts[peer]; i < block; ++i)
                CHECK(spread[block * peer + i] == poison_value, "a byte between two blocks");
        }
        verify(told, most, (unsigned)turn, "MPI_Bcast_init");
        CHECK(sum == size * (size - 1) / 2 + size * turn, "MPI_Allreduce_init: %d", sum);
    }
    for (int i = 6; i >= 0; --i) MPI_Request_free(&plans[i]);
    guarded_free(send, all);
    guarded_free(blocks, all);
    guarded_free(gathered, all);
    guarded_free(spread, all);
    guarded_free(told, most);
    guarded_free(swapped, all);
    free(counts);
    free(places);
}

/* THALWEG_TEST_TAKEN: by plans of ours. */
static int taken(void) { return getenv("THALWEG_TEST_TAKEN") != NULL; }

/* Each plan has a communicator while it lives: they must not run out. On 1 and 3 ranks; it takes long. */
static void many(MPI_Comm comm) {
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int *given = malloc(sizeof(int) * (size_t)size), *got = malloc(sizeof(int) * (size_t)size);
    for (int turn = 0; turn < 2500; ++turn) {
        MPI_Request plan;
        MPI_Alltoall_init(given, 1, MPI_INT, got, 1, MPI_INT, comm, MPI_INFO_NULL, &plan);
        if (turn % 100 == 0) {
            for (int peer = 0; peer < size; ++peer) given[peer] = turn + 10 * rank + peer;
            memset(got, 0, sizeof(int) * (size_t)size);
            MPI_Start(&plan);
            MPI_Wait(&plan, MPI_STATUS_IGNORE);
            for (int peer = 0; peer < size; ++peer)
                CHECK(got[peer] == turn + 10 * peer + rank, "plan %d: %d from %d", turn, got[peer], peer);
        }
        if (taken()) CHECK(was_accelerated(), "plan %d is not ours: %s", turn, last_reason());
        MPI_Request_free(&plan);
    }
    free(given);
    free(got);
}

static void larger(void* from, void* into, int* length, MPI_Datatype* type) {
    for (int i = 0; i < *length; ++i)
        if (((int*)from)[i] > ((int*)into)[i]) ((int*)into)[i] = ((int*)from)[i];
    (void)type;
}

/* MPICH's plans refuse it: it could be gone before a start. Open MPI 4.1 has plans of its own, which it must
 * outlive. */
static void own_operation(void) {
    int given = 0, got = 0, class = MPI_SUCCESS;
    struct {
        double value;
        int place;
    } pair, most_of_all;
    MPI_Op operation;
    MPI_Comm comm;
    MPI_Request plan;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Op_create(larger, 1, &operation);
    const int error = MPI_Allreduce_init(&given, &got, 1, MPI_INT, operation, comm, MPI_INFO_NULL, &plan);
    for (int turn = 0; turn < starts && error == MPI_SUCCESS; ++turn) {
        given = turn + check_rank;
        CHECK(MPI_Start(&plan) == MPI_SUCCESS, "an operation of the program's is not started");
        MPI_Wait(&plan, MPI_STATUS_IGNORE);
        CHECK(got == turn + check_size - 1, "the largest of %d: %d", check_size, got);
    }
    if (error == MPI_SUCCESS)
        MPI_Request_free(&plan);
    else
        MPI_Error_class(error, &class);
    MPI_Op_free(&operation);
    CHECK(class == MPI_SUCCESS || class == MPI_ERR_UNSUPPORTED_OPERATION, "error class %d", class);

    MPI_Allreduce_init(&pair, &most_of_all, 1, MPI_DOUBLE_INT, MPI_MAXLOC, comm, MPI_INFO_NULL, &plan);
    for (int turn = 0; turn < starts; ++turn) {
        pair.value = (check_rank + turn) % check_size;
        pair.place = check_rank;
        MPI_Start(&plan);
        MPI_Wait(&plan, MPI_STATUS_IGNORE);
        CHECK((most_of_all.place + turn) % check_size == check_size - 1, "the largest is at %d",
              most_of_all.place);
    }
    MPI_Request_free(&plan);
    MPI_Comm_free(&comm);
}

static void neighbours(const char* wanted) {
    const int around = 1;
    int size = check_size, left = (check_rank + size - 1) % size, right = (check_rank + 1) % size;
    int given[2] = {0, 0}, got[2] = {0, 0};
    MPI_Comm ring;
    MPI_Request plan;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &around, 0, &ring);
    MPI_Comm_set_errhandler(ring, MPI_ERRORS_RETURN);
    const int judged =
        class_of(MPI_Neighbor_alltoall_init(given, -1, MPI_INT, got, 1, MPI_INT, ring, MPI_INFO_NULL, &plan));
    CHECK(judged == MPI_ERR_ARG || judged == MPI_ERR_COUNT, "fewer than none: error class %d", judged);
    const int error =
        MPI_Neighbor_alltoall_init(given, 1, MPI_INT, got, 1, MPI_INT, ring, MPI_INFO_NULL, &plan);
    if (strcmp(wanted, "no_neighbours") == 0) {
        CHECK(class_of(error) == MPI_ERR_UNSUPPORTED_OPERATION,
              "neighbours that nobody serves: error class %d", class_of(error));
    } else {
        CHECK(error == MPI_SUCCESS, "MPI_Neighbor_alltoall_init: error %d (%s)", error, last_reason());
        for (int turn = 0; turn < starts; ++turn) {
            given[0] = turn + 10 * check_rank;
            given[1] = given[0] + 1;
            got[0] = got[1] = -1;
            MPI_Start(&plan);
            MPI_Wait(&plan, MPI_STATUS_IGNORE);
            CHECK(got[0] == turn + 10 * left + 1 && got[1] == turn + 10 * right, "neighbours: %d %d", got[0],
                  got[1]);
        }
        MPI_Request_free(&plan);
    }
    MPI_Comm_free(&ring);
}

static void fails(void) {
    int given[64] = {0}, got[64] = {0};
    MPI_Request plan;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    const int class =
        class_of(MPI_Alltoall_init(given, 1, MPI_INT, got, 1, MPI_INT, MPI_COMM_WORLD, MPI_INFO_NULL, &plan));
    CHECK(class == MPI_ERR_UNSUPPORTED_OPERATION, "plans that nobody serves: error class %d", class);
}

/* Rank 1 alone calls wrongly, and comes back while the others wait for its word. */
static void wrong(void) {
    int given[64] = {0}, got[64] = {0}, fewer[64], ones[64], places[64];
    MPI_Request plan;
    MPI_Datatype uncommitted;
    for (int i = 0; i < 64; ++i) fewer[i] = -1, ones[i] = 1, places[i] = i;
    MPI_Type_contiguous(1, MPI_INT, &uncommitted);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int round = 0; round < 3; ++round) {
        if (check_rank == 1) {
            CHECK(MPI_Alltoallv_init(given, fewer, places, MPI_INT, got, ones, places, MPI_INT,
                                     MPI_COMM_WORLD, MPI_INFO_NULL, &plan) != MPI_SUCCESS,
                  "an alltoallv of fewer than none");
            CHECK(MPI_Alltoall_init(given, 1, uncommitted, got, 1, MPI_INT, MPI_COMM_WORLD, MPI_INFO_NULL,
                                    &plan) != MPI_SUCCESS,
                  "a type that was not committed");
            CHECK(MPI_Bcast_init(given, 1, MPI_INT, check_size, MPI_COMM_WORLD, MPI_INFO_NULL, &plan) !=
                      MPI_SUCCESS,
                  "a root that is none");
        }
        for (int rank = 0; rank < check_size; ++rank) {
            if (check_rank == 1 && rank != 1) MPI_Send(NULL, 0, MPI_BYTE, rank, 5, MPI_COMM_WORLD);
            if (check_rank == rank && rank != 1)
                MPI_Recv(NULL, 0, MPI_BYTE, 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        exchanges(MPI_COMM_WORLD);
    }
    MPI_Type_free(&uncommitted);
}

/* A plan that has failed keeps its communicator: what it left there meets no later one. Another plan gives
 * its own back. */
static void failed_once(void) {
    int (*failed_there)(void);
    int given[64], got[64];
    MPI_Comm comm;
    MPI_Request plan;
    *(void**)&failed_there = dlsym(RTLD_DEFAULT, "thalweg_test_failed_there");
    CHECK(failed_there != NULL, "there is nothing that fails");
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    for (int turn = 0; turn < 4; ++turn) {
        const int fails_now = turn == 1;
        for (int peer = 0; peer < check_size; ++peer)
            given[peer] = turn + 10 * check_rank + peer, got[peer] = -1;
        MPI_Alltoall_init(given, 1, MPI_INT, got, 1, MPI_INT, comm, MPI_INFO_NULL, &plan);
        if (fails_now) setenv("THALWEG_TEST_FAULT", "Ialltoall", 1);
        MPI_Start(&plan);
        const int class = class_of(MPI_Wait(&plan, MPI_STATUS_IGNORE));
        unsetenv("THALWEG_TEST_FAULT");
        CHECK(class == (fails_now ? MPI_ERR_NO_SPACE : MPI_SUCCESS), "turn %d: class %d", turn, class);
        for (int peer = 0; peer < check_size && !fails_now; ++peer)
            CHECK(got[peer] == turn + 10 * peer + check_rank, "%d from %d", got[peer], peer);
        if (turn > 1) CHECK(!failed_there(), "a plan on the communicator of one that failed");
        MPI_Request_free(&plan);
    }
    MPI_Comm_free(&comm);
}

/* One rank learns of an error where the ranks agree on which communicators of plans nobody uses any more, and
 * must come back from MPI_Comm_free as from any other. */
static void freed(void) {
    enum { plans = 3, victim = 1 };
    int (*faults)(void);
    int given[64], got[64];
    MPI_Comm comm;
    MPI_Request plan[plans];
    *(void**)&faults = dlsym(RTLD_DEFAULT, "thalweg_test_faults");
    CHECK(faults != NULL, "there is nothing that fails");
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    for (int i = 0; i < plans; ++i)
        MPI_Alltoall_init(given, 1, MPI_INT, got, 1, MPI_INT, comm, MPI_INFO_NULL, &plan[i]);
    for (int i = 1; i < plans; ++i) MPI_Request_free(&plan[i]);
    setenv("THALWEG_TEST_FAULT", "Allreduce:1:1", 1);
    CHECK(MPI_Comm_free(&comm) == MPI_SUCCESS && comm == MPI_COMM_NULL, "MPI_Comm_free fails");
    unsetenv("THALWEG_TEST_FAULT");
    CHECK(faults() == (check_rank == victim), "%d calls failed", faults());
    /* The plan that is left does what it did, and tells of the library's own error where there is one. */
    for (int turn = 0; turn < starts; ++turn) {
        for (int peer = 0; peer < check_size; ++peer) given[peer] = turn + 10 * check_rank + peer;
        MPI_Start(&plan[0]);
        MPI_Wait(&plan[0], MPI_STATUS_IGNORE);
        for (int peer = 0; peer < check_size; ++peer)
            CHECK(got[peer] == turn + 10 * peer + check_rank, "%d from %d", got[peer], peer);
    }
    setenv("THALWEG_TEST_FAULT", "Ialltoall", 1);
    MPI_Start(&plan[0]);
    CHECK(class_of(MPI_Wait(&plan[0], MPI_STATUS_IGNORE)) == MPI_ERR_NO_SPACE, "not the library's error");
    unsetenv("THALWEG_TEST_FAULT");
    MPI_Request_free(&plan[0]);
    failed_once();
    exchanges(MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, wanted_level());
    const char* const what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "freed") == 0) return freed(), check_end();
    if (strcmp(what, "left") == 0) return left_plans(), check_end();
    if (strcmp(what, "wrong") == 0) return wrong(), check_end();
    if (strcmp(what, "fails") == 0) return fails(), check_end();
    MPI_Comm part;
    MPI_Comm_split(MPI_COMM_WORLD, check_rank % 2, -check_rank, &part);
    const MPI_Comm comms[] = {MPI_COMM_WORLD, part, MPI_COMM_SELF};
    for (int i = 0; i < 3; ++i) {
        exchanges(comms[i]);
        others(comms[i]);
        exchanges(comms[i]);
    }
    if (check_size != 2) many(MPI_COMM_WORLD);
    own_operation();
    MPI_Comm_free(&part);
    if (check_size > 2 && argc > 1) neighbours(argv[1]);
    return check_end();
}
