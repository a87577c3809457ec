// The sizes of predefined datatypes whose handles do not tell them.
#pragma once

#include "plan/shortcut.h"

namespace thalweg {

// Null where handles tell (MPICH ABI). Pre: the MPI library is initialized. By one thread at a time; valid as
// long as the process.
const ThalwegTypeSizes* predefined_sizes();

}  // namespace thalweg
