#include "bench/sizes.h"

#include <algorithm>

#include "base/text.h"

namespace thalweg::bench {

bool read_sizes(const std::vector<std::string>& texts, const std::string& collective,
                std::vector<std::uint64_t>& sizes, std::string& why) {
    constexpr std::uint64_t most = 0x7fffffff, element = sizeof(std::int64_t);
    const bool sums = collective == "allreduce" || collective == "iallreduce";
    for (const auto& text : texts) {
        const auto bytes = parse_bytes(text);
        if (!bytes || *bytes == 0 || *bytes > most) {
            why = "--bytes " + text + ": give sizes from 1 to 2147483647, like 64K or 4M";
            return false;
        }
        if (sums && *bytes % element != 0) {
            why =
                "--bytes " + text + ": integers of 8 bytes are added up: give multiples of 8, like 64K or 4M";
            return false;
        }
        sizes.push_back(*bytes);
    }
    std::sort(sizes.begin(), sizes.end());
    sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
    return true;
}

}  // namespace thalweg::bench
