/* A good call, which works whatever went before. */
#pragma once

#include "check.h"

/* A broadcast of rank 0; `after` says what went before. */
static inline void works(MPI_Comm comm, const char* after) {
    static unsigned char data[40000];
    static unsigned seed = 100;
    memset(data, poison_value, sizeof data);
    ++seed;
    if (check_rank == 0) fill(data, sizeof data, seed);
    CHECK(MPI_Bcast(data, sizeof data, MPI_BYTE, 0, comm) == MPI_SUCCESS, "a good call after %s", after);
    verify(data, sizeof data, seed, after);
    if (expect_thalweg() && check_size > 1)
        CHECK(was_accelerated(), "not accelerated after %s: %s", after, last_reason());
}
