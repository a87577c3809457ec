/* A program that hears of every page that is written, as those do that track them: its receive buffer is
 * write-protected, and its handler of SIGSEGV opens it. Two ranks, of which one comes late: the other one is
 * in no call of MPI meanwhile, so that Thalweg's own thread meets the fault, and the program's handler takes
 * a large part of that thread's stack. */
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "check.h"

/* So short that every library copies them in the process; a fault in the kernel is no signal. */
enum { block = 1024, rounds = 6, handler_bytes = 200 * 1024 };
enum { late_us = 50000, most_late_us = 64 * late_us };
static const double longest_s = 20;

static unsigned char* theirs; /* the page where the other rank's block lies */
static size_t page;
static long first_thread;
static _Atomic int faults, elsewhere; /* in this round; of them by another thread than the first */

static long this_thread(void) { return syscall(SYS_gettid); }

static void open_page(int number, siginfo_t* info, void* context) {
    (void)number, (void)context;
    const unsigned char* const at = info->si_addr;
    if (at < theirs || at >= theirs + page) _Exit(3);
    volatile char room[handler_bytes];
    for (size_t i = sizeof room; i >= 1024; i -= 1024) room[i - 1] = 1; /* as a stack grows */
    mprotect(theirs, page, PROT_READ | PROT_WRITE);
    if (this_thread() != first_thread) atomic_fetch_add(&elsewhere, 1);
    atomic_fetch_add(&faults, 1);
}

/* -1: this thread has met the fault in its call, because it had no core before the other rank was there. */
static int comes(void) {
    const double until = seconds_now() + longest_s;
    for (;;) {
        const int met = atomic_load(&faults) > 0;
        if (atomic_load(&elsewhere) > 0) return 1;
        if (met) return -1;
        if (seconds_now() > until) return 0;
        usleep(100);
    }
}

static unsigned seed_of(int rank, int round) { return (unsigned)(10 * round + rank); }

/* `late`: who comes so late; -1: nobody, and nothing is protected. Whether that was too early for the other
 * one, on both ranks. */
static int gather(unsigned char* blocks, int round, int late, int us) {
    const int other = 1 - check_rank;
    int too_early = 0, anywhere = 0;
    MPI_Request request;
    fill(blocks + check_rank * block, block, seed_of(check_rank, round));
    memset(blocks + other * block, poison_value, block);
    atomic_store(&faults, 0);
    atomic_store(&elsewhere, 0);
    if (late >= 0) mprotect(theirs, page, PROT_READ);
    MPI_Barrier(MPI_COMM_WORLD);
    if (check_rank == late) usleep((useconds_t)us);
    MPI_Iallgather(MPI_IN_PLACE, 0, MPI_BYTE, blocks, block, MPI_BYTE, MPI_COMM_WORLD, &request);
    if (expect_thalweg()) CHECK(was_accelerated(), "%s", last_reason());
    if (expect_thalweg() && late == other) {
        const int came = comes();
        CHECK(came != 0, "round %d: nothing was received while this rank was in no call", round);
        too_early = came < 0;
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(late < 0 || atomic_load(&faults) > 0, "round %d: nobody wrote to what was protected", round);
    for (int rank = 0; rank < 2; ++rank)
        verify(blocks + rank * block, block, seed_of(rank, round), "a block of a protected buffer");
    MPI_Allreduce(&too_early, &anywhere, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    return anywhere;
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, wanted_level());
    CHECK(check_size == 2, "write_protected on 2 ranks");
    first_thread = this_thread();
    page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char* const pages =
        mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(pages != MAP_FAILED, "no memory");
    unsigned char* const blocks = pages + page - block; /* one at the end of a page, one behind it */
    theirs = check_rank == 0 ? pages + page : pages;
    struct sigaction action, before;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = open_page;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, &before);
    MPI_Request request;
    MPI_Ibcast(blocks, 1, MPI_BYTE, 0, MPI_COMM_WORLD, &request); /* asks for the set-up */
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    gather(blocks, 0, -1, 0); /* connects them */
    for (int round = 1; round <= rounds; ++round)
        for (int us = late_us; gather(blocks, round, round % 2, us); us *= 2)
            CHECK(us < most_late_us, "round %d: a rank had no core for %d us", round, us);
    sigaction(SIGSEGV, &before, NULL);
    munmap(pages, 2 * page);
    return check_end();
}
