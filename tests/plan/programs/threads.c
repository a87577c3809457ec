/* Two threads broadcast on two communicators at the same time, from changing roots. */
#include <pthread.h>

#include "check.h"

enum { rounds = 150, bytes = 100003 };

static void* broadcast(void* argument) {
    const MPI_Comm comm = *(MPI_Comm*)argument;
    unsigned char* const data = malloc(bytes);
    for (unsigned i = 0; i < rounds; ++i) {
        const int root = (int)(i % (unsigned)check_size);
        memset(data, poison_value, bytes);
        if (check_rank == root) fill(data, bytes, i);
        MPI_Bcast(data, bytes, MPI_BYTE, root, comm);
        for (size_t k = 0; k < bytes; ++k)
            if (data[k] != pattern(k, i)) FAIL("round %u: byte %zu is wrong", i, k);
        if (expect_thalweg() && check_size > 1 && !was_accelerated())
            FAIL("round %u was native: %s", i, last_reason());
    }
    free(data);
    return NULL;
}

int main(int argc, char** argv) {
    check_start(&argc, &argv, MPI_THREAD_MULTIPLE);
    MPI_Comm comms[2];
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[0]);
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
    pthread_t other;
    pthread_create(&other, NULL, broadcast, &comms[1]);
    broadcast(&comms[0]);
    pthread_join(other, NULL);
    check_count += 2 * rounds;
    MPI_Comm_free(&comms[0]);
    MPI_Comm_free(&comms[1]);
    return check_end();
}
