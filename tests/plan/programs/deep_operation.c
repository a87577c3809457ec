/* A reduction by an operation of the program's own, which is the MPI library's, takes 1 MiB of stack. It goes
 * on while its ranks are in no call of MPI, because Thalweg's own thread calls the library for a broadcast of
 * ours whose root is late: so the program's function runs on that thread's stack. Three ranks; the last one
 * is late.
 */
#include <stdatomic.h>
#include <sys/syscall.h>

#include "check.h"

enum { count = 100, bytes = 20000, rounds = 4, deep_bytes = 1 << 20, tag = 4 };
enum { late_us = 50000, most_late_us = 64 * late_us };
static const double longest_s = 20, patience_s = 1;

static long first_thread;
static _Atomic int here, elsewhere; /* times that the function ran on the first thread, and on another one */

static long this_thread(void) { return syscall(SYS_gettid); }

static void add(void* in, void* inout, int* length, MPI_Datatype* type) {
    (void)type;
    volatile char room[deep_bytes];
    for (size_t i = sizeof room; i >= 1024; i -= 1024) room[i - 1] = 1; /* as a stack grows */
    for (int i = 0; i < *length; ++i) ((int*)inout)[i] += ((int*)in)[i] + (room[1023] - 1);
    atomic_fetch_add(this_thread() == first_thread ? &here : &elsewhere, 1);
}

/* -1: the function ran in this thread's call, because it had no core before the other rank was there. */
static int comes(void) {
    const double began = seconds_now();
    while (atomic_load(&elsewhere) == 0) {
        const int ran = atomic_load(&here) > 0;
        if (seconds_now() - began > (ran ? patience_s : longest_s)) return ran ? -1 : 0;
        usleep(100);
    }
    return 1;
}

static void broadcast(unsigned char* data, int round, MPI_Request* request) {
    memset(data, poison_value, bytes);
    if (check_rank == check_size - 1) fill(data, bytes, (unsigned)round);
    MPI_Ibcast(data, bytes, MPI_BYTE, check_size - 1, MPI_COMM_WORLD, request);
    if (expect_thalweg()) CHECK(was_accelerated(), "a broadcast: %s", last_reason());
}

/* By the first two. Rank 0 has started both before rank 1 joins the reduction, which comes so late. Whether
 * that was too early for rank 0. */
static int reduce(MPI_Comm pair, MPI_Op operation, unsigned char* data, int round, int us) {
    int mine[count], sum[count], too_early = 0;
    MPI_Request reduction, ours;
    for (int i = 0; i < count; ++i) mine[i] = 1000 * check_rank + i + round;
    if (check_rank == 0) broadcast(data, round, &ours);
    if (check_rank == 1) usleep((useconds_t)us);
    MPI_Iallreduce(mine, sum, count, MPI_INT, operation, pair, &reduction);
    if (check_rank == 1) broadcast(data, round, &ours);
    if (expect_thalweg() && check_rank == 0) {
        const int came = comes();
        CHECK(came != 0, "round %d: the reduction did not go on while its rank was in no call", round);
        too_early = came < 0;
    }
    MPI_Send(NULL, 0, MPI_BYTE, check_size - 1, tag, MPI_COMM_WORLD);
    MPI_Wait(&ours, MPI_STATUS_IGNORE);
    MPI_Wait(&reduction, MPI_STATUS_IGNORE);
    for (int i = 0; i < count; ++i)
        CHECK(sum[i] == 1000 + 2 * (i + round), "round %d, a sum: element %d is %d", round, i, sum[i]);
    return too_early;
}

int main(int argc, char** argv) {
    static unsigned char data[bytes];
    check_start(&argc, &argv, MPI_THREAD_MULTIPLE);
    CHECK(check_size == 3, "deep_operation on 3 ranks");
    first_thread = this_thread();
    MPI_Op operation;
    MPI_Comm pair;
    MPI_Request request;
    MPI_Op_create(add, 1, &operation);
    MPI_Comm_split(MPI_COMM_WORLD, check_rank < 2 ? 0 : MPI_UNDEFINED, check_rank, &pair);
    MPI_Ibcast(data, 1, MPI_BYTE, 0, MPI_COMM_WORLD, &request); /* asks for the set-up */
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int round = 0, us = late_us; round < rounds;) {
        int too_early = 0, anywhere = 0;
        atomic_store(&here, 0);
        atomic_store(&elsewhere, 0);
        MPI_Barrier(MPI_COMM_WORLD);
        if (check_rank < 2) {
            too_early = reduce(pair, operation, data, round, us);
        } else {
            for (int rank = 0; rank < 2; ++rank)
                MPI_Recv(NULL, 0, MPI_BYTE, rank, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            broadcast(data, round, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        verify(data, bytes, (unsigned)round, "a broadcast beside a reduction");
        MPI_Allreduce(&too_early, &anywhere, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        CHECK(!anywhere || us < most_late_us, "round %d: rank 0 had no core for %d us", round, us);
        us = anywhere ? 2 * us : late_us;
        round += !anywhere;
    }
    if (pair != MPI_COMM_NULL) MPI_Comm_free(&pair);
    MPI_Op_free(&operation);
    return check_end();
}
