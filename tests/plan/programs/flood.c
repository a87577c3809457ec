/* A root that broadcasts without pause while the last rank sleeps may have to wait, and grows nobody's
 * memory: `flood [CALLS [SECONDS]]`, messages of 64 KiB by the algorithm of THALWEG_BCAST. */
#include "check.h"

enum { bytes = 65536, allowed_kib = 16 << 10, settling = 200, shifts = 251 };

/* Broadcast i carries what begins at i % shifts: every one differs from the one before, at no cost. */
static unsigned char table[bytes + shifts], data[bytes];

static void broadcast(unsigned i) {
    unsigned char* const expected = table + i % shifts;
    unsigned char* const buffer = check_rank == 0 ? expected : data;
    MPI_Bcast(buffer, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
    if (expect_thalweg()) CHECK(was_accelerated(), "broadcast %u was native: %s", i, last_reason());
    CHECK(memcmp(buffer, expected, bytes) == 0, "broadcast %u: wrong bytes", i);
}

/* So that what MPI_Init needed for a moment is no growth of ours. */
static void forget_peak(void) {
    FILE* const file = fopen("/proc/self/clear_refs", "w");
    if (file == NULL) return;
    fputs("5", file);
    fclose(file);
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, wanted_level());
    const unsigned calls = argc > 1 ? (unsigned)atoi(argv[1]) : 100000;
    const double seconds = argc > 2 ? atof(argv[2]) : 5;
    fill(table, sizeof table, 1);
    /* What MPI and we set up on first use is not growth. */
    for (unsigned i = 0; i < settling; ++i) broadcast(i);
    MPI_Barrier(MPI_COMM_WORLD);
    forget_peak();
    const long before = resident_kib();
    const double begin = seconds_now();
    if (check_rank == check_size - 1) {
        const struct timespec pause = {(time_t)seconds, (long)(1e9 * (seconds - (double)(time_t)seconds))};
        nanosleep(&pause, NULL);
    }
    for (unsigned i = 0; i < calls; ++i) broadcast(i);
    const long grown = status_kib("VmHWM: %ld") - before;
    printf("rank %d grew by %ld KiB in %.1f s\n", check_rank, grown, seconds_now() - begin);
    fflush(stdout);
    CHECK(grown <= allowed_kib, "grew by %ld KiB", grown);
    return check_end();
}
