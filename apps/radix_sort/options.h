// The options of the radix sort.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/options.h"

namespace thalweg::apps {

struct SortOptions {
    CommonOptions common;
    std::vector<std::uint64_t> keys{1u << 18};
    std::vector<std::string> inputs{"random"};
    int key_bits = 32, digit_bits = 16;
    std::uint64_t seed = 1, serial_bytes = 16u << 20;

    void add_to(CLI::App& app);
};

}  // namespace thalweg::apps
