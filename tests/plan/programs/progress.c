/* Two ranks. One sits in a large MPI_Send to the other, or changes the other's memory, while that one is
 * already in the collective: it gets on only if whoever waits there keeps MPI progressing. */
#include "check.h"

enum { large = 8 << 20, bytes = 300000, count = 20000 };

static void reduce(int blocking) {
    static int own[count], sum[count];
    for (int i = 0; i < count; ++i) own[i] = i + check_rank;
    MPI_Request request = MPI_REQUEST_NULL;
    if (blocking)
        MPI_Allreduce(own, sum, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    else
        MPI_Iallreduce(own, sum, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    const char* const taken = getenv("THALWEG_TEST_TAKEN");
    if (expect_thalweg() && taken != NULL) CHECK(was_accelerated(), "native: %s", last_reason());
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < count; ++i) CHECK(sum[i] == 2 * i + 1, "a sum: byte %d is wrong", 4 * i);
}

/* Passive targets: what is accumulated needs the other's library. */
static void accumulate(void) {
    enum { cells = 30000 };
    static int more[cells];
    int* memory;
    MPI_Win window;
    MPI_Win_allocate(cells * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    for (int i = 0; i < cells; ++i) more[i] = i;
    for (int round = 0; round < 8; ++round) {
        const int waiting = round % 2;
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, check_rank, 0, window);
        for (int i = 0; i < cells; ++i) memory[i] = round;
        MPI_Win_unlock(check_rank, window);
        MPI_Barrier(MPI_COMM_WORLD);
        if (check_rank == 1 - waiting) {
            MPI_Win_lock(MPI_LOCK_SHARED, waiting, 0, window);
            MPI_Accumulate(more, cells, MPI_INT, waiting, 0, cells, MPI_INT, MPI_SUM, window);
            MPI_Win_unlock(waiting, window);
        }
        reduce(round / 2 % 2);
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, check_rank, 0, window);
        for (int i = 0; check_rank == waiting && i < cells; ++i)
            CHECK(memory[i] == round + i, "accumulated beside a collective: byte %d is wrong", 4 * i);
        MPI_Win_unlock(check_rank, window);
    }
    MPI_Win_free(&window);
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, MPI_THREAD_SINGLE);
    unsigned char* const message = malloc(large);
    unsigned char* const data = malloc(bytes);
    for (unsigned round = 0; round < 10; ++round) {
        const int waiting = (int)(round % 2), root = (int)(round / 2 % 2);
        memset(data, poison_value, bytes);
        if (check_rank == root) fill(data, bytes, round);
        MPI_Request request;
        if (check_rank == waiting)
            MPI_Irecv(message, large, MPI_BYTE, 1 - waiting, 7, MPI_COMM_WORLD, &request);
        if (check_rank == 1 - waiting) {
            fill(message, large, round + 1000);
            MPI_Send(message, large, MPI_BYTE, waiting, 7, MPI_COMM_WORLD);
        }
        MPI_Bcast(data, bytes, MPI_BYTE, root, MPI_COMM_WORLD);
        if (expect_thalweg()) CHECK(was_accelerated(), "native: %s", last_reason());
        if (check_rank == waiting) {
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            verify(message, large, round + 1000, "the large message");
        }
        verify(data, bytes, round, "the broadcast");
    }
    free(message);
    free(data);
    MPI_Request request;
    int one = 1, two = 0;
    MPI_Iallreduce(&one, &two, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    accumulate();
    return check_end();
}
