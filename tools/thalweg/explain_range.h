// How much the cost model can count.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "model/machine.h"
#include "topology/topology.h"

namespace thalweg::tool {

// Its times are whole picoseconds of 64 bits. A sentence where `bytes` from or to every rank might take an
// algorithm, the slowest there could be, longer than that; else an empty text.
std::string beyond_the_model(std::uint64_t bytes, const Topology& topology, const Machine& machine);

// The same of an exchange: from rank i to rank j at i * ranks + j.
std::string beyond_the_model(std::span<const std::uint64_t> matrix, const Topology& topology,
                             const Machine& machine);

}  // namespace thalweg::tool
