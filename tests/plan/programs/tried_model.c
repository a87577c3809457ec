/* Allgathers, allgathervs and allreduces between hosts of which no tuning table speaks: what the cost model
 * chooses for them takes turns with the MPI library's own, as of broadcasts (tried.c). Every rank does the
 * same at every call; bytes are right. What rounds is never tried: its bits would change with its way.
 *
 *     tried_model told       THALWEG_RATE says what the network does
 *     tried_model found      the first large call finds that out, and is ours
 *     tried_model vain       that is not to be found out: of broadcasts, too
 *     tried_model early      found out in MPI_Init; they run on the lane of nonblocking ones
 *     tried_model fortran    as told, from Fortran
 *     tried_model medium     all calls are of medium size: one of them finds out what the network does
 */
#include "tried.h"

#if !defined(MPI_ABI_VERSION)
#include "fortran.h"
#endif

/* Of a rank's block, or of what ranks give on average, and of a vector that is reduced: too small for the
 * tables that speak of slow links, should this machine look like one while it is busy. */
enum {
    most_ranks = 8,
    block = 40000,
    vector = 98304,
    larger = 300000,
    medium = 20000,
    opening = 1 << 20,
    gap = 3,
    calls = 120
};
typedef enum { allgather, allgatherv, allreduce, broadcast } Kind;
static const char* const options[] = {"THALWEG_ALLGATHER", "THALWEG_ALLGATHER", "THALWEG_ALLREDUCE"};

typedef int AllgatherLarge(const void*, MPI_Count, MPI_Datatype, void*, MPI_Count, MPI_Datatype, MPI_Comm);
typedef int AllgathervLarge(const void*, MPI_Count, MPI_Datatype, void*, const MPI_Count*, const MPI_Aint*,
                            MPI_Datatype, MPI_Comm);
typedef int AllreduceLarge(const void*, void*, MPI_Count, MPI_Datatype, MPI_Op, MPI_Comm);
static AllgatherLarge* allgather_large;
static AllgathervLarge* allgatherv_large;
static AllreduceLarge* allreduce_large;

static unsigned char *own, *all;
static unsigned seed;
static int in_fortran;

#if defined(MPI_ABI_VERSION)
static void call_fortran(Kind kind, const int* counts, const int* places, int count, MPI_Datatype type,
                         MPI_Op operation, MPI_Comm comm) {
    (void)kind, (void)counts, (void)places, (void)count, (void)type, (void)operation, (void)comm;
}
#else
static void call_fortran(Kind kind, const int* counts, const int* places, int count, MPI_Datatype type,
                         MPI_Op operation, MPI_Comm comm) {
    static const char* const names[] = {"mpi_allgather", "mpi_allgatherv", "mpi_allreduce"};
    MPI_Fint handle = MPI_Comm_c2f(comm), of = MPI_Type_c2f(type), by = MPI_Op_c2f(operation), items = count;
    MPI_Fint code = -1;
    void (*call)();
    *(void**)&call = fortran(names[kind], 0);
    if (kind == allgather)
        call(own, &items, &of, all, &items, &of, &handle, &code);
    else if (kind == allgatherv)
        call(own, &items, &of, all, counts, places, &of, &handle, &code);
    else
        call(own, all, &items, &of, &by, &handle, &code);
    CHECK(code == MPI_SUCCESS, "%s returns %d", names[kind], (int)code);
}
#endif

/* Blocks of `bytes`, or of as many on average, with gaps between them. */
static void gather(Kind kind, MPI_Comm comm, size_t bytes, const char* name) {
    int size, rank, counts[most_ranks], places[most_ranks];
    MPI_Count many[most_ranks];
    MPI_Aint far[most_ranks];
    MPI_Comm_size(comm, &size);
    MPI_Comm_rank(comm, &rank);
    for (int i = 0; i < size; ++i) {
        many[i] = counts[i] = (int)bytes + (kind == allgatherv ? 64 * (2 * i - size + 1) : 0);
        far[i] = places[i] = i == 0 ? 0 : places[i - 1] + counts[i - 1] + (kind == allgatherv ? gap : 0);
    }
    fill(own, (size_t)counts[rank], seed + (unsigned)rank);
    memset(all, poison_value, (size_t)(places[size - 1] + counts[size - 1]));
    const int large = seed % 3 == 0 && allgather_large != NULL;
    if (in_fortran)
        call_fortran(kind, counts, places, counts[rank], MPI_BYTE, MPI_SUM, comm);
    else if (kind == allgather && large)
        allgather_large(own, (MPI_Count)bytes, MPI_BYTE, all, (MPI_Count)bytes, MPI_BYTE, comm);
    else if (kind == allgather)
        MPI_Allgather(own, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, comm);
    else if (large)
        allgatherv_large(own, many[rank], MPI_BYTE, all, many, far, MPI_BYTE, comm);
    else
        MPI_Allgatherv(own, counts[rank], MPI_BYTE, all, counts, places, MPI_BYTE, comm);
    for (int i = 0; i < size; ++i) verify(all + places[i], (size_t)counts[i], seed + (unsigned)i, name);
}

