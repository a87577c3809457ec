#include <ifaddrs.h>
#include <net/if.h>
#include <sys/socket.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

#include "transport/ucx/ucx.h"

namespace thalweg {

std::vector<std::string> ucx_devices() {
    ifaddrs* first = nullptr;
    if (getifaddrs(&first) != 0) return {};
    std::map<std::string, long> mbit_per_s;  // by name
    for (const ifaddrs* entry = first; entry; entry = entry->ifa_next) {
        if (!entry->ifa_addr || entry->ifa_addr->sa_family != AF_INET) continue;
        constexpr unsigned wanted = IFF_UP | IFF_RUNNING, unwanted = IFF_LOOPBACK | IFF_POINTOPOINT;
        if ((entry->ifa_flags & (wanted | unwanted)) != wanted) continue;
        const std::filesystem::path folder = std::filesystem::path("/sys/class/net") / entry->ifa_name;
        std::error_code error;
        // The addresses of bridges of containers are the same on every host.
        if (std::filesystem::exists(folder / "bridge", error)) continue;
        long speed = 0;  // devices that do not know theirs are of one kind
        std::ifstream(folder / "speed") >> speed;
        mbit_per_s[entry->ifa_name] = std::max(speed, 0L);
    }
    freeifaddrs(first);
    long fastest = 0;
    for (const auto& [name, speed] : mbit_per_s) fastest = std::max(fastest, speed);
    std::vector<std::string> names;
    for (const auto& [name, speed] : mbit_per_s) {
        if (speed == fastest && names.size() < ucx_most_rails) names.push_back(name);
    }
    return names;
}

}  // namespace thalweg
