// The predefined reductions that a thread without the MPI library can compute: MPI's operations on its C and
// Fortran arithmetic types.
#pragma once

#include <mpi.h>

#include "engine/engine.h"

namespace thalweg {

// False: not one of them (an operation of the program; an optional type that this compiler lacks). `reducer`
// is then unchanged. Elements are combined as they are packed, without gaps (MPI_DOUBLE_INT has 12 bytes).
// The answer is the same on all ranks. One of floating-point numbers `rounds`: the order of operands shows in
// the result (a sum's last bits, which of two zeros is the smaller).
bool find_reducer(MPI_Op operation, MPI_Datatype type, Reducer& reducer);

// Whether it is none of those that MPI defines for reductions (MPI 4.1, section 6.9.2): the program may free
// it.
bool of_the_program(MPI_Op operation);

}  // namespace thalweg
