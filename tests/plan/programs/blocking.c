/* Blocking MPI_Allgather, MPI_Allgatherv and MPI_Allreduce: when they are taken and when not, on which
 * communicators, and what the report would say. The bytes themselves are judged by collectives.c too.
 *
 *   blocking auto      nothing asked for, pretended hosts: taken once a set-up pays, small ones never
 *   blocking forced    THALWEG_ALLGATHER and THALWEG_ALLREDUCE ask for algorithms: all sizes, communicators
 * of all kinds, settings that change, threads, a lane that comes in between
 *   blocking floats stable|early|native|free    what is taken of floating-point reductions, and that equal
 * operands give equal bits in every call but with free */
#include <pthread.h>

#include "check.h"

static void allgather(MPI_Comm comm, size_t bytes, unsigned seed) {
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    unsigned char* const own = guarded_new(bytes);
    unsigned char* const all = guarded_new(bytes * (size_t)size);
    fill(own, bytes, seed + (unsigned)rank);
    MPI_Allgather(own, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, comm);
    for (int i = 0; i < size; ++i) verify(all + bytes * (size_t)i, bytes, seed + (unsigned)i, "an allgather");
    guarded_free(own, bytes);
    guarded_free(all, bytes * (size_t)size);
}

static void allreduce(MPI_Comm comm, int count, int seed) {
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int* const values = malloc(((size_t)count + 1) * sizeof(int));
    for (int i = 0; i < count; ++i) values[i] = seed + i * (rank + 1);
    MPI_Allreduce(MPI_IN_PLACE, values, count, MPI_INT, MPI_SUM, comm);
    for (int i = 0; i < count; ++i)
        CHECK(values[i] == size * seed + i * size * (size + 1) / 2, "an allreduce: byte %d is wrong", 4 * i);
    free(values);
}

static void expect(int taken, const char* what) {
    if (!expect_thalweg()) return;
    CHECK(was_accelerated() == taken, "%s: %s", what, taken ? last_reason() : "was taken");
}
static void expect_reason(const char* reason) {
    if (!expect_thalweg()) return;
    CHECK(!was_accelerated() && strstr(last_reason(), reason), "%s, not %s",
          was_accelerated() ? "taken" : last_reason(), reason);
}

/* Handed on unseen (short.c). */
static void expect_unseen(uint64_t before) { CHECK(looked_at() == before, "a short one was looked at"); }

static void chosen(void) {
    allgather(MPI_COMM_WORLD, 8, 1);
    expect_unseen(0);
    allgather(MPI_COMM_WORLD, 20000, 2);
    expect_reason("has not paid");
    for (unsigned call = 2; call < 8; ++call) allgather(MPI_COMM_WORLD, 20000, 7 * call);
    allgather(MPI_COMM_WORLD, 20000, 3);
    expect(1, "the eighth allgather");
    const uint64_t before = looked_at();
    allreduce(MPI_COMM_WORLD, 2, 5);
    expect_unseen(before);
    /* The network is known now, and no table speaks of it: these take turns (tried_model.c), the first
     * natively. */
    allreduce(MPI_COMM_WORLD, 20000, 5);
    expect_reason("native is expected to be best");
    /* A new one counts anew: at once with the first MiB. */
    MPI_Comm twin;
    MPI_Comm_dup(MPI_COMM_WORLD, &twin);
    allreduce(twin, 20000, 6);
    expect_reason("has not paid");
    allgather(twin, 1 << 20, 4);
    if (!was_accelerated()) expect_reason("native is expected to be best");
    MPI_Comm_free(&twin);
    /* It knows the network, so that calls take turns there, too. Where nothing could be timed, one of the
     * next has found it out. */
    enum { looks = 8 };
    int taken = 1;
    for (int look = 0; taken && look < looks; ++look) {
        MPI_Comm_dup(MPI_COMM_WORLD, &twin);
        for (unsigned call = 0; call < 8; ++call) allgather(twin, 20000, 7 * call);
        taken = was_accelerated();
        if (!taken) expect_reason("native is expected to be best");
        MPI_Comm_free(&twin);
    }
#ifdef OPEN_MPI /* All that was streamed may be found at one look: there is no rate then, on any of them. */
    (void)taken;
#else
    CHECK(!taken, "no duplicate knows the network that was found out before");
#endif
}

