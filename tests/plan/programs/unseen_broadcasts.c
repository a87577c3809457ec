/* Broadcasts that a trial (unseen_broadcasts.json, of what is far from faster) leaves to the library, and
 * that their wrapper passes on by itself. Each rank describes a message in its own way, and another one in
 * each run of calls: what one rank's wrapper passes on, another one's asks about each time. Sizes of one
 * class and of two take turns, communicators are freed and made anew, what is asked for changes, and wrong
 * calls of one rank count for nothing. All ranks count alike: one that did not would come to the next trial
 * alone, and bytes would be missing.
 *
 *     unseen_broadcasts CALLS            at least so many, and says how many, for report.py
 *     unseen_broadcasts CALLS meets      a nonblocking call's communicator is set up in the next of them
 *     unseen_broadcasts CALLS threads    so many by each of two threads, on communicators of their own
 */
#include <pthread.h>

#include "check.h"

#if !defined(MPI_ABI_VERSION)
#include "fortran.h"
static int with_fortran;
#endif

/* All of them whole elements of every type. */
enum { of_no_row = 512, one_kib = 1024, of_its_class = 1032, large = 4096, most_bytes = large };
typedef enum { in_bytes, in_doubles, in_own_type, in_large_counts, in_fortran, ways } Way;

typedef int BroadcastLarge(void*, MPI_Count, MPI_Datatype, int, MPI_Comm);
static BroadcastLarge* broadcast_large; /* null where the library has none */

/* Of a thread's calls: a type that was made, of which no wrapper knows the size. */
static _Thread_local MPI_Datatype own_type;
static _Thread_local int own_bytes;
static _Thread_local unsigned char* data;
static _Thread_local unsigned seed;
static _Thread_local unsigned long made, made_bytes, unseen;

static void make_own_type(int bytes) {
    own_bytes = bytes;
    MPI_Type_contiguous(bytes, MPI_BYTE, &own_type);
    MPI_Type_commit(&own_type);
}

/* Not of all libraries, which then have it in bytes. */
static int by_other_names(Way way, int bytes, int root, MPI_Comm comm) {
    if (way == in_large_counts && broadcast_large != NULL) {
        broadcast_large(data, bytes, MPI_BYTE, root, comm);
        return 1;
    }
#if !defined(MPI_ABI_VERSION)
    if (way == in_fortran && with_fortran) {
        MPI_Fint handle = MPI_Comm_c2f(comm), type = MPI_Type_c2f(MPI_BYTE), count = bytes, from = root, code;
        void (*call)();
        *(void**)&call = fortran("mpi_bcast", 0);
        call(data, &count, &type, &from, &handle, &code);
        return 1;
    }
#endif
    return 0;
}

static void broadcast(Way way, int bytes, int root, MPI_Comm comm) {
    if (way == in_doubles)
        MPI_Bcast(data, bytes / (int)sizeof(double), MPI_DOUBLE, root, comm);
    else if (way == in_own_type)
        MPI_Bcast(data, bytes / own_bytes, own_type, root, comm);
    else if (!by_other_names(way, bytes, root, comm))
        MPI_Bcast(data, bytes, MPI_BYTE, root, comm);
}

/* Whether it was ours. Counts no checks, because threads come here. */
static int next(Way way, int bytes, MPI_Comm comm) {
    const int root = (int)(++seed % (unsigned)check_size);
    memset(data, poison_value, most_bytes);
    if (check_rank == root) fill(data, (size_t)bytes, seed);
    const uint64_t before = looked_at();
    broadcast(way, bytes, root, comm);
    const int seen = looked_at() != before;
    for (int i = 0; i < most_bytes; ++i)
        if (data[i] != (i < bytes ? pattern((uint64_t)i, seed) : poison_value))
            FAIL("broadcast %lu: byte %d of %d is wrong", made, i, bytes);
    if (!seen && way == in_own_type && expect_thalweg()) FAIL("broadcast %lu was not looked at", made);
    unseen += !seen;
    ++made;
    made_bytes += (unsigned long)bytes;
    return seen && was_accelerated();
}

