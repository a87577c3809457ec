/* Sums of floating-point numbers in the modes in which the program starts them, nonblocking, persistent and
 * blocking: whether the program waits at once, idles so that others add for it, or is in other modes when it
 * waits. Of the ranks' numbers all but two are zero, so that every order of them gives the same bits.
 * THALWEG_TEST_TAKEN=1: all were taken.
 */
#include <fenv.h>
#include <float.h>

#include "ways.h"
#if defined(__x86_64__)
#include <immintrin.h>
#endif

typedef int AllreduceInit(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Info, MPI_Request*);
static AllreduceInit* allreduce_init;

enum { count = 40000, idle_us = 20000, late_us = 3000 };
enum { nearest, upward, downward, toward_zero, flushing, modes };
static const int directions[modes] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO, FE_TONEAREST};
static const char* const mode_names[modes] = {"nearest", "upward", "downward", "toward zero", "flushing"};
enum { at_once, idle, elsewhere, manners };

/* To zero, what is too small for a normal number. */
#if defined(__x86_64__)
enum { can_flush = 1 };
static int flushes(void) { return _MM_GET_FLUSH_ZERO_MODE() == _MM_FLUSH_ZERO_ON; }
static void set_flushing(int on) { _MM_SET_FLUSH_ZERO_MODE(on ? _MM_FLUSH_ZERO_ON : _MM_FLUSH_ZERO_OFF); }
#else
enum { can_flush = 0 };
static int flushes(void) { return 0; }
static void set_flushing(int on) { (void)on; }
#endif

static void enter(int mode) {
    CHECK(fesetround(directions[mode]) == 0, "cannot round %s", mode_names[mode]);
    set_flushing(mode == flushing);
}
static int is_in(int mode) { return fegetround() == directions[mode] && flushes() == (mode == flushing); }

static int kind_of(int i) { return i / check_size % 4; }

/* What rank `rank` gives as element i. */
static double term(int rank, int i) {
    static const double large[4] = {1, 1, -1, 1.5 * DBL_MIN},
                        little[4] = {0x1p-60, -0x1p-60, -0x1p-60, -DBL_MIN};
    const int kind = kind_of(i);
    return rank == i % check_size ? large[kind] : rank == (i + 1) % check_size ? little[kind] : 0;
}
static double wanted(int mode, int i) {
    switch (kind_of(i)) {
        case 0:
            return mode == upward ? 1 + DBL_EPSILON : 1;
        case 1:
            return mode == downward || mode == toward_zero ? 1 - DBL_EPSILON / 2 : 1;
        case 2:
            return mode == downward ? -1 - DBL_EPSILON : -1;
        default:
            return mode == flushing ? 0 : DBL_MIN / 2;
    }
}

static void sum_up(int way, int manner, int mode, const double* own, double* sum, MPI_Request* request) {
    static const char* const way_names[] = {"nonblocking", "persistent", "blocking"};
    static const char* const manner_names[] = {"waited for at once", "left alone",
                                               "waited for in other modes"};
    const size_t bytes = (size_t)count * sizeof *sum;
    memset(sum, poison_value, bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    if (check_rank == mode % check_size) usleep(late_us);
    enter(mode);
    if (way == nonblocking)
        MPI_Iallreduce(own, sum, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, request);
    else if (way == blocking)
        MPI_Allreduce(own, sum, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    if (way != persistent) expect_taken(1, way_names[way]);
    begin(way, request);
    if (manner != at_once) usleep(idle_us);
    if (manner == elsewhere) enter(nearest);
    end(way, request, 0);
    CHECK(is_in(manner == elsewhere ? nearest : mode), "%s, %s: other modes after the call", way_names[way],
          mode_names[mode]);
    enter(nearest);
    for (int i = 0; i < count; ++i)
        CHECK(sum[i] == wanted(mode, i), "%s, %s, %s: element %d is %a, not %a", way_names[way],
              mode_names[mode], manner_names[manner], i, sum[i], wanted(mode, i));
}

static void sums(int way, int all_manners) {
    const size_t bytes = (size_t)count * sizeof(double);
    double *const own = malloc(bytes), *const sum = (double*)guarded_new(bytes);
    MPI_Request request = MPI_REQUEST_NULL;
    for (int i = 0; i < count; ++i) own[i] = term(check_rank, i);
    if (way == persistent) {
        allreduce_init(own, sum, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
        expect_taken(1, "a plan");
    }
    const int end_of_manners = way == blocking ? idle : all_manners ? manners : elsewhere;
    for (int manner = at_once; manner < end_of_manners; ++manner)
        for (int mode = 0; mode < modes; ++mode)
            if (mode != flushing || can_flush) sum_up(way, manner, mode, own, sum, &request);
    if (way == persistent) MPI_Request_free(&request);
    guarded_free((unsigned char*)sum, bytes);
    free(own);
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, wanted_level());
    CHECK(check_size > 1, "two ranks or more");
    *(void**)&allreduce_init = dlsym(RTLD_DEFAULT, "MPI_Allreduce_init");
    set_up_world();
    /* What an MPI library does between the start and the end of its own is not ours to judge. */
    const int taken = getenv("THALWEG_TEST_TAKEN") != NULL;
    for (int way = nonblocking; way <= blocking; ++way)
        if (way != persistent || (allreduce_init != NULL && taken)) sums(way, taken);
    return check_end();
}
