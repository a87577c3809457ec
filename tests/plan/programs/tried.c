/* Broadcasts that a tuning table (tried.json) wants tried: natively until a set-up pays, then sixteen in both
 * ways in turns, then all in the way that was faster. Every rank does the same at every call; bytes are
 * right.
 *
 *     tried          calls from C, with and without large counts, of one type here and another one there
 *     tried model    without a table, of links that none speaks of: two ranks alone are the library's there
 *     tried fortran  the same from Fortran
 *     tried unseen   communicators are freed without our seeing it: what they had is freed all the same
 *     tried slow     the table (slow.json) names what is hardly ever faster: what follows a verdict for
 *                    native calls is counted alike on all ranks up to the next trial, by which way it comes
 *     tried broken   a broadcast of another size fails (faults.c, broken.json): those that were left to
 *                    native calls fail from then on, too
 *     tried asleep   ranks sleep, and the table (spinning.json) speaks of those that spin; or it speaks of
 *                    the host's memory (tried_shm.json), which cannot be had: all are native
 */
#include "tried.h"

#if !defined(MPI_ABI_VERSION)
#include "fortran.h"
#endif

enum { tried_from = 65536, most_bytes = 1 << 20 };

static unsigned char* data;
static unsigned seed;
static int in_fortran;
typedef int BroadcastLarge(void*, MPI_Count, MPI_Datatype, int, MPI_Comm);
static BroadcastLarge* broadcast_large;

static void broadcast(int count, MPI_Datatype type, int root, MPI_Comm comm) {
#if !defined(MPI_ABI_VERSION)
    if (in_fortran) {
        MPI_Fint handle = MPI_Comm_c2f(comm), kind = MPI_Type_c2f(type), items = count, from = root, code;
        void (*call)();
        *(void**)&call = fortran("mpi_bcast", 0);
        call(data, &items, &kind, &from, &handle, &code);
        return;
    }
#endif
    if (broadcast_large != NULL && seed % 3 == 0)
        broadcast_large(data, count, type, root, comm);
    else
        MPI_Bcast(data, count, type, root, comm);
}

static void next(Series* series) {
    int size, rank;
    MPI_Comm_size(series->comm, &size);
    MPI_Comm_rank(series->comm, &rank);
    const int root = (int)(++seed % (unsigned)size);
    static const unsigned char mark = 0x3c;
    memset(data, mark, series->bytes);
    if (rank == root) fill(data, series->bytes, seed);
    const int wide = (rank + (int)seed) % 2;
    const uint64_t before = looked_at();
    broadcast((int)(series->bytes / (wide ? 8 : 1)), wide ? MPI_DOUBLE : MPI_BYTE, root, series->comm);
    /* Behind a verdict for native calls the wrapper makes them without a look. */
    const int ran = looked_at() != before && was_accelerated();
    if (ran && getenv("THALWEG_TEST_OVER") != NULL) {
        thalweg_last_call call = {.bytes = 0};
        look_last_call(&call, sizeof call);
        CHECK(strcmp(call.transport, getenv("THALWEG_TEST_OVER")) == 0, "%s: call %d went over %s",
              series->name, series->call, call.transport);
    }
    verify(data, series->bytes, seed, series->name);
    look_at_turn(series, ran);
}

/* Of pairs of one host each, in a world of several. */
static void asleep(void) {
    MPI_Comm pair;
    MPI_Comm_split(MPI_COMM_WORLD, check_rank / 2, 0, &pair);
    for (int i = 0; i < until_set_up; ++i) {
        memset(data, check_rank % 2, most_bytes);
        MPI_Bcast(data, most_bytes, MPI_BYTE, 0, pair);
        CHECK(!was_accelerated(), "call %d is one of ours: %s", i, last_reason());
        CHECK(data[most_bytes - 1] == 0, "call %d: the bytes are not the root's", i);
    }
    MPI_Comm_free(&pair);
}

/* Of two sizes that are tried together, and of one that is not. Wrong calls, of one rank, count for nothing.
 */
static void slow(void) {
    enum { calls = 560, of_others = 5, larger = 7, wrong = 11 };
    int ran = 0;
    Series series = begin(MPI_COMM_WORLD, "slow ones", tried_from);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int call = 0; call < calls; ++call) {
        const size_t bytes = call % larger == 0      ? most_bytes
                             : call % of_others == 0 ? tried_from + 8
                                                     : tried_from;
        static const unsigned char mark = 0x3c;
        const int root = (int)(++seed % (unsigned)check_size);
        memset(data, mark, bytes);
        if (check_rank == root) fill(data, bytes, seed);
        const uint64_t before = looked_at();
        broadcast((int)bytes, MPI_BYTE, root, MPI_COMM_WORLD);
        const int ours = looked_at() != before && was_accelerated();
        verify(data, bytes, seed, series.name);
        int ways[2] = {ours, -ours};
        MPI_Allreduce(MPI_IN_PLACE, ways, 2, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        CHECK(ways[0] == -ways[1], "some ranks ran call %d, others did not: %s", call, last_reason());
        ran += ours;
        if (check_rank == 0 && call % wrong == 0)
            CHECK(MPI_Bcast(data, (int)bytes, MPI_BYTE, check_size, MPI_COMM_WORLD) != MPI_SUCCESS,
                  "there is no such root");
    }
    CHECK(!expect_thalweg() || check_size == 1 || ran >= trial_calls / 2, "only %d calls were ours", ran);
}

