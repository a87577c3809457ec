/* Shared by the programs here: plain MPI programs that verify every byte and, run under a preload object,
 * that Thalweg did what the test says. They link no Thalweg: thalweg.h's functions are looked up. */
#ifndef CHECK_H
#define CHECK_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <mpi.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <thalweg/thalweg.h>
#include <time.h>
#include <unistd.h>

static int check_rank = -1, check_size = 0;
static unsigned long check_count = 0;

/* Until the launcher has read what was said, 2 s at most: MPICH's ends a job at the first MPI_Abort and drops
 * what still lies in the ranks' pipes. */
static inline void wait_until_read(int descriptor) {
    const struct timespec pause = {0, 1000000};
    int left = 0;
    for (int i = 0; i < 2000 && ioctl(descriptor, FIONREAD, &left) == 0 && left > 0; ++i)
        nanosleep(&pause, NULL);
}

#define FAIL(...)                                                            \
    do {                                                                     \
        fprintf(stderr, "%s:%d: rank %d: ", __FILE__, __LINE__, check_rank); \
        fprintf(stderr, __VA_ARGS__);                                        \
        fprintf(stderr, "\n");                                               \
        fflush(stderr);                                                      \
        wait_until_read(STDERR_FILENO);                                      \
        MPI_Abort(MPI_COMM_WORLD, 1);                                        \
        _Exit(1);                                                            \
    } while (0)
#define CHECK(condition, ...)                \
    do {                                     \
        ++check_count;                       \
        if (!(condition)) FAIL(__VA_ARGS__); \
    } while (0)

/* Which calls of a trial are ours, by number from 0: as in src/model/trial.h. */
static inline int tried_as_schedule(int call) { return (int)(7815u >> call & 1); }

static int (*look_last_call)(thalweg_last_call*, size_t);
static int (*look_set_option)(const char*, const char*);

/* THALWEG_TEST_EXPECT=native: run without the preload object, or with all declined, as a check of the program
 * itself. */
static int expect_thalweg(void) {
    const char* const text = getenv("THALWEG_TEST_EXPECT");
    return text == NULL || strcmp(text, "native") != 0;
}

/* What cannot run here; after MPI_Init, the same on all ranks. */
#define SKIP(...)                \
    do {                         \
        if (check_rank == 0) {   \
            printf("skipped: "); \
            printf(__VA_ARGS__); \
            printf("\n");        \
        }                        \
        MPI_Finalize();          \
        exit(77);                \
    } while (0)

/* The level for check_start: THALWEG_TEST_LEVEL=single asks for the lowest, anything else for the highest. */
static inline int wanted_level(void) {
    const char* const text = getenv("THALWEG_TEST_LEVEL");
    return text != NULL && strcmp(text, "single") == 0 ? MPI_THREAD_SINGLE : MPI_THREAD_MULTIPLE;
}

static inline int class_of(int code) {
    int class = MPI_SUCCESS;
    MPI_Error_class(code, &class);
    return class;
}

static void check_start(int* argc, char*** argv, int thread_level) {
    int provided = 0;
    MPI_Init_thread(argc, argv, thread_level, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &check_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &check_size);
    if (provided < thread_level) SKIP("this MPI gives thread level %d, not %d", provided, thread_level);
    *(void**)&look_last_call = dlsym(RTLD_DEFAULT, "thalweg_get_last_call");
    *(void**)&look_set_option = dlsym(RTLD_DEFAULT, "thalweg_set_option");
    if (expect_thalweg()) CHECK(look_last_call && look_set_option, "the preload object is not here");
}

/* A function of MPI that not all libraries have. */
static inline void* find_or_skip(const char* name) {
    void* const function = dlsym(RTLD_DEFAULT, name);
    if (function == NULL) SKIP("this MPI has no %s", name);
    return function;
}

