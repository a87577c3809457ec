/* Exchanges on one host that a tuning table (tried_exchanges.json) wants tried. Of alltoalls every rank knows
 * the size; others are looked at, some again and again, and calls between are counted without being looked
 * at. Every rank does the same at every call; bytes are right.
 *
 *     tried_exchanges        sizes that grow, kinds and communicators beside one another, what is asked for
 * meanwhile tried_exchanges few    as many calls as report.py wants to read of
 *     tried_exchanges shrunk         calls that are small for a trial, and then large again
 */
#include "check.h"

enum {
    small_bytes = 64,
    tried_bytes = 16384,
    most_ranks = 8,
    until_tried = 80,
    between = 200,
    few_calls = 150,
    trial_calls = 16,
    freed_comms = 40,
    freed_calls = 15
};

typedef enum { alltoall, alltoallv, alltoallw } Kind;
static const char* const names[] = {"MPI_Alltoall", "MPI_Alltoallv", "MPI_Alltoallw"};

static unsigned char *from, *to;
static unsigned seed;
static int calls_between = 200, is_native = 0; /* calls between two trials; none can be ours */
static int is_refused = 0; /* rank 0 makes wrong calls, too, of which nothing is counted */

static unsigned seed_of(int sender, int receiver) { return seed * 64 + (unsigned)(sender * 8 + receiver); }

/* What the library refuses one rank counts for nothing. */
static void call_wrongly_with_arrays(Kind kind, MPI_Comm comm, size_t bytes) {
    int counts[most_ranks], places[most_ranks];
    MPI_Datatype types[most_ranks], uncommitted;
    MPI_Type_contiguous((int)bytes, MPI_BYTE, &uncommitted);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    for (int peer = 0; peer < most_ranks; ++peer) {
        counts[peer] = 1;
        places[peer] = 0;
        types[peer] = uncommitted;
    }
    if (kind == alltoallv)
        CHECK(MPI_Alltoallv(from, counts, places, uncommitted, to, counts, places, uncommitted, comm) !=
                  MPI_SUCCESS,
              "the type was not committed");
    else
        CHECK(MPI_Alltoallw(from, counts, places, types, to, counts, places, types, comm) != MPI_SUCCESS,
              "the types were not committed");
    MPI_Type_free(&uncommitted);
#if defined(OPEN_MPI) /* others read counts without asking whether there are any */
    if (kind == alltoallv)
        CHECK(MPI_Alltoallv(from, counts, places, MPI_BYTE, to, NULL, places, MPI_BYTE, comm) != MPI_SUCCESS,
              "there were no counts");
#endif
}

/* The same of an alltoall, whose size all ranks know. */
static void call_wrongly(MPI_Comm comm, size_t bytes) {
    MPI_Datatype uncommitted;
    MPI_Type_contiguous((int)bytes, MPI_BYTE, &uncommitted);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    CHECK(MPI_Alltoall(from, 1, uncommitted, to, (int)bytes, MPI_BYTE, comm) != MPI_SUCCESS,
          "the type was not committed");
    MPI_Type_free(&uncommitted);
    CHECK(MPI_Alltoall(from, -1, MPI_BYTE, to, (int)bytes, MPI_BYTE, comm) != MPI_SUCCESS,
          "a negative count of what is sent");
#if !defined(OPEN_MPI) /* which lets that pass, and would wait */
    CHECK(MPI_Alltoall(to, (int)bytes, MPI_BYTE, to, (int)bytes, MPI_BYTE, comm) != MPI_SUCCESS,
          "what is sent is what is received");
#endif
}

/* Of `bytes` per pair. Whether it was one of ours, on all ranks alike. */
static int exchange(Kind kind, MPI_Comm comm, size_t bytes) {
    enum { wrong = 11 };
    int size, rank, counts[most_ranks], places[most_ranks];
    MPI_Datatype types[most_ranks];
    MPI_Comm_size(comm, &size);
    MPI_Comm_rank(comm, &rank);
    CHECK(size <= most_ranks, "too many ranks");
    ++seed;
    if (kind == alltoall && bytes == tried_bytes && rank == 0 && seed % wrong == 0) call_wrongly(comm, bytes);
    if (kind != alltoall && is_refused && rank == 0 && seed % wrong == 0)
        call_wrongly_with_arrays(kind, comm, bytes);
    memset(to, 0x3c, bytes * (size_t)size);
    for (int peer = 0; peer < size; ++peer) {
        fill(from + (size_t)peer * bytes, bytes, seed_of(rank, peer));
        counts[peer] = (int)bytes;
        places[peer] = peer * (int)bytes;
        types[peer] = MPI_BYTE;
    }
    const uint64_t before = looked_at();
    if (kind == alltoall)
        MPI_Alltoall(from, (int)bytes, MPI_BYTE, to, (int)bytes, MPI_BYTE, comm);
    else if (kind == alltoallv)
        MPI_Alltoallv(from, counts, places, MPI_BYTE, to, counts, places, MPI_BYTE, comm);
    else
        MPI_Alltoallw(from, counts, places, types, to, counts, places, types, comm);
    const int ran = looked_at() != before && was_accelerated();
    for (int peer = 0; peer < size; ++peer)
        verify(to + (size_t)peer * bytes, bytes, seed_of(peer, rank), names[kind]);
    int ways[2] = {ran, -ran};
    MPI_Allreduce(MPI_IN_PLACE, ways, 2, MPI_INT, MPI_MAX, comm);
    CHECK(ways[0] == -ways[1], "%s %u: some ranks ran it, others did not", names[kind], seed);
    return ran;
}

