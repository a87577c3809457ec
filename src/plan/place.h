// What this process can find out about the machine under it. No MPI.
#pragma once

#include <cstdint>

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

}  // namespace thalweg
