// What this process can find out about the machine under it. No MPI.
#pragma once

#include <cstdint>

#include "base/cpu_mask.h"

namespace thalweg {

struct PlaceFacts {
    // Hash of host name, boot id and network namespace: what ranks must share to be "on one host" for a
    // topology.
    std::uint64_t host_key = 0;
    // Hash of boot id and CPU mask: ranks that share it compete for the same cores, whatever their namespaces
    // say.
    std::uint64_t cores_key = 0;
    std::uint32_t cores = 1;  // in the mask, lowered to the cgroup's quota
};

// Reads /proc and the CPU mask; facts that cannot be read are left out of the hashes. Takes about 0.1 ms.
PlaceFacts find_place();

// What the thread that called find_place() first, in MPI_Init, might run on: all of the process, mostly.
// Later the program may bind the threads that it computes in, as OpenMP does, the first one among them.
// Empty: it was not to be had. Lives as long as the process.
const CpuMask& mask_in_init();

}  // namespace thalweg
