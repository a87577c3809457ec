/* Wrong arguments: the MPI library judges them, with and without Thalweg alike, and the next call works.
 *
 *     arguments                of broadcasts
 *     arguments collectives    the same memory twice or none, types that were not committed
 *     arguments handler        an error handler frees the communicator of an alltoall that is being timed
 *     arguments meanwhile      an error handler is set while Thalweg sets its communicator up
 */
#include <limits.h>

#include "works.h"

enum { block = 5000, most_ranks = 8 };
static int sent[most_ranks * block], received[most_ranks * block];

/* The library's own word comes first, by the name that nothing stands in front of. */
static void agree(const char* what, int own, int got) {
    CHECK(class_of(own) == class_of(got), "%s gives class %d, and class %d without Thalweg", what,
          class_of(got), class_of(own));
}

static void number_blocks(void) {
    for (int i = 0; i < most_ranks * block; ++i) received[i] = check_rank * 7 + i;
}
static void verify_gathered(const char* what) {
    for (int i = 0; i < check_size * block; ++i)
        CHECK(received[i] == i / block * 7 + i, "%s: element %d is %d", what, i, received[i]);
}

static void collectives(MPI_Comm comm) {
    int counts[most_ranks], places[most_ranks];
    int* const own = received + check_rank * block;
    for (int i = 0; i < check_size; ++i) counts[i] = block, places[i] = i * block;
    for (int round = 0; round < 2; ++round) {
        for (int i = 0; i < block; ++i) sent[i] = i;
        const int reduced = PMPI_Allreduce(sent, sent, block, MPI_INT, MPI_SUM, comm);
        for (int i = 0; i < block; ++i) sent[i] = i;
        const int taken = MPI_Allreduce(sent, sent, block, MPI_INT, MPI_SUM, comm);
        agree("an aliased allreduce", reduced, taken);
        for (int i = 0; i < block && taken == MPI_SUCCESS; ++i)
            CHECK(sent[i] == i * check_size, "an aliased allreduce: element %d is %d", i, sent[i]);

        /* Which not every library lets pass. */
        agree("a logical and of Fortran's integers",
              PMPI_Allreduce(sent, received, block, MPI_INTEGER, MPI_LAND, comm),
              MPI_Allreduce(sent, received, block, MPI_INTEGER, MPI_LAND, comm));

        number_blocks();
        const int gathered = PMPI_Allgather(own, block, MPI_INT, received, block, MPI_INT, comm);
        number_blocks();
        agree("an aliased allgather", gathered,
              MPI_Allgather(own, block, MPI_INT, received, block, MPI_INT, comm));
        if (gathered == MPI_SUCCESS) verify_gathered("an aliased allgather");

        number_blocks();
        const int ragged = PMPI_Allgatherv(own, block, MPI_INT, received, counts, places, MPI_INT, comm);
        number_blocks();
        agree("an aliased allgatherv", ragged,
              MPI_Allgatherv(own, block, MPI_INT, received, counts, places, MPI_INT, comm));
        if (ragged == MPI_SUCCESS) verify_gathered("an aliased allgatherv");

        /* Rank 1 gives nothing, and says so with its place in what it receives. */
        counts[1] = 0;
        for (int i = 1; i < check_size; ++i) places[i] -= block;
        for (int i = 0; i < block; ++i) sent[i] = check_rank * 7 + i;
        const void* const given = check_rank == 1 ? received + places[1] : sent;
        memset(received, 0, sizeof received);
        const int fewer =
            PMPI_Allgatherv(given, counts[check_rank], MPI_INT, received, counts, places, MPI_INT, comm);
        memset(received, 0, sizeof received);
        agree("an allgatherv with an empty place of its own", fewer,
              MPI_Allgatherv(given, counts[check_rank], MPI_INT, received, counts, places, MPI_INT, comm));
        if (expect_thalweg() && check_size > 1) CHECK(was_accelerated(), "native: %s", last_reason());
        for (int rank = 0; rank < check_size; ++rank)
            for (int i = 0; i < counts[rank]; ++i)
                CHECK(received[places[rank] + i] == rank * 7 + i, "rank %d: element %d is %d", rank, i,
                      received[places[rank] + i]);
        for (int i = 0; i < check_size; ++i) counts[i] = block, places[i] = i * block;

        MPI_Datatype pairs;
        MPI_Type_vector(block / 2, 1, 2, MPI_INT, &pairs);
        agree("a broadcast of a type that was not committed", PMPI_Bcast(sent, 1, pairs, 0, comm),
              MPI_Bcast(sent, 1, pairs, 0, comm));
        agree("an allgather of such a type", PMPI_Allgather(sent, 1, pairs, received, 1, pairs, comm),
              MPI_Allgather(sent, 1, pairs, received, 1, pairs, comm));
        /* Committed later, it is like any other. */
        MPI_Type_commit(&pairs);
        memset(received, 0, sizeof received);
        for (int i = 0; i < block; ++i) sent[i] = i + check_rank;
        CHECK(MPI_Allgather(sent, 1, pairs, received, block / 2, MPI_INT, comm) == MPI_SUCCESS, "committed");
        if (expect_thalweg() && check_size > 1) CHECK(was_accelerated(), "native: %s", last_reason());
        for (int i = 0; i < check_size * (block / 2); ++i)
            CHECK(received[i] == i % (block / 2) * 2 + i / (block / 2), "element %d is %d", i, received[i]);
        /* No memory, where a type of several runs would be. */
        MPI_Datatype twos;
        MPI_Type_vector(2, 1, 2, MPI_INT, &twos);
        MPI_Type_commit(&twos);
        for (int i = 0; i < check_size; ++i) counts[i] = block / 2, places[i] = i * block;
#if !defined(OPEN_MPI) /* where that is a fault */
        agree("a broadcast to nowhere", PMPI_Bcast(NULL, block, twos, 0, comm),
              MPI_Bcast(NULL, block, twos, 0, comm));
        agree("an allgatherv to nowhere",
              PMPI_Allgatherv(sent, block, MPI_INT, NULL, counts, places, twos, comm),
              MPI_Allgatherv(sent, block, MPI_INT, NULL, counts, places, twos, comm));
#else /* which has a word for this */
        agree("an allgatherv without places",
              PMPI_Allgatherv(sent, block, MPI_INT, received, counts, NULL, twos, comm),
              MPI_Allgatherv(sent, block, MPI_INT, received, counts, NULL, twos, comm));
#endif
#if !defined(OPEN_MPI)
        /* By one rank alone, which is where it was before. */
        if (check_rank == round % check_size) {
            CHECK(MPI_Bcast(NULL, block, twos, 0, comm) != MPI_SUCCESS, "a broadcast from nowhere");
            CHECK(MPI_Allgather(NULL, block, MPI_INT, received, block, MPI_INT, comm) != MPI_SUCCESS,
                  "an allgather from nowhere");
            CHECK(MPI_Allgather(sent, block, MPI_INT, NULL, block, MPI_INT, comm) != MPI_SUCCESS,
                  "an allgather to nowhere");
            CHECK(MPI_Allgatherv(sent, block, MPI_INT, NULL, counts, places, twos, comm) != MPI_SUCCESS,
                  "an allgatherv to nowhere");
            CHECK(MPI_Allreduce(NULL, received, block, MPI_INT, MPI_SUM, comm) != MPI_SUCCESS,
                  "a sum from nowhere");
        }
        for (int i = 0; i < block; ++i) sent[i] = check_rank * 7 + i;
        CHECK(MPI_Allgather(sent, block, MPI_INT, received, block, MPI_INT, comm) == MPI_SUCCESS,
              "an allgather behind wrong calls");
        for (int i = 0; i < check_size * block; ++i)
            CHECK(received[i] == i / block * 7 + i % block, "behind wrong calls: element %d is %d", i,
                  received[i]);
#endif
        for (int i = 0; i < check_size; ++i) counts[i] = block, places[i] = i * block;
        MPI_Type_free(&twos);
        MPI_Type_free(&pairs);
        works(comm, "wrong collectives");
    }

    /* Types with as many blocks as an int counts are looked at as quickly as any other. */
    MPI_Datatype large, nested;
    MPI_Type_vector(INT_MAX, 1, 1, MPI_CHAR, &large);
    MPI_Type_commit(&large);
    MPI_Type_create_hvector(INT_MAX, 0, 8, MPI_CHAR, &nested);
    MPI_Type_commit(&nested);
    for (int i = 0; i < check_size; ++i) counts[i] = places[i] = 0;
    const clock_t before = clock();
    CHECK(MPI_Allgatherv(sent, 0, large, received, counts, places, large, comm) == MPI_SUCCESS, "large");
    CHECK(MPI_Allgatherv(sent, 0, nested, received, counts, places, nested, comm) == MPI_SUCCESS, "nested");
    const double seconds = (double)(clock() - before) / CLOCKS_PER_SEC;
    CHECK(seconds < 0.5, "%g s for types of INT_MAX blocks", seconds);
    MPI_Type_free(&large);
    MPI_Type_free(&nested);
}

