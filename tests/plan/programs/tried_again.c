/* Communicators that are made, called on and freed in a loop: what a trial on one of them found counts on the
 * next, and that a trial ended with its communicator does, too. So no more is lost on many of them than on
 * one. Every rank does the same at every call, though some have been on communicators that others were not
 * on; bytes are right.
 *
 *     tried_again              broadcasts and allgathers between hosts that only the cost model speaks for
 *     tried_again exchanges    alltoalls on one host (tried_exchanges.json)
 */
#include "tried.h"

enum { most_ranks = 8, broadcast_bytes = 65536, block_bytes = 20000, pair_bytes = 16384 };
/* More than it takes until the first is ours on a communicator that owes nothing; and one that owes what a
 * trial costs that ended with its communicator, a hundred calls, has all of them native. */
enum { many_calls = until_set_up + 10 };

typedef enum { broadcast, allgather, alltoall } Kind;
static const char* const names[] = {"broadcasts", "allgathers", "alltoalls"};

static unsigned char *from, *to;
static unsigned seed;

static void next(Kind kind, Series* series) {
    const size_t bytes = series->bytes;
    int size, rank;
    MPI_Comm_size(series->comm, &size);
    MPI_Comm_rank(series->comm, &rank);
    ++seed;
    memset(to, poison_value, bytes * (size_t)size);
    for (int peer = 0; peer < size; ++peer)
        fill(from + (size_t)peer * bytes, bytes,
             seed * 64 + (unsigned)(rank * 8 + (kind == alltoall ? peer : 0)));
    const int root = (int)(seed % (unsigned)size);
    if (kind == broadcast && rank == root) memcpy(to, from, bytes);
    const uint64_t before = looked_at();
    if (kind == broadcast)
        MPI_Bcast(to, (int)bytes, MPI_BYTE, root, series->comm);
    else if (kind == allgather)
        MPI_Allgather(from, (int)bytes, MPI_BYTE, to, (int)bytes, MPI_BYTE, series->comm);
    else
        MPI_Alltoall(from, (int)bytes, MPI_BYTE, to, (int)bytes, MPI_BYTE, series->comm);
    const int ran = looked_at() != before && was_accelerated();
    if (kind == broadcast)
        verify(to, bytes, seed * 64 + (unsigned)(root * 8), series->name);
    else
        for (int peer = 0; peer < size; ++peer)
            verify(to + (size_t)peer * bytes, bytes,
                   seed * 64 + (unsigned)(peer * 8 + (kind == alltoall ? rank : 0)), series->name);
    look_at_turn(series, ran);
}

/* Up to the first of ours and six calls of its trial; frees it then. */
static void break_off(Kind kind, MPI_Comm comm, size_t bytes) {
    Series series = begin(comm, names[kind], bytes);
    for (int call = 0; call < until_set_up + 6 && (series.first < 0 || series.call < series.first + 6);
         ++call)
        next(kind, &series);
    MPI_Comm_free(&comm);
}

/* One where a verdict is reached; whether that takes ours. -1: Thalweg is not here. */
static int judge(Kind kind, MPI_Comm comm, size_t bytes) {
    enum { calls = until_set_up + trial_calls + 10 };
    Series series = begin(comm, names[kind], bytes);
    for (int call = 0; call < calls; ++call) next(kind, &series);
    CHECK(is_judged(&series), "%s: no verdict", names[kind]);
    MPI_Comm_free(&comm);
    return series.way;
}

static void leave_native(Kind kind, MPI_Comm comm, size_t bytes) {
    Series series = begin(comm, names[kind], bytes);
    for (int call = 0; call < many_calls; ++call) {
        /* Which asks for one of ours at some call, where it is told that none has come. */
        if (series.call == until_set_up - 1) series.call = calls_before;
        next(kind, &series);
        CHECK(series.first < 0, "%s: call %d is tried, as on the communicator before", names[kind], call);
    }
    MPI_Comm_free(&comm);
}

static MPI_Comm duplicate(void) {
    MPI_Comm twin;
    MPI_Comm_dup(MPI_COMM_WORLD, &twin);
    return twin;
}

static void loop(Kind kind, size_t bytes) {
    break_off(kind, duplicate(), bytes);
    leave_native(kind, duplicate(), bytes);
    /* All but some calls of what the first one cost have been. */
    const int way = judge(kind, duplicate(), bytes);
    if (way > 0)
        break_off(kind, duplicate(), bytes);
    else
        leave_native(kind, duplicate(), bytes);
}

/* Of the first ranks, and of the last, which are on as many hosts: one of these was not there. */
static void groups(void) {
    enum { bytes = 2 * broadcast_bytes };
    MPI_Comm first, last;
    MPI_Comm_split(MPI_COMM_WORLD, check_rank < check_size - 1 ? 0 : MPI_UNDEFINED, 0, &first);
    MPI_Comm_split(MPI_COMM_WORLD, check_rank > 0 ? 0 : MPI_UNDEFINED, 0, &last);
    if (first != MPI_COMM_NULL) break_off(broadcast, first, bytes);
    seed = 1u << 20; /* of ranks that have made other calls */
    if (last != MPI_COMM_NULL) leave_native(broadcast, last, bytes);
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, MPI_THREAD_SINGLE);
    CHECK(check_size <= most_ranks, "too many ranks");
    from = guarded_new(most_ranks * 2 * broadcast_bytes);
    to = guarded_new(most_ranks * 2 * broadcast_bytes);
    if (argc > 1 && strcmp(argv[1], "exchanges") == 0) {
        loop(alltoall, pair_bytes);
    } else {
        loop(broadcast, broadcast_bytes);
        loop(allgather, block_bytes);
        if (check_size > 3) groups();
    }
    guarded_free(from, most_ranks * 2 * broadcast_bytes);
    guarded_free(to, most_ranks * 2 * broadcast_bytes);
    return check_end();
}
