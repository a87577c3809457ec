// What MPI_Alltoallv of an MPI library runs, as a column of ours: a gain splits into algorithm and waiting.
#pragma once

#include <string>
#include <string_view>

namespace thalweg::bench {

// The column of plans that send the same messages as the library's own MPI_Alltoallv among so many ranks, as
// its public sources have it (sim/natives.h); the traffic does not tell, because every algorithm that sends
// each message straight to its rank has the same. Empty where the sources are not public, or no column is
// that.
std::string twin_column(std::string_view mpi, int ranks);

}  // namespace thalweg::bench
