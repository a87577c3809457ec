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

// `count` rows of `bytes` bytes each, the first at `first`, each `stride` bytes behind the one before.
struct Rows {
    std::byte* first = nullptr;
    std::uint64_t bytes = 0;
    std::int64_t stride = 0;
    std::uint64_t count = 0;
};

// Whether the driver copies such rows at once, as far as they lie in one allocation; if not, each is a copy
// of its own.
bool copies_at_once(Memory kind, std::uint64_t bytes, std::int64_t stride);

// Rows in memory of `kind` to `packed`, which is the host's, one behind the other; and back. Errors:
// transport_failed.
Status pack_rows(Memory kind, std::byte* packed, const Rows& rows);
Status unpack_rows(Memory kind, const Rows& rows, const std::byte* packed);

// What was unpacked is there, for every stream of the program, and no sooner. `address`: some of that memory.
Status settle(Memory kind, const void* address);

}  // namespace thalweg