/* Sums of ints and masks of longs, which take turns: of all that do not round the bits are the same. */
static void reduce(MPI_Comm comm, size_t bytes, const char* name) {
    int size, rank;
    MPI_Comm_size(comm, &size);
    MPI_Comm_rank(comm, &rank);
    const int masks = seed % 2 == 1;
    const size_t count = bytes / (masks ? sizeof(long) : sizeof(int));
    long *const bits = (long*)own, *const united = (long*)all;
    int *const terms = (int*)own, *const sums = (int*)all;
    for (size_t i = 0; i < count && masks; ++i) bits[i] = (long)(i << 8) | 1L << rank;
    for (size_t i = 0; i < count && !masks; ++i) terms[i] = (int)i * (rank + 1);
    memset(all, poison_value, bytes);
    const MPI_Datatype type = masks ? MPI_LONG : MPI_INT;
    const MPI_Op operation = masks ? MPI_BOR : MPI_SUM;
    if (in_fortran)
        call_fortran(allreduce, NULL, NULL, (int)count, type, operation, comm);
    else if (seed % 3 == 0 && allreduce_large != NULL)
        allreduce_large(own, all, (MPI_Count)count, type, operation, comm);
    else
        MPI_Allreduce(own, all, (int)count, type, operation, comm);
    for (size_t i = 0; i < count && masks; ++i)
        CHECK(united[i] == ((long)(i << 8) | ((1L << size) - 1)), "%s: mask %zu is %lx", name, i, united[i]);
    for (size_t i = 0; i < count && !masks; ++i)
        CHECK(sums[i] == (int)i * size * (size + 1) / 2, "%s: sum %zu is %d", name, i, sums[i]);
}

static void spread(MPI_Comm comm, size_t bytes, const char* name) {
    int size, rank;
    MPI_Comm_size(comm, &size);
    MPI_Comm_rank(comm, &rank);
    const int root = (int)(seed % (unsigned)size);
    memset(all, poison_value, bytes);
    if (rank == root) fill(all, bytes, seed);
    MPI_Bcast(all, (int)bytes, MPI_BYTE, root, comm);
    verify(all, bytes, seed, name);
}

static void next(Kind kind, Series* series) {
    ++seed;
    const uint64_t before = looked_at();
    if (kind == allreduce)
        reduce(series->comm, series->bytes, series->name);
    else if (kind == broadcast)
        spread(series->comm, series->bytes, series->name);
    else
        gather(kind, series->comm, series->bytes, series->name);
    look_at_turn(series, looked_at() != before && was_accelerated());
}

/* ours: nothing is known of the network, nor will be before that call. */
static void open_channel(MPI_Comm comm, int ours) {
    ++seed;
    gather(allgather, comm, opening, "the first");
    if (expect_thalweg() && ours) CHECK(was_accelerated(), "the first is native: %s", last_reason());
}

/* The first call is ours, or another's has opened the channel, and so is every one. */
static void sums_that_round(MPI_Comm comm, MPI_Op operation) {
    enum { count = 140000, rounds = 2 * calls_before + trial_calls };
    static double terms[count], first[count], sums[count];
    for (int i = 0; i < count; ++i) terms[i] = 1.0 / (1 + i + 7919 * check_rank);
    for (int round = 0; round < rounds; ++round) {
        MPI_Allreduce(terms, round == 0 ? first : sums, count, MPI_DOUBLE, operation, comm);
        if (expect_thalweg()) CHECK(was_accelerated(), "sum %d is native: %s", round, last_reason());
        CHECK(round == 0 || memcmp(first, sums, sizeof sums) == 0, "sum %d has other bits", round);
    }
}

/* Where two ranks are alone, no schedule gains anything. */
static void pairs(void) {
    MPI_Comm pair;
    MPI_Comm_split(MPI_COMM_WORLD, check_rank / 2, 0, &pair);
    for (int call = 0; call < 2 * calls_before; ++call) {
        ++seed;
        gather(allgather, pair, larger, "a pair");
        CHECK(!was_accelerated(), "call %d of a pair is one of ours", call);
        reduce(pair, vector, "a pair");
        CHECK(!was_accelerated(), "reduction %d of a pair is one of ours", call);
    }
    MPI_Comm_free(&pair);
}

