/* Two threads broadcast on two communicators at the same time: from changing roots, and with a datatype that
 * both of them use for the first time. */
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

enum { type_rounds = 60, blocks = 30000 };

static MPI_Datatype shared_type;
static pthread_barrier_t together;

static void make_shared_type(void) {
    static int lengths[blocks], at[blocks];
    for (int i = 0; i < blocks; ++i) {
        lengths[i] = 1;
        at[i] = 2 * i + i % 2; /* not regular: its shape takes a while to find */
    }
    MPI_Type_indexed(blocks, lengths, at, MPI_INT, &shared_type);
    MPI_Type_commit(&shared_type);
}

static void* broadcast_shared_type(void* argument) {
    const MPI_Comm comm = *(MPI_Comm*)argument;
    int* const data = malloc((2 * blocks + 1) * sizeof *data);
    for (int i = 0; i < type_rounds; ++i) {
        if (pthread_barrier_wait(&together) == PTHREAD_BARRIER_SERIAL_THREAD) make_shared_type();
        for (int k = 0; k <= 2 * blocks; ++k) data[k] = check_rank == 0 ? i + k : -1;
        pthread_barrier_wait(&together);
        MPI_Bcast(data, 1, shared_type, 0, comm);
        for (int k = 0; k < blocks; ++k) {
            const int at = 2 * k + k % 2;
            if (data[at] != i + at) FAIL("round %d of a shared type: block %d, a wrong byte 0", i, k);
        }
        if (pthread_barrier_wait(&together) == PTHREAD_BARRIER_SERIAL_THREAD) MPI_Type_free(&shared_type);
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
    pthread_barrier_init(&together, NULL, 2);
    pthread_create(&other, NULL, broadcast_shared_type, &comms[1]);
    broadcast_shared_type(&comms[0]);
    pthread_join(other, NULL);
    check_count += 2 * (rounds + type_rounds);
    MPI_Comm_free(&comms[0]);
    MPI_Comm_free(&comms[1]);
    return check_end();
}