static void call_wrongly(int bytes, MPI_Comm comm) {
    CHECK(MPI_Bcast(data, bytes, MPI_BYTE, check_size, comm) != MPI_SUCCESS, "there is no such root");
    CHECK(MPI_Bcast(data, -bytes, MPI_BYTE, 0, comm) != MPI_SUCCESS, "there are no so few bytes");
    if (is_open_mpi()) return; /* which takes the others' word for the rest, and faults */
    CHECK(MPI_Bcast(NULL, bytes, MPI_BYTE, 0, comm) != MPI_SUCCESS, "there is no memory");
    CHECK(MPI_Bcast(NULL, bytes / own_bytes, own_type, 0, comm) != MPI_SUCCESS, "no memory of this type");
    MPI_Datatype uncommitted;
    MPI_Type_contiguous(bytes, MPI_BYTE, &uncommitted);
    CHECK(MPI_Bcast(data, 1, uncommitted, 0, comm) != MPI_SUCCESS, "the type was not committed");
    MPI_Type_free(&uncommitted);
}

static unsigned mixed(unsigned x) {
    x = (x ^ x >> 16) * 0x45d9f3bu;
    x = (x ^ x >> 16) * 0x45d9f3bu;
    return x ^ x >> 16;
}

/* One rank's way stays for as long as a run. */
static void run_of_calls(unsigned number, MPI_Comm comm) {
    enum { of_two_classes, of_one_class, of_large_ones, patterns = 6 };
    enum { wrong = 11, other = 37 };
    const unsigned mix = mixed(2 * number);
    const Way way = (Way)(mixed(2 * (number * 8 + (unsigned)check_rank) + 1) % ways);
    const unsigned kind = mix % patterns;
    const int calls = mix >> 8 & 3 ? 100 + (int)(mix >> 10) % 900 : 1 + (int)(mix >> 10) % 20;
    int ours = 0;
    make_own_type(2 << number % 3);
    for (int i = 0; i < calls; ++i) {
        int bytes = kind == of_large_ones ? large : one_kib;
        if (kind == of_two_classes && i % 2 == 1) bytes = large;
        if (kind == of_one_class && i % other == other - 1) bytes = of_its_class;
        ours += next(way, bytes, comm);
        if (check_rank == 0 && i % wrong == 0) call_wrongly(bytes, comm);
    }
    MPI_Type_free(&own_type);
    int most[2] = {ours, -ours};
    MPI_Allreduce(MPI_IN_PLACE, most, 2, MPI_INT, MPI_MAX, comm);
    CHECK(most[0] == -most[1], "run %u: %d broadcasts were ours here, %d elsewhere", number, ours, most[0]);
}

static void duplicate(MPI_Comm* twin) {
    MPI_Comm_dup(MPI_COMM_WORLD, twin);
    MPI_Comm_set_errhandler(*twin, MPI_ERRORS_RETURN);
}

static void ask_for_the_library(MPI_Comm comm) {
    set_option("THALWEG_BCAST", "native");
    for (int i = 0; i < 3; ++i)
        CHECK(!next(in_doubles, one_kib, comm), "ours although the library was asked for: %s", last_reason());
    set_option("THALWEG_BCAST", NULL);
}

static void many(unsigned long calls) {
    enum { until_freed = 7, until_asked = 31 };
    MPI_Comm twin;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    duplicate(&twin);
    for (unsigned run = 1; made < calls; ++run) {
        run_of_calls(run, run % 3 == 0 ? twin : MPI_COMM_WORLD);
        if (run % until_asked == 0) ask_for_the_library(run % 2 ? twin : MPI_COMM_WORLD);
        if (run % until_freed != 0) continue;
        /* By turns without our seeing it. */
        if (run % 2)
            MPI_Comm_free(&twin);
        else
            PMPI_Comm_free(&twin);
        duplicate(&twin);
    }
    MPI_Comm_free(&twin);
    if (check_rank == 0)
        printf("made %lu broadcasts of %lu bytes, %lu of them unseen\n", made, made_bytes, unseen);
    /* Where ranks share cores, what a trial finds is their turns. */
    if (expect_thalweg() && check_size == 2 && calls >= 20000)
        CHECK(unseen > made / 10, "only %lu broadcasts of %lu were passed on by wrappers", unseen, made);
}