static int handled = 0;
static void free_it(MPI_Comm* comm, int* code, ...) {
    (void)code;
    ++handled;
    MPI_Comm_free(comm);
}

/* Run with MALLOC_PERTURB_=3, so that what is freed is seen to be. */
static void handler(void) {
    MPI_Errhandler freeing;
    MPI_Comm_create_errhandler(free_it, &freeing);
    int counts[most_ranks], wrong[most_ranks], places[most_ranks];
    for (int i = 0; i < most_ranks; ++i) counts[i] = 16, wrong[i] = -1, places[i] = 16 * i;
    /* Some of the first calls on a communicator are timed. */
    for (int good = 0; good < 8; ++good) {
        MPI_Comm comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        MPI_Comm_set_errhandler(comm, freeing);
        for (int i = 0; i < good; ++i)
            MPI_Alltoallv(sent, counts, places, MPI_INT, received, counts, places, MPI_INT, comm);
        MPI_Alltoallv(sent, wrong, places, MPI_INT, received, wrong, places, MPI_INT, comm);
        CHECK(handled == good + 1, "%d errors handled", handled);
    }
    MPI_Errhandler_free(&freeing);
}

/* Handles are addresses in Open MPI: what lies behind a stale one is nobody's. */
#if !defined(OPEN_MPI)
static void count_it(MPI_Comm* comm, int* code, ...) {
    (void)comm, (void)code;
    ++handled;
}

