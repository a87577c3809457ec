// Memory that a host copy must not touch: CUDA's and HIP's. Their drivers are never loaded by us, only used
// when the program has loaded them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/status.h"

namespace thalweg {

enum class Memory : std::uint8_t { host, cuda, hip };

// Whose memory `address` is. Costs one look at the loader's counter when no driver is loaded, one question to
// the driver when one is. Managed memory counts as the driver's: its copy is right for it too.
Memory memory_of(const void* address);

// Copies between host memory and `kind`'s, complete on return. Errors: transport_failed.
Status copy(Memory kind, void* to, const void* from, std::size_t bytes);

}  // namespace thalweg
