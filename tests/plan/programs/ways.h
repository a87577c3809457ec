/* A collective in each of its ways: nonblocking, as a plan, blocking. THALWEG_TEST_TAKEN=1: all were taken.
 */
#ifndef WAYS_H
#define WAYS_H

#include "check.h"

static void expect_taken(int taken, const char* what) {
    if (!expect_thalweg() || check_size == 1 || getenv("THALWEG_TEST_TAKEN") == NULL) return;
    CHECK(was_accelerated() == taken, "%s: %s", what, taken ? last_reason() : "was taken");
}

/* Every check runs in each of these ways. A blocking call has the null request. */
enum { nonblocking, persistent, blocking };

static void begin(int way, MPI_Request* request) {
    if (way == persistent) MPI_Start(request);
}
static void end(int way, MPI_Request* request, int last) {
    MPI_Wait(request, MPI_STATUS_IGNORE);
    if (way == persistent && last) MPI_Request_free(request);
}

/* So that nonblocking ones are taken: the blocking call after one sets the world up. */
static void set_up_world(void) {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
}

#endif
