// What a process may still open.
#pragma once

#include <cstdint>

namespace thalweg {

// Descriptors that the process may still open (RLIMIT_NOFILE); UINT64_MAX where nobody tells.
std::uint64_t descriptors_left();

}  // namespace thalweg
