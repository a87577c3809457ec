// What a collective leaves alone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "schedule/step.h"

namespace thalweg::oracle {

// What lies in the first `bytes` of `out` between the parts of a result, which do not overlap.
inline std::vector<Slice> gaps_between(std::vector<Slice> parts, std::uint64_t bytes) {
    std::sort(parts.begin(), parts.end(), [](const Slice& a, const Slice& b) { return a.offset < b.offset; });
    std::vector<Slice> gaps;
    std::uint64_t at = 0;
    parts.push_back({Buffer::out, bytes, 0});
    for (const Slice& part : parts) {
        if (part.offset > at) gaps.push_back({Buffer::out, at, part.offset - at});
        at = part.end();
    }
    return gaps;
}

}  // namespace thalweg::oracle
