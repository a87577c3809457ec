/* The system refuses one rank the thread that would advance its nonblocking operations: all ranks then leave
 * them to the MPI library. Rank 0 sits in a receive whose message is sent only when the broadcast that passes
 * through rank 0 is complete elsewhere.
 *
 * This program's pthread_create is everybody's: it refuses what the preload object asks for.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>

#include "check.h"

enum { bytes = 400000, rounds = 3 };

static int refuses;

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*), void* argument) {
    static int (*next)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
    Dl_info info;
    if (next == NULL) *(void**)&next = dlsym(RTLD_NEXT, "pthread_create");
    if (refuses && dladdr(*(void**)&run, &info) != 0 && strstr(info.dli_fname, "libthalweg") != NULL)
        return EAGAIN;
    return next(thread, attributes, run, argument);
}

int main(int argc, char** argv) {
    static unsigned char data[bytes];
    check_start(&argc, &argv, MPI_THREAD_MULTIPLE);
    const int last = check_size - 1;
    refuses = check_rank == 0;
    for (int round = 0; round < rounds; ++round) {
        MPI_Request request;
        int token = round;
        memset(data, poison_value, bytes);
        if (check_rank == last) fill(data, bytes, (unsigned)round);
        MPI_Ibcast(data, bytes, MPI_BYTE, last, MPI_COMM_WORLD, &request);
        if (expect_thalweg()) CHECK(!was_accelerated(), "was taken, without the thread of rank 0");
        if (check_rank == 0) MPI_Recv(&token, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (check_rank == 1) MPI_Send(&token, 1, MPI_INT, 0, 3, MPI_COMM_WORLD);
        verify(data, bytes, (unsigned)round, "a broadcast");
        MPI_Barrier(MPI_COMM_WORLD); /* where the communicator is set up */
    }
    return check_end();
}