/* How many calls there were up to the first of ours, it included; 0: none of `most`. */
static int until_ours(Kind kind, MPI_Comm comm, size_t bytes, int most) {
    for (int call = 1; call <= most; ++call)
        if (exchange(kind, comm, bytes)) return call;
    return 0;
}

static int is_expected(MPI_Comm comm) {
    int size;
    MPI_Comm_size(comm, &size);
    return expect_thalweg() && size > 1 && !is_native;
}

/* What was small for long grows: it is looked at when as many calls have been as between two trials. */
static void grows(Kind kind, MPI_Comm comm) {
    CHECK(until_ours(kind, comm, small_bytes, 30) == 0, "%s: a small one was tried", names[kind]);
    const int calls = until_ours(kind, comm, tried_bytes, calls_between + until_tried);
    if (!is_expected(comm)) return;
    CHECK(calls > 0, "%s: none is tried (%s)", names[kind], last_reason());
    /* Of an alltoall the size is known at once, and small ones counted for nothing. */
    CHECK(calls > (kind == alltoall ? 8 : 100), "%s: call %d was tried", names[kind], calls);
}

/* Calls of a size that is tried become small, so that a whole trial finds none, and then what they were: they
 * are looked at again, and tried. When trials come depends on what calls take. */
static void shrinks(MPI_Comm comm) {
    enum { most_calls = 1000000, longer_than_a_trial = 64 };
    int ours = 0, since = 0;
    CHECK(until_ours(alltoallv, comm, tried_bytes, until_tried) > 0 || !is_expected(comm),
          "a large one is not tried (%s)", last_reason());
    if (!is_expected(comm)) return;
    for (int call = 0; call < trial_calls; ++call) exchange(alltoallv, comm, tried_bytes);
    for (int call = 0; call < most_calls && (ours == 0 || since < longer_than_a_trial); ++call) {
        const int is_ours = exchange(alltoallv, comm, small_bytes);
        ours += is_ours;
        since = is_ours ? 0 : since + 1;
    }
    CHECK(ours > 0 && since >= longer_than_a_trial, "small ones: %d were ours, %d since were not", ours,
          since);
    CHECK(until_ours(alltoallv, comm, tried_bytes, most_calls) > 0,
          "large ones are tried no more behind small ones (%s)", last_reason());
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, MPI_THREAD_SINGLE);
    from = guarded_new(most_ranks * tried_bytes);
    to = guarded_new(most_ranks * tried_bytes);
    const char* const what = argc > 1 ? argv[1] : "";
    is_native = strcmp(what, "native") == 0;
    if (strcmp(what, "few") == 0) {
        for (int call = 0; call < few_calls; ++call) exchange(alltoallv, MPI_COMM_WORLD, small_bytes);
        /* More than the report keeps apart. */
        for (int round = 0; round < freed_comms; ++round) {
            MPI_Comm freed;
            MPI_Comm_dup(MPI_COMM_WORLD, &freed);
            for (int call = 0; call < freed_calls; ++call) exchange(alltoallv, freed, small_bytes);
            MPI_Comm_free(&freed);
        }
    } else if (strcmp(what, "shrunk") == 0) {
        shrinks(MPI_COMM_WORLD);
    } else {
        const int in_pairs = strcmp(what, "pairs") == 0;
        is_refused = 1;
        MPI_Comm ours, twin;
        MPI_Comm_split(MPI_COMM_WORLD, in_pairs ? check_rank / 2 : 0, 0, &ours);
        if (in_pairs) calls_between = 1000;
        MPI_Comm_dup(ours, &twin);
        /* One of them is counted without being looked at, the others beside it as usual. */
        for (int call = 0; call < 60; ++call) {
            exchange(alltoallv, ours, small_bytes);
            exchange(alltoallv, twin, small_bytes);
            exchange(alltoallw, ours, small_bytes);
        }
        for (Kind kind = alltoall; kind <= alltoallw; ++kind) {
            grows(kind, ours);
            grows(kind, twin);
        }
        MPI_Comm_free(&twin);

        /* Communicators that are freed while their calls are passed on: the next one may have the same
         * handle. */
        for (int round = 0; round < 40; ++round) {
            MPI_Comm other;
            MPI_Comm_split(MPI_COMM_WORLD, check_rank / 2, 0, &other);
            for (int call = 0; call < 12 + round % 5; ++call) exchange(alltoallv, other, small_bytes);
            MPI_Comm_free(&other);
        }

        /* What is asked for in between is done at once, and forgotten at once. */
        MPI_Comm_dup(ours, &twin);
        for (int call = 0; call < 40; ++call) exchange(alltoallv, twin, small_bytes);
        set_option("THALWEG_ALLTOALLV", "native");
        CHECK(!exchange(alltoallv, twin, small_bytes), "native calls were asked for");
        set_option("THALWEG_ALLTOALLV", NULL);
        CHECK(!exchange(alltoallv, twin, small_bytes), "nothing is asked for any more");
        grows(alltoallv, twin);
        MPI_Comm_free(&twin);
        MPI_Comm_free(&ours);
    }
    guarded_free(from, most_ranks * tried_bytes);
    guarded_free(to, most_ranks * tried_bytes);
    return check_end();
}
