/* What plain programs need whose ranks sleep until an instant of the clock that they share. Their own calls
 * are the library's, past whatever is in front of it. */
#ifndef THALWEG_TESTS_SIM_INSTANTS_H
#define THALWEG_TESTS_SIM_INSTANTS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static inline double seconds_of(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* For qsort, of doubles. */
static inline int ascending(const void* a, const void* b) {
    const double x = *(const double*)a, y = *(const double*)b;
    return (x > y) - (x < y);
}

static inline void nap_until_complete(MPI_Request* request) {
    for (int done = 0; !done;) {
        PMPI_Test(request, &done, MPI_STATUS_IGNORE);
        if (!done) usleep(200);
    }
}

/* Of CLOCK_MONOTONIC, in seconds: 6 ms after the last rank of `comm` came. */
static inline double agree_on_instant(MPI_Comm comm) {
    MPI_Request request;
    double instant;
    PMPI_Ibarrier(comm, &request);
    nap_until_complete(&request);
    instant = seconds_of(CLOCK_MONOTONIC) + 0.006;
    PMPI_Iallreduce(MPI_IN_PLACE, &instant, 1, MPI_DOUBLE, MPI_MAX, comm, &request);
    nap_until_complete(&request);
    return instant;
}

static inline void sleep_until(double instant) {
    const struct timespec until = {(time_t)instant, (long)((instant - (double)(time_t)instant) * 1e9)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) != 0) {
    }
}

/* Ends the job: what was measured is not what it is called. */
static inline void refuse(const char* why) {
    fprintf(stderr, "%s\n", why);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* What rank `from` has for rank `to` in round `round`, in every byte; then what came is told from it. */
static inline int letter(int from, int to, int round) { return (31 * from + 7 * to + 3 * round) & 127; }
static inline void check(const char* came, int bytes, int expected) {
    for (int i = 0; i < bytes; ++i)
        if (came[i] != expected) refuse("a wrong byte came");
}

#endif
