/* What the wrappers hand on, in the types that are the same in every ABI. */
#ifndef THALWEG_INTERPOSE_HANDLES_H
#define THALWEG_INTERPOSE_HANDLES_H

#include <stdint.h>

/* A handle passed by value, whatever the family: ints and pointers both travel in one integer register, and a
 * wrapper that hands on the whole register is right even for an MPI whose handles have another size than it
 * was built for. */
typedef intptr_t ThalwegHandle;

/* MPI_Count: 64 bits in every family. */
typedef int64_t ThalwegCount;

/* Names the symbol of a wrapper. The wrappers are not called MPI_* in C, because mpi.h would fix their
 * argument types to one family's handles. */
#define THALWEG_WRAPS(symbol) __asm__(#symbol) __attribute__((visibility("default")))

#endif
