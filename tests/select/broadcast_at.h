// What the tests of this folder ask most.
#pragma once

#include <cstdint>
#include <string>

#include "algorithms/cases.h"
#include "select/select.h"

namespace thalweg {

inline Decision broadcast_at(const std::string& hosts, std::uint64_t bytes, const Selection& selection = {}) {
    return decide(Collective::bcast, bytes, topology_of(hosts), selection);
}

}  // namespace thalweg
