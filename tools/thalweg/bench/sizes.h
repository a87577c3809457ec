// Sizes of messages as the command line has them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace thalweg::bench {

// In order, and each once. False with one sentence in `why` where one is none, or none of this collective.
bool read_sizes(const std::vector<std::string>& texts, const std::string& collective,
                std::vector<std::uint64_t>& sizes, std::string& why);

}  // namespace thalweg::bench