/* Zero bytes, one rank, blocks that only one rank has, another communicator than the world. */
static void odd_ones(void) {
    allgather(MPI_COMM_WORLD, 0, 1);
    if (check_size > 1) expect_reason("zero bytes");
    allreduce(MPI_COMM_SELF, 1000, 1);
    allgather(MPI_COMM_SELF, 1000, 1);
    expect(0, "an allgather of one rank");

    int* const counts = calloc((size_t)check_size, sizeof(int));
    int* const places = calloc((size_t)check_size, sizeof(int));
    counts[check_size - 1] = 30011;
    unsigned char* const own = guarded_new(30011);
    unsigned char* const all = guarded_new(30011);
    fill(own, 30011, (unsigned)check_rank);
    MPI_Allgatherv(own, counts[check_rank], MPI_BYTE, all, counts, places, MPI_BYTE, MPI_COMM_WORLD);
    if (check_size > 1) expect(1, "an allgatherv of one block");
    verify(all, 30011, (unsigned)check_size - 1, "an allgatherv of one block");
    guarded_free(own, 30011);
    guarded_free(all, 30011);
    free(counts);
    free(places);

    MPI_Comm half, reversed;
    MPI_Comm_split(MPI_COMM_WORLD, check_rank % 2, 0, &half);
    allgather(half, 5000, 9);
    allreduce(half, 5000, 9);
    MPI_Comm_free(&half);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -check_rank, &reversed);
    for (int round = 0; round < 3; ++round) {
        allgather(reversed, 5000, 20);
        if (check_size > 1) expect(1, "an allgather of ranks in another order");
        allreduce(reversed, 5000, round);
        int value = check_rank == 0 ? round : -1;
        MPI_Bcast(&value, 1, MPI_INT, check_size - 1, reversed);
        CHECK(value == round, "a broadcast beside them: byte 0 is wrong");
    }
    MPI_Comm_free(&reversed);
}

/* Every rank gets what the other group has: the arrays have as many entries as that group. */
static void between_groups(void) {
    if (check_size < 2) return;
    MPI_Comm side, across;
    const int second = check_rank > 0;
    MPI_Comm_split(MPI_COMM_WORLD, second, 0, &side);
    MPI_Intercomm_create(side, 0, MPI_COMM_WORLD, second ? 0 : 1, 3, &across);
    int others = 0;
    MPI_Comm_remote_size(across, &others);
    int* const counts = malloc((size_t)others * sizeof(int));
    int* const places = malloc((size_t)others * sizeof(int));
    int* const all = malloc((size_t)others * sizeof(int));
    for (int i = 0; i < others; ++i) counts[i] = 1, places[i] = i;
    for (int vector = 0; vector < 2; ++vector) {
        for (int i = 0; i < others; ++i) all[i] = -1;
        if (vector)
            MPI_Allgatherv(&check_rank, 1, MPI_INT, all, counts, places, MPI_INT, across);
        else
            MPI_Allgather(&check_rank, 1, MPI_INT, all, 1, MPI_INT, across);
        expect_reason("intercommunicator");
        for (int i = 0; i < others; ++i)
            CHECK(all[i] == (second ? i : i + 1), "between groups: byte %d is wrong", 4 * i);
    }
    free(counts);
    free(places);
    free(all);
    MPI_Comm_free(&across);
    MPI_Comm_free(&side);
}

static void settings(void) {
    if (check_size == 1) return;
    set_option("THALWEG_ALLGATHER", "native");
    allgather(MPI_COMM_WORLD, 70000, 1);
    expect_reason("by the settings");
    allreduce(MPI_COMM_WORLD, 70000, 1);
    expect(1, "an allreduce while allgathers are native");
    set_option("THALWEG_ALLGATHER", "bruck:ports=2");
    for (unsigned round = 0; round < 3; ++round) allgather(MPI_COMM_WORLD, 70000, round);
    expect(1, "an allgather by another algorithm");
    set_option("THALWEG_ALLGATHER", NULL);
    allgather(MPI_COMM_WORLD, 70000, 5);
    expect(1, "an allgather as at the start");
}

/* Before and after the communicator gets a lane for nonblocking ones. */
static void beside_a_lane(void) {
    MPI_Comm twin;
    MPI_Comm_dup(MPI_COMM_WORLD, &twin);
    for (int round = 0; round < 6; ++round) {
        int value = check_rank + round, sum = 0, all_done = 0;
        MPI_Request request;
        MPI_Iallreduce(&value, &sum, 1, MPI_INT, MPI_SUM, twin, &request);
        allreduce(twin, 3000, round);
        if (check_size > 1) expect(1, "an allreduce beside a nonblocking one");
        allgather(twin, 3000, (unsigned)round);
        while (!all_done) MPI_Test(&request, &all_done, MPI_STATUS_IGNORE);
        CHECK(sum == check_size * (check_size - 1) / 2 + check_size * round, "a sum: byte 0 is wrong");
    }
    MPI_Comm_free(&twin);
}

