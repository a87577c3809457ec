/* Two ranks. One sits in a large MPI_Send to the other, which is already in the broadcast: the send completes
 * only if whoever waits in the broadcast keeps MPI progressing. */
#include "check.h"

enum { large = 8 << 20, bytes = 300000 };

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
    return check_end();
}
