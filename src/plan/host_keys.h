// Where all ranks of the world are, so that a communicator of some of them need not ask.
#pragma once

#include <cstdint>
#include <span>

namespace thalweg {

// World::host_key() of every rank, in the order of the world; empty where there are so many ranks that nobody
// gathered them in MPI_Init, or one had no memory for it: equal on all ranks. Valid as long as the process.
std::span<const std::uint64_t> host_keys();

}  // namespace thalweg