/* A thread that tests for one and then waits in another: it drives both, or leaves both to the agent. */
static void tested_between(void) {
    enum { bytes = 30000, rounds = 40 };
    unsigned char* const own = guarded_new(bytes);
    unsigned char* const all = guarded_new((size_t)check_size * bytes);
    for (unsigned round = 0; round < rounds; ++round) {
        MPI_Request request;
        int done = 0;
        fill(own, bytes, 100 * round + (unsigned)check_rank);
        memset(all, poison_value, (size_t)check_size * bytes);
        MPI_Iallgather(own, bytes, MPI_BYTE, all, bytes, MPI_BYTE, MPI_COMM_WORLD, &request);
        if (round > 0 && check_size > 1) expect(1, "an allgather that is tested for");
        for (unsigned tests = 0; !done && tests < round % 5; ++tests)
            MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        allgather(MPI_COMM_WORLD, 20000, 100 * round + 50);
        if (check_size > 1) expect(1, "an allgather beside one that is tested for");
        if (!done && round % 3 == 0) MPI_Wait(&request, MPI_STATUS_IGNORE), done = 1;
        while (!done) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        for (int i = 0; i < check_size; ++i)
            verify(all + i * bytes, bytes, 100 * round + (unsigned)i, "an allgather that is tested for");
    }
    guarded_free(own, bytes);
    guarded_free(all, (size_t)check_size * bytes);
}

/* Sums that no order leaves alone, of so many doubles. The bits of the first call are those of all. */
struct sums {
    int count;
    double *own, *first, *sum;
};
static struct sums new_sums(int count) {
    const size_t bytes = (size_t)count * sizeof(double);
    struct sums sums = {count, malloc(bytes), malloc(bytes), malloc(bytes)};
    for (int i = 0; i < count; ++i) sums.own[i] = 1.0 / (1 + i + 7919 * check_rank);
    sums.first[0] = 0;
    return sums;
}
static void free_sums(struct sums* sums) {
    free(sums->own);
    free(sums->first);
    free(sums->sum);
}
static void add_up(struct sums* sums, MPI_Comm comm, int nonblocking, int same) {
    const size_t bytes = (size_t)sums->count * sizeof(double);
    MPI_Request request;
    memset(sums->sum, poison_value, bytes);
    if (nonblocking) {
        MPI_Iallreduce(sums->own, sums->sum, sums->count, MPI_DOUBLE, MPI_SUM, comm, &request);
    } else {
        MPI_Allreduce(sums->own, sums->sum, sums->count, MPI_DOUBLE, MPI_SUM, comm);
    }
    thalweg_last_call last;
    const int known = look_last_call != NULL && look_last_call(&last, sizeof last) == 0;
    if (nonblocking) MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (sums->first[0] == 0) memcpy(sums->first, sums->sum, bytes);
    for (int i = 0; i < sums->count; i += 997) {
        double exact = 0;
        for (int rank = 0; rank < check_size; ++rank) exact += 1.0 / (1 + i + 7919 * rank);
        const double off = sums->sum[i] > exact ? sums->sum[i] - exact : exact - sums->sum[i];
        CHECK(off < 1e-13 * exact, "a sum: element %d is %.17g, not %.17g", i, sums->sum[i], exact);
    }
    if (same)
        CHECK(memcmp(sums->first, sums->sum, bytes) == 0, "equal operands gave other bits than before (%s)",
              known && last.accelerated ? last.algorithm : "native");
}

static void floats(const char* mode) {
    const int early = strcmp(mode, "early") == 0, native = strcmp(mode, "native") == 0;
    const int free_order = strcmp(mode, "free") == 0;
    enum { medium = 50000, large = 150001 }; /* 0.4 and 1.2 MB */
    struct sums sums[2] = {new_sums(medium), new_sums(large)};
    for (int nonblocking = 0; nonblocking < 2; ++nonblocking) {
        MPI_Comm twin;
        MPI_Comm_dup(MPI_COMM_WORLD, &twin);
        for (int round = 0; round < 12; ++round)
            for (int i = 0; i < 2; ++i) {
                /* What is set up for others does not change what floats do. */
                if (round == 6) allgather(twin, 1 << 18, 3);
                if (round == 8) {
                    int value = check_rank, sum = 0;
                    MPI_Request request;
                    MPI_Iallreduce(&value, &sum, 1, MPI_INT, MPI_SUM, twin, &request);
                    MPI_Wait(&request, MPI_STATUS_IGNORE);
                    MPI_Barrier(twin);
                    MPI_Bcast(&value, 1, MPI_INT, 0, twin);
                }
                add_up(&sums[i], twin, nonblocking, !free_order);
                const int taken = nonblocking ? early : i == 1 || early;
                if (native)
                    expect_reason("keep the MPI library's order");
                else if (free_order)
                    expect(nonblocking ? round >= 6 : round > 0 || i == 1, "a sum in any order");
                else if (taken)
                    expect(1, nonblocking ? "a nonblocking sum" : "a sum");
                else
                    expect_reason("keep the MPI library's order");
            }
        MPI_Comm_free(&twin);
        for (int i = 0; i < 2; ++i) sums[i].first[0] = 0;
    }
    for (int i = 0; i < 2; ++i) free_sums(&sums[i]);
}

