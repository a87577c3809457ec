// What the programs that this one starts inherit of `thalweg run`.
#pragma once

namespace thalweg {

// The MPI library that was preloaded for this program, which loads its own out of everybody's sight, is this
// program's: another one may have another, and one without MPI need not load any. Takes it out of LD_PRELOAD
// in the environment; our objects and what the user preloads stay.
void keep_mpi_to_this_program();

}  // namespace thalweg
