#include "driver/link_counters.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>

namespace thalweg::bench {
namespace {

std::uint64_t read_number(const std::string& path) {
    char text[32] = {};
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    const ssize_t length = ::read(file, text, sizeof text - 1);
    close(file);
    return length > 0 ? std::strtoull(text, nullptr, 10) : 0;
}

}  // namespace

LinkReader::LinkReader() {
    for (int rail = 0;; ++rail) {
        const std::string folder = "/sys/class/net/rail" + std::to_string(rail) + "/statistics/";
        if (access((folder + "tx_bytes").c_str(), R_OK) != 0) break;
        folders_.push_back(folder);
    }
}

LinkCounters LinkReader::read() const {
    LinkCounters sum;
    for (const auto& folder : folders_)
        sum += {read_number(folder + "tx_bytes"), read_number(folder + "rx_bytes"),
                read_number(folder + "tx_packets"), read_number(folder + "rx_packets")};
    return sum;
}

}  // namespace thalweg::bench