/* Rank 0 alone makes the last calls: natively they would wait for the others, or send what nobody takes. */
static void broken(void) {
    enum { calls = until_set_up + trial_calls + 20 };
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    for (int call = 0; call < 2 * calls_before; ++call) MPI_Bcast(data, most_bytes, MPI_BYTE, 0, comm);
    CHECK(!expect_thalweg() || was_accelerated(), "the larger ones are not ours: %s", last_reason());
    for (int call = 0; call < calls; ++call) MPI_Bcast(data, tried_from, MPI_BYTE, 0, comm);
    const int ours = was_accelerated();
    if (ours && check_rank == 0) printf("nothing to be seen: what is hardly ever faster was\n");
    if (check_rank == 0 && expect_thalweg()) {
        setenv("THALWEG_TEST_FAULT", "Isend:1:0", 1);
        CHECK(MPI_Bcast(data, most_bytes, MPI_BYTE, 0, comm) != MPI_SUCCESS, "nothing was sent");
        CHECK(ours || MPI_Bcast(data, tried_from, MPI_BYTE, 0, comm) != MPI_SUCCESS,
              "those of the other size are left to the library");
    }
    MPI_Comm_free(&comm);
}

/* As by a tool that was loaded behind us. */
static void unseen(void) {
    enum { communicators = 200, first = 40, most_kib = 6000 };
    long before = 0;
    for (int i = 0; i < communicators; ++i) {
        MPI_Comm twin;
        MPI_Comm_dup(MPI_COMM_WORLD, &twin);
        for (int call = 0; call < until_set_up; ++call) MPI_Bcast(data, tried_from, MPI_BYTE, 0, twin);
        PMPI_Comm_free(&twin);
        if (i == first) before = resident_kib();
    }
    const long more = resident_kib() - before;
    CHECK(more < most_kib, "%d communicators left %ld KiB", communicators - first, more);
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, MPI_THREAD_SINGLE);
    in_fortran = argc > 1 && strcmp(argv[1], "fortran") == 0;
#if defined(MPI_ABI_VERSION)
    if (in_fortran) SKIP("its header knows no Fortran");
#else
    if (in_fortran) load_fortran();
#endif
    *(void**)&broadcast_large = dlsym(RTLD_DEFAULT, "MPI_Bcast_c");
    data = guarded_new(most_bytes);
    if (argc > 1 && strcmp(argv[1], "asleep") == 0) {
        asleep();
        guarded_free(data, most_bytes);
        return check_end();
    }

    if (argc > 1 && strcmp(argv[1], "slow") == 0) {
        slow();
        guarded_free(data, most_bytes);
        return check_end();
    }
    if (argc > 1 && strcmp(argv[1], "broken") == 0) {
        broken();
        guarded_free(data, most_bytes);
        return check_end();
    }
    if (argc > 1 && strcmp(argv[1], "unseen") == 0) {
        unseen();
        guarded_free(data, most_bytes);
        return check_end();
    }

    MPI_Comm pair, twin;
    const int of_model = argc > 1 && strcmp(argv[1], "model") == 0;
    MPI_Comm_split(MPI_COMM_WORLD, of_model ? 0 : check_rank / 2, 0, &pair);
    Series all[] = {begin(MPI_COMM_WORLD, "the world", tried_from),
                    begin(MPI_COMM_WORLD, "larger ones", most_bytes), begin(pair, "pairs", tried_from + 8)};
    /* What is smaller is no one's to try, and counts for nothing. */
    Series small = begin(MPI_COMM_WORLD, "small ones", tried_from / 8);
    for (int i = 0; i < 120; ++i) {
        for (int which = 0; which < 3; ++which) {
            next(&all[which]);
            if (which != i % 3) continue;
            memset(data, 0, small.bytes);
            MPI_Bcast(data, (int)small.bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
            /* Where it is not seen, the last call is the one before. */
            thalweg_last_call call = {.bytes = 0};
            if (look_last_call != NULL) look_last_call(&call, sizeof call);
            CHECK(!call.accelerated || call.bytes != small.bytes, "a small one runs");
        }
    }
    int judged = 0;
    for (int which = 0; which < 3; ++which) judged += is_judged(&all[which]);
    int alone;
    MPI_Comm_size(pair, &alone);
    CHECK(judged + (alone == 1) >= 3 || check_size == 1, "%d of 3 were judged", judged);

    /* Freed in the midst of its trial; another one begins anew. */
    for (int times = 0; times < 2; ++times) {
        MPI_Comm_dup(MPI_COMM_WORLD, &twin);
        /* Of a size of its own, of which no other has had a trial that it would wait for (tried_again.c). */
        const size_t bytes = most_bytes >> (1 + times);
        Series once = begin(twin, "a duplicate", bytes);
        for (int i = 0; i < 100 && (once.first < 0 || once.call < once.first + 6); ++i) next(&once);
        /* What is declined for other reasons is not counted. */
        if (expect_thalweg() && times == 1) {
            set_option("THALWEG_BCAST", "native");
            for (int i = 0; i < 3; ++i) {
                MPI_Bcast(data, (int)bytes, MPI_BYTE, 0, twin);
                CHECK(!was_accelerated(), "accelerated although the native library was asked for");
            }
            set_option("THALWEG_BCAST", NULL);
            for (int i = 0; i < 20; ++i) next(&once);
            CHECK(check_size == 1 || once.way >= 0, "no verdict");
        }
        MPI_Comm_free(&twin);
    }
    MPI_Comm_free(&pair);
    guarded_free(data, most_bytes);
    return check_end();
}