/* Freed in the midst of its trial; what is declined meanwhile for other reasons is not counted. Gathers are
 * of a size of their own, of which no other has had a trial; where reductions of this one were left to the
 * library, which `left` says, they are here, too (tried_again.c). What was found out of the network, unless
 * that was in vain, is known there. */
static void interrupted(Kind kind, int opened, int vain, int left) {
    MPI_Comm twin;
    MPI_Comm_dup(MPI_COMM_WORLD, &twin);
    if (opened) open_channel(twin, vain);
    Series series = begin(twin, "a duplicate", kind == allreduce ? vector : block / 2);
    const int most = left ? until_set_up / 2 : calls;
    for (int call = 0; call < most && (series.first < 0 || series.call < series.first + 6); ++call)
        next(kind, &series);
    if (left) CHECK(series.first < 0, "what was left to the library is tried on a duplicate");
    set_option(options[kind], "native");
    for (int call = 0; call < 3; ++call) {
        ++seed;
        if (kind == allreduce)
            reduce(twin, series.bytes, "natively");
        else
            gather(kind, twin, series.bytes, "natively");
        CHECK(!was_accelerated(), "accelerated although the native library was asked for");
    }
    set_option(options[kind], NULL);
    for (int call = 0; call < 5; ++call) next(kind, &series);
    MPI_Comm_free(&twin);
}

/* On a communicator all of whose broadcasts are like that, one is ours soon: it measures the network. */
static void only_medium(MPI_Comm comm) {
    int ours = 0;
    for (int call = 0; call < until_set_up && ours == 0; ++call) {
        ++seed;
        spread(comm, medium, "a medium one");
        ours += was_accelerated();
    }
    if (expect_thalweg()) CHECK(ours > 0, "no broadcast of %d bytes is ours: %s", medium, last_reason());
    spread(comm, medium / 4, "a small one");
    CHECK(!was_accelerated(), "a broadcast of %d bytes is ours", medium / 4);
}

int main(int argc, char** argv) {
    const char* const mode = argc > 1 ? argv[1] : "told";
    const int vain = strcmp(mode, "vain") == 0, found = vain || strcmp(mode, "found") == 0;
    check_start(&argc, &argv, MPI_THREAD_SINGLE);
    CHECK(check_size > 2 && check_size <= most_ranks, "between 3 and %d ranks", most_ranks);
    in_fortran = strcmp(mode, "fortran") == 0;
#if defined(MPI_ABI_VERSION)
    if (in_fortran) SKIP("its header knows no Fortran");
#else
    if (in_fortran) load_fortran();
#endif
    *(void**)&allgather_large = dlsym(RTLD_DEFAULT, "MPI_Allgather_c");
    *(void**)&allgatherv_large = dlsym(RTLD_DEFAULT, "MPI_Allgatherv_c");
    *(void**)&allreduce_large = dlsym(RTLD_DEFAULT, "MPI_Allreduce_c");
    own = guarded_new(opening);
    all = guarded_new(most_ranks * (opening + gap));

    if (strcmp(mode, "medium") == 0) {
        only_medium(MPI_COMM_WORLD);
        guarded_free(own, opening);
        guarded_free(all, most_ranks * (opening + gap));
        return check_end();
    }
    if (found) open_channel(MPI_COMM_WORLD, 1);
    /* Alike but for what they do, and for their size: each has trials of its own. */
    const int told = strcmp(mode, "told") == 0, all_series = told || vain ? 4 : 3;
    const Kind kinds[] = {allgather, allgatherv, allreduce, vain ? broadcast : allgather};
    Series series[] = {begin(MPI_COMM_WORLD, "allgathers", block),
                       begin(MPI_COMM_WORLD, "allgathervs", block),
                       begin(MPI_COMM_WORLD, "allreduces", vector),
                       begin(MPI_COMM_WORLD, vain ? "broadcasts" : "larger ones", larger)};
    for (int call = 0; call < calls; ++call)
        for (int which = 0; which < all_series; ++which) next(kinds[which], &series[which]);
    for (int which = 0; which < all_series; ++which)
        CHECK(is_judged(&series[which]), "no verdict on %s", series[which].name);

    for (int kind = allgather; kind <= allreduce; ++kind)
        interrupted((Kind)kind, found, vain, kind == allreduce && series[kind].way == 0);
    if (!in_fortran) {
        MPI_Comm twin;
        MPI_Comm_dup(MPI_COMM_WORLD, &twin);
        sums_that_round(twin, MPI_SUM);
        sums_that_round(MPI_COMM_WORLD, MPI_MAX);
        MPI_Comm_free(&twin);
    }
    pairs();
    guarded_free(own, opening);
    guarded_free(all, most_ranks * (opening + gap));
    return check_end();
}