static int check_end(void) {
    unsigned long all = 0;
    MPI_Reduce(&check_count, &all, 1, MPI_UNSIGNED_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (check_rank == 0) printf("ok: %lu checks on %d ranks\n", all, check_size);
    MPI_Finalize();
    return 0;
}

/* Only where Thalweg is here; the same call on all ranks. */
static void set_option(const char* name, const char* value) {
    if (look_set_option == NULL) return;
    const int code = look_set_option(name, value);
    if (expect_thalweg())
        CHECK(code == 0, "thalweg_set_option(%s, %s) = %d", name, value ? value : "NULL", code);
}

/* What became of the last broadcast: 1 accelerated, 0 native. */
static int was_accelerated(void) {
    thalweg_last_call call;
    if (look_last_call == NULL || look_last_call(&call, sizeof call) != 0) return 0;
    return call.accelerated;
}
/* How many calls of this thread have been looked at: where a call leaves it as it was, what is known of the
 * last one is of one before. */
static inline uint64_t looked_at(void) {
    thalweg_last_call call;
    if (look_last_call == NULL || look_last_call(&call, sizeof call) != 0) return 0;
    return call.number;
}
static const char* last_reason(void) {
    static _Thread_local thalweg_last_call call;
    if (look_last_call == NULL || look_last_call(&call, sizeof call) != 0) return "";
    return call.reason;
}

/* A byte that depends on where it is and on what message it belongs to. */
static inline unsigned char pattern(uint64_t index, unsigned seed) {
    uint64_t x = (index + 1) * 0x9e3779b97f4a7c15ull + seed * 0xbf58476d1ce4e5b9ull;
    x ^= x >> 29;
    return (unsigned char)(x * 0x94d049bb133111ebull >> 56);
}

enum { guard_bytes = 64, guard_value = 0xA5, poison_value = 0x5C };

static double seconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static inline int by_value(const void* a, const void* b) {
    const double x = *(const double*)a, y = *(const double*)b;
    return (x > y) - (x < y);
}
/* Sorts them. */
static inline double median(double* values, int count) {
    qsort(values, (size_t)count, sizeof *values, by_value);
    return values[count / 2];
}

/* Whether everybody was done before rank 0 came back, by the host's clock; the same answer on all ranks. */
static inline int done_before_return(double done, double returned) {
    double mine[2] = {check_rank == 0 ? 0 : done, check_rank == 0 ? returned : 0}, latest[2];
    MPI_Allreduce(mine, latest, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return latest[0] < latest[1];
}

/* As a killed process ends. When, by the host's clock, is written to a file for ended.py. */
static inline void die(void) {
    const char* const name = getenv("THALWEG_TEST_DIED");
    FILE* const file = name != NULL ? fopen(name, "w") : NULL;
    if (file != NULL) {
        fprintf(file, "%.6f\n", seconds_now());
        fclose(file);
    }
    raise(SIGKILL);
}

/* A buffer of `bytes` with guards on both sides; receivers' are poisoned. Freed by guarded_free, which
 * checks. */
static unsigned char* guarded_new(size_t bytes) {
    unsigned char* const base = malloc(bytes + 2 * guard_bytes);
    if (base == NULL) FAIL("no memory for a test buffer of %zu bytes", bytes);
    memset(base, guard_value, guard_bytes);
    memset(base + guard_bytes, poison_value, bytes);
    memset(base + guard_bytes + bytes, guard_value, guard_bytes);
    return base + guard_bytes;
}
static void guarded_check(const unsigned char* data, size_t bytes) {
    for (int i = 0; i < guard_bytes; ++i)
        if (data[-1 - i] != guard_value || data[bytes + i] != guard_value)
            FAIL("a guard byte %d beside a buffer of %zu bytes was written", i, bytes);
    ++check_count;
}
static void guarded_free(unsigned char* data, size_t bytes) {
    guarded_check(data, bytes);
    free(data - guard_bytes);
}

static void fill(unsigned char* data, size_t bytes, unsigned seed) {
    for (size_t i = 0; i < bytes; ++i) data[i] = pattern(i, seed);
}
static void verify(const unsigned char* data, size_t bytes, unsigned seed, const char* what) {
    for (size_t i = 0; i < bytes; ++i)
        if (data[i] != pattern(i, seed))
            FAIL("%s: byte %zu of %zu is %02x, not %02x", what, i, bytes, data[i], pattern(i, seed));
    ++check_count;
}

/* A line of /proc/self/status, by the format it is read with. */
static inline long status_kib(const char* format) {
    char line[256];
    long kib = -1;
    FILE* const file = fopen("/proc/self/status", "r");
    while (kib < 0 && fgets(line, sizeof line, file)) sscanf(line, format, &kib);
    fclose(file);
    return kib;
}
/* What of this process lies in memory; and without what it shares with others. */
static inline long resident_kib(void) { return status_kib("VmRSS: %ld"); }
static inline long private_kib(void) { return status_kib("RssAnon: %ld"); }

/* A blocking collective, in which the ranks of `comm` may agree; whatever they do, its result is right. */
static inline void meet_on(MPI_Comm comm) {
    const int mine = check_rank;
    int sum = -1;
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm);
    CHECK(sum == check_size * (check_size - 1) / 2, "the sum of ranks is %d", sum);
}

static inline int is_made_by(const char* whom) {
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length;
    MPI_Get_library_version(version, &length);
    return strstr(version, whom) != NULL;
}
static inline int is_intel_mpi(void) { return is_made_by("Intel"); }
static inline int is_open_mpi(void) { return is_made_by("Open MPI"); }

#endif
