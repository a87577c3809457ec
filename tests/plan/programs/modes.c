/* Every rank computes in other modes than the next one: another direction of rounding, small numbers flushed
 * to zero or not; and floating-point exceptions trap. All decide alike, where a tuning table ends
 * (bordering.json) and where calls are tried and timed; nothing of ours traps, raises a flag that says
 * something, or changes a mode.
 */
#include <fenv.h>

#include "check.h"
#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { bytes = 1 << 20, block = 32 << 10, most_ranks = 8 };
/* Not whether a result was rounded: MPI libraries compute, too. */
enum { telling = FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW };

static int direction(void) {
    static const int directions[] = {FE_TONEAREST, FE_DOWNWARD, FE_UPWARD, FE_TOWARDZERO};
    return directions[check_rank % 4];
}

static void enter(void) {
    fesetround(direction());
#if defined(__x86_64__)
    if (check_rank % 2 == 1) _MM_SET_FLUSH_ZERO_MODE(_MM_FLUSH_ZERO_ON);
#endif
}

static int traps(void) {
#if defined(__GLIBC__)
    return fegetexcept();
#else
    return 0;
#endif
}
static int trapping = 0;

static void still_in_them(const char* what) {
    CHECK(fegetround() == direction(), "%s: rounds as %d", what, fegetround());
    CHECK(traps() == trapping, "%s: %x trap", what, traps());
    CHECK(fetestexcept(telling) == 0, "%s: %x raised", what, fetestexcept(telling));
#if defined(__x86_64__)
    CHECK((_MM_GET_FLUSH_ZERO_MODE() == _MM_FLUSH_ZERO_ON) == check_rank % 2, "%s: flushes otherwise", what);
#endif
}

static void broadcasts(void) {
    unsigned char* const data = guarded_new(bytes);
    for (int call = 0; call < 3 * check_size; ++call) {
        const int root = call % check_size;
        memset(data, poison_value, bytes);
        if (check_rank == root) fill(data, bytes, (unsigned)call);
        MPI_Bcast(data, bytes, MPI_BYTE, root, MPI_COMM_WORLD);
        verify(data, bytes, (unsigned)call, "a broadcast");
        still_in_them("a broadcast");
        if (!expect_thalweg()) continue;
        CHECK(was_accelerated(), "broadcast %d was native: %s", call, last_reason());
        CHECK(strcmp(last_reason(), "tuning table") == 0, "broadcast %d: %s", call, last_reason());
    }
    guarded_free(data, bytes);
}

/* As often as it takes for some to be tried, and judged. */
static void exchanges(void) {
    const size_t all = (size_t)block * (size_t)check_size;
    unsigned char* const from = guarded_new(all);
    unsigned char* const to = guarded_new(all);
    for (unsigned call = 0; call < 150; ++call) {
        for (int peer = 0; peer < check_size; ++peer)
            fill(from + (size_t)peer * block, block, call + (unsigned)(check_rank * most_ranks + peer));
        memset(to, poison_value, all);
        MPI_Alltoall(from, block, MPI_BYTE, to, block, MPI_BYTE, MPI_COMM_WORLD);
        for (int peer = 0; peer < check_size; ++peer)
            verify(to + (size_t)peer * block, block, call + (unsigned)(peer * most_ranks + check_rank),
                   "an exchange");
        still_in_them("an exchange");
    }
    guarded_free(from, all);
    guarded_free(to, all);
}

static void nonblocking(void) {
    const size_t all = (size_t)block * (size_t)check_size;
    unsigned char* const from = guarded_new(block);
    unsigned char* const to = guarded_new(all);
    for (unsigned call = 0; call < 40; ++call) {
        MPI_Request request;
        fill(from, block, call + (unsigned)check_rank);
        memset(to, poison_value, all);
        MPI_Iallgather(from, block, MPI_BYTE, to, block, MPI_BYTE, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (int peer = 0; peer < check_size; ++peer)
            verify(to + (size_t)peer * block, block, call + (unsigned)peer, "an allgather");
        still_in_them("an allgather");
        if (call % 10 == 9) MPI_Barrier(MPI_COMM_WORLD);
    }
    guarded_free(from, block);
    guarded_free(to, all);
}

/* What is told of plans is computed then, without any library. */
static void figures(void) {
    int (*stats)(size_t, thalweg_plan_stats*, size_t);
    *(void**)&stats = dlsym(RTLD_DEFAULT, "thalweg_get_plan_stats");
    if (stats == NULL) return;
    thalweg_plan_stats told;
    for (size_t plan = 0;; ++plan) {
        feclearexcept(FE_ALL_EXCEPT);
        const int found = stats(plan, &told, sizeof told) == 0;
        CHECK(fetestexcept(FE_ALL_EXCEPT) == 0, "figures: %x raised", fetestexcept(FE_ALL_EXCEPT));
        if (!found) return;
    }
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, wanted_level());
    CHECK(check_size <= most_ranks, "too many ranks");
    enter();
    feclearexcept(FE_ALL_EXCEPT);
#if defined(__GLIBC__)
    feenableexcept(telling);
    trapping = fegetexcept();
#endif
    broadcasts();
    exchanges();
    nonblocking();
    figures();
#if defined(__GLIBC__)
    fedisableexcept(FE_ALL_EXCEPT); /* MPI libraries compute at their end */
#endif
    return check_end();
}