/* Rank 1 alone goes on with a communicator that was freed. The next one may get its handle. */
static void stale(MPI_Comm good) {
    static unsigned char data[40000];
    MPI_Errhandler counting;
    MPI_Comm_create_errhandler(count_it, &counting);
    MPI_Comm made;
    MPI_Comm_dup(good, &made);
    const MPI_Comm left = made;
    MPI_Comm_free(&made);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, counting);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, counting);
    for (int call = 0; call < 5 && check_rank == 1; ++call) {
        const char* const names[] = {"broadcast", "allgather", "allreduce", "alltoall",
                                     "nonblocking broadcast"};
        MPI_Request request;
        int codes[2], times[2];
        for (int ours = 0; ours < 2; ++ours) {
            handled = 0;
            codes[ours] =
                call == 0   ? (ours ? MPI_Bcast : PMPI_Bcast)(data, sizeof data, MPI_BYTE, 0, left)
                : call == 1 ? (ours ? MPI_Allgather : PMPI_Allgather)(sent, block, MPI_INT, received, block,
                                                                      MPI_INT, left)
                : call == 2
                    ? (ours ? MPI_Allreduce : PMPI_Allreduce)(sent, received, block, MPI_INT, MPI_SUM, left)
                : call == 3
                    ? (ours ? MPI_Alltoall : PMPI_Alltoall)(sent, 1, MPI_INT, received, 1, MPI_INT, left)
                    : (ours ? MPI_Ibcast : PMPI_Ibcast)(data, sizeof data, MPI_BYTE, 0, left, &request);
            times[ours] = handled;
        }
        agree(names[call], codes[0], codes[1]);
        CHECK(times[0] == times[1], "a %s: the error handler ran %d times, and %d times without Thalweg",
              names[call], times[1], times[0]);
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Errhandler_free(&counting);
    MPI_Comm_dup(good, &made);
    works(made, "a stale handle");
    MPI_Comm_free(&made);
}
#endif

