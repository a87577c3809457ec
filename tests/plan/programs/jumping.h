/* An error handler that jumps out of the call that it is called in. */
#ifndef THALWEG_TESTS_PLAN_JUMPING_H
#define THALWEG_TESTS_PLAN_JUMPING_H

#include <mpi.h>
#include <setjmp.h>

static jmp_buf back;
static volatile int heard;

static void jump(MPI_Comm* comm, int* code, ...) {
    (void)comm, (void)code;
    ++heard;
    longjmp(back, 1);
}

static inline MPI_Errhandler jumping_handler(void) {
    MPI_Errhandler jumps;
    MPI_Comm_create_errhandler(jump, &jumps);
    return jumps;
}

#endif
