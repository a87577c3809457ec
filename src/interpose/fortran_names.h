/* How the generated wrappers of Fortran's names are written: `call` is the name without an underscore, whose
 * parameters and arguments are the macros PARAMETERS_call and ARGUMENTS_call, and whose body is body_call. */
#ifndef THALWEG_INTERPOSE_FORTRAN_NAMES_H
#define THALWEG_INTERPOSE_FORTRAN_NAMES_H

#include <mpi.h>

#include "interpose/next.h"

/* An exported name with its own record of what comes next, and what its body, which it shares with its other
 * spellings, is told in front of the arguments. */
#define THALWEG_FORTRAN_TELLS(symbol, call, ...)                                      \
    void wrap_fortran_##symbol(PARAMETERS_##call) THALWEG_WRAPS(symbol);              \
    static ThalwegNext next_##symbol = {#symbol, (void*)wrap_fortran_##symbol, NULL}; \
    void wrap_fortran_##symbol(PARAMETERS_##call) { body_##call(&next_##symbol, __VA_ARGS__); }

#define THALWEG_FORTRAN_NAME(symbol, call) THALWEG_FORTRAN_TELLS(symbol, call, ARGUMENTS_##call)

/* Of a wait that may become the test of the same requests. */
#define THALWEG_FORTRAN_PAIR(symbol, call, test) \
    THALWEG_FORTRAN_TELLS(symbol, call, &next_##test, ARGUMENTS_##call)

/* Of a call that is asked about: whether its native binding calls the C function, whose wrapper shall not ask
 * again. The MPICH family's do; Open MPI's call PMPI's, as those of mpi_f08 without a buffer do everywhere.
 */
#define THALWEG_FORTRAN_ASKED(symbol, call, calls_c) \
    THALWEG_FORTRAN_TELLS(symbol, call, calls_c, ARGUMENTS_##call)
#if defined(OPEN_MPI)
#define THALWEG_BINDING_CALLS_C 0
#else
#define THALWEG_BINDING_CALLS_C 1
#endif

#endif