/* The first nonblocking one on `comm` is native, and says that the communicator is to be set up. */
static void meet_in_the_next(MPI_Comm comm) {
    enum { bytes = 64, most_ranks = 8, most_rounds = 10 };
    static unsigned char block[bytes], blocks[most_ranks * bytes];
    CHECK(check_size <= most_ranks, "too many ranks");
    fill(block, bytes, (unsigned)check_rank);
    int round = 0, ours = 0;
    while (!ours && round++ < most_rounds) {
        MPI_Request request;
        MPI_Iallgather(block, bytes, MPI_BYTE, blocks, bytes, MPI_BYTE, comm, &request);
        ours = was_accelerated();
        if (!ours) {
            /* Wrappers ask about all of them now, and no row speaks of these. */
            next(in_bytes, of_no_row, MPI_COMM_WORLD);
            if (expect_thalweg())
                CHECK(strcmp(last_reason(), "native is expected to be best") == 0, "why: %s", last_reason());
        }
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (int rank = 0; rank < check_size; ++rank)
            verify(blocks + rank * bytes, bytes, (unsigned)rank, "a gathered block");
        next(in_bytes, one_kib, comm);
    }
    if (expect_thalweg()) CHECK(ours, "no broadcast was where it is set up: %s", last_reason());
}

static void meets(unsigned long calls) {
    set_option("THALWEG_ALLGATHER", "ring");
    for (int times = 0; times < 3; ++times) {
        MPI_Comm twin;
        duplicate(&twin);
        for (unsigned long i = 0; times > 0 && i < calls; ++i) next(in_bytes, one_kib, twin);
        meet_in_the_next(twin);
        for (unsigned long i = 0; i < calls; ++i) next(in_bytes, one_kib, twin);
        MPI_Comm_free(&twin);
    }
}

typedef struct {
    MPI_Comm base; /* the thread's own */
    int number;
    unsigned long calls, unseen;
} Thread;

/* Each communicator may have the handle of one that the other thread has freed. */
static void* of_a_thread(void* argument) {
    enum { communicators = 4 };
    Thread* const own = argument;
    data = guarded_new(most_bytes);
    seed = 1000000u * (unsigned)own->number;
    make_own_type(8);
    for (int i = 0; i < communicators; ++i) {
        MPI_Comm comm;
        MPI_Comm_dup(own->base, &comm);
        const Way way = (Way)((i + own->number + check_rank) % ways);
        for (unsigned long call = 0; call < own->calls / communicators; ++call)
            next(way, call % 100 == 99 ? large : one_kib, comm);
        MPI_Comm_free(&comm);
    }
    MPI_Type_free(&own_type);
    for (int i = 0; i < guard_bytes; ++i)
        if (data[-1 - i] != guard_value || data[most_bytes + i] != guard_value) FAIL("a guard byte %d", i);
    free(data - guard_bytes);
    own->unseen = unseen;
    return NULL;
}

static void threads(unsigned long calls) {
    enum { count = 2 };
    Thread all[count];
    pthread_t started[count];
    for (int i = 0; i < count; ++i) {
        all[i] = (Thread){.number = i, .calls = calls};
        MPI_Comm_dup(MPI_COMM_WORLD, &all[i].base);
    }
    for (int i = 0; i < count; ++i) pthread_create(&started[i], NULL, of_a_thread, &all[i]);
    for (int i = 0; i < count; ++i) {
        pthread_join(started[i], NULL);
        MPI_Comm_free(&all[i].base);
    }
    if (check_rank == 0) printf("unseen of %lu: %lu and %lu\n", calls, all[0].unseen, all[1].unseen);
}

int main(int argc, char** argv) {
    const char* const what = argc > 2 ? argv[2] : "";
    const int in_threads = strcmp(what, "threads") == 0;
    check_start(&argc, &argv, in_threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE);
    const unsigned long calls = argc > 1 ? strtoul(argv[1], NULL, 10) : 20000;
    *(void**)&broadcast_large = dlsym(RTLD_DEFAULT, "MPI_Bcast_c");
#if !defined(MPI_ABI_VERSION)
    with_fortran = has_fortran();
#endif
    data = guarded_new(most_bytes);
    if (in_threads)
        threads(calls);
    else if (strcmp(what, "meets") == 0)
        meets(calls);
    else
        many(calls);
    guarded_free(data, most_bytes);
    return check_end();
}