/* The large-count twins, which the object for them hands on: THALWEG_TEST_LARGE=1. */
typedef int AllgatherLarge(const void*, MPI_Count, MPI_Datatype, void*, MPI_Count, MPI_Datatype, MPI_Comm);
typedef int AllgathervLarge(const void*, MPI_Count, MPI_Datatype, void*, const MPI_Count*, const MPI_Aint*,
                            MPI_Datatype, MPI_Comm);
typedef int AllreduceLarge(const void*, void*, MPI_Count, MPI_Datatype, MPI_Op, MPI_Comm);
static void large_counts(void) {
    enum { bytes = 5000 };
    AllgatherLarge* allgather_c;
    AllgathervLarge* allgatherv_c;
    AllreduceLarge* allreduce_c;
    *(void**)&allgather_c = dlsym(RTLD_DEFAULT, "MPI_Allgather_c");
    *(void**)&allgatherv_c = dlsym(RTLD_DEFAULT, "MPI_Allgatherv_c");
    *(void**)&allreduce_c = dlsym(RTLD_DEFAULT, "MPI_Allreduce_c");
    if (getenv("THALWEG_TEST_LARGE") == NULL || allgather_c == NULL || check_size < 2) return;
    unsigned char* const own = guarded_new(bytes);
    unsigned char* const all = guarded_new((size_t)check_size * bytes);
    MPI_Count* const counts = malloc((size_t)check_size * sizeof(MPI_Count));
    MPI_Aint* const places = malloc((size_t)check_size * sizeof(MPI_Aint));
    for (int i = 0; i < check_size; ++i) counts[i] = bytes - i, places[i] = (check_size - 1 - i) * bytes;
    fill(own, bytes, (unsigned)check_rank);
    allgather_c(own, bytes, MPI_BYTE, all, bytes, MPI_BYTE, MPI_COMM_WORLD);
    expect(1, "MPI_Allgather_c");
    for (int i = 0; i < check_size; ++i) verify(all + i * bytes, bytes, (unsigned)i, "MPI_Allgather_c");
    memset(all, poison_value, (size_t)check_size * bytes);
    allgatherv_c(own, counts[check_rank], MPI_BYTE, all, counts, places, MPI_BYTE, MPI_COMM_WORLD);
    expect(1, "MPI_Allgatherv_c");
    for (int i = 0; i < check_size; ++i)
        verify(all + places[i], (size_t)counts[i], (unsigned)i, "MPI_Allgatherv_c");
    long sum = check_rank;
    allreduce_c(MPI_IN_PLACE, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    expect(1, "MPI_Allreduce_c");
    CHECK(sum == check_size * (check_size - 1) / 2, "MPI_Allreduce_c: byte 0 is wrong");
    free(counts);
    free(places);
    guarded_free(own, bytes);
    guarded_free(all, (size_t)check_size * bytes);
}

static void* in_thread(void* comm) {
    for (int round = 0; round < 30; ++round) {
        allgather(*(MPI_Comm*)comm, 3000, (unsigned)round);
        allreduce(*(MPI_Comm*)comm, 1000, round);
    }
    return NULL;
}
static void threads(void) {
    MPI_Comm comms[2];
    pthread_t other;
    for (int i = 0; i < 2; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    pthread_create(&other, NULL, in_thread, &comms[0]);
    in_thread(&comms[1]);
    pthread_join(other, NULL);
    for (int i = 0; i < 2; ++i) MPI_Comm_free(&comms[i]);
}

int main(int argc, char** argv) {
    const int forced = argc > 1 && strcmp(argv[1], "forced") == 0;
    const int rounding = argc > 2 && strcmp(argv[1], "floats") == 0;
    const int level = forced || rounding ? wanted_level() : MPI_THREAD_SINGLE;
    check_start(&argc, &argv, level);
    if (rounding) {
        floats(argv[2]);
    } else if (!forced) {
        chosen();
    } else {
        for (int round = 0; round < 3; ++round) {
            allgather(MPI_COMM_WORLD, 1, 1);
            if (check_size > 1) expect(1, "an allgather that was asked for");
            allgather(MPI_COMM_WORLD, 100000, 2);
            allreduce(MPI_COMM_WORLD, 1, 3);
            if (check_size > 1) expect(1, "an allreduce that was asked for");
            allreduce(MPI_COMM_WORLD, 70001, 4);
        }
        odd_ones();
        between_groups();
        settings();
        beside_a_lane();
        tested_between();
        large_counts();
        if (level == MPI_THREAD_MULTIPLE) threads();
    }
    return check_end();
}