/* Run with faults.c, which sets a handler whenever Thalweg has replaced one. */
static void meanwhile(void) {
    MPI_Errhandler own, now;
    MPI_Comm comm;
    MPI_Comm_create_errhandler(free_it, &own);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, own);
    works(comm, "an error handler was set");
    MPI_Comm_get_errhandler(comm, &now);
    CHECK(now == MPI_ERRORS_ARE_FATAL, "the handler that was set meanwhile is gone");
    MPI_Errhandler_free(&own);
    MPI_Comm_free(&comm);
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, MPI_THREAD_SINGLE);
    if (argc > 1 && strcmp(argv[1], "handler") == 0) {
        handler();
        return check_end();
    }
    if (argc > 1 && strcmp(argv[1], "meanwhile") == 0) {
        meanwhile();
        return check_end();
    }
    MPI_Comm comm;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    static unsigned char data[40000];
    works(comm, "nothing");
    if (argc > 1 && strcmp(argv[1], "collectives") == 0) {
        collectives(comm);
        MPI_Comm_free(&comm);
        return check_end();
    }
    struct {
        const char* what;
        int got, want;
    } tried[] = {
        {"root -5", MPI_Bcast(data, sizeof data, MPI_BYTE, -5, comm), MPI_ERR_ROOT},
        {"root = size", MPI_Bcast(data, sizeof data, MPI_BYTE, check_size, comm), MPI_ERR_ROOT},
        {"a negative count", MPI_Bcast(data, -1, MPI_BYTE, 0, comm), MPI_ERR_COUNT},
        {"no datatype", MPI_Bcast(data, sizeof data, MPI_DATATYPE_NULL, 0, comm), MPI_ERR_TYPE},
#if !defined(MPI_ABI_VERSION)
        {"no handle of a datatype", MPI_Bcast(data, sizeof data, (MPI_Datatype)0, 0, comm), MPI_ERR_TYPE},
#endif
        {"no communicator", MPI_Bcast(data, sizeof data, MPI_BYTE, 0, MPI_COMM_NULL), MPI_ERR_COMM},
    };
    for (size_t i = 0; i < sizeof tried / sizeof *tried; ++i) {
        CHECK(class_of(tried[i].got) == tried[i].want, "%s gives class %d, not %d", tried[i].what,
              class_of(tried[i].got), tried[i].want);
        works(comm, tried[i].what);
    }

#if !defined(OPEN_MPI)
    if (check_size > 1) stale(comm);
#endif

    /* The user's error handler is still the user's after our set-up spoke on the communicator. */
    MPI_Errhandler handler;
    MPI_Comm_get_errhandler(comm, &handler);
    CHECK(handler == MPI_ERRORS_RETURN, "the error handler was changed");

    /* A receiver that expects more than the root sends gets an error, not a hang and not a success. */
    if (check_size > 1 && expect_thalweg()) {
        MPI_Comm pair;
        MPI_Comm_split(MPI_COMM_WORLD, check_rank < 2 ? 0 : MPI_UNDEFINED, 0, &pair);
        if (pair != MPI_COMM_NULL) {
            MPI_Comm_set_errhandler(pair, MPI_ERRORS_RETURN);
            set_option("THALWEG_BCAST", "linear");
            const int code = MPI_Bcast(data, check_rank == 0 ? 16384 : 20000, MPI_BYTE, 0, pair);
            if (check_rank == 1) CHECK(code != MPI_SUCCESS, "a short message was reported as a whole one");
            MPI_Comm_free(&pair);
        } else {
            set_option("THALWEG_BCAST", "linear");
        }
    }
    MPI_Comm_free(&comm);
    return check_end();
}
