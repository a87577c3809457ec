#include "transport/ucx/devices.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "transport/ucx/ucx.h"

namespace thalweg {
namespace {

// A second address of a device may have a label behind the device's name, as "eth0:1".
std::string device_of(const std::string& interface) { return interface.substr(0, interface.find(':')); }

// The addresses of bridges of containers are the same on every host.
bool is_bridge(const std::string& device, const std::filesystem::path& classes) {
    std::error_code error;
    return std::filesystem::exists(classes / "net" / device / "bridge", error);
}

// What a device lies upon, as a VLAN upon the device that it is named after and a bond upon several: through
// how many layers, and the lowest, which is the device itself where there is nothing below.
struct Below {
    int layers = 0;
    std::set<std::string> lowest;
};
Below below_of(const std::string& device, const std::filesystem::path& classes) {
    constexpr std::string_view lies_upon = "lower_";
    Below below;
    std::error_code error;
    std::filesystem::directory_iterator entry(classes / "net" / device, error);
    for (const std::filesystem::directory_iterator end; !error && entry != end; entry.increment(error)) {
        const std::string name = entry->path().filename().string();
        if (!name.starts_with(lies_upon)) continue;
        Below next = below_of(name.substr(lies_upon.size()), classes);
        below.layers = std::max(below.layers, next.layers + 1);
        below.lowest.merge(next.lowest);
    }
    if (below.lowest.empty()) below.lowest.insert(device);
    return below;
}

// With addresses: up, no loopback and no tunnel.
std::vector<std::string> interfaces_of_host() {
    ifaddrs* first = nullptr;
    if (getifaddrs(&first) != 0) return {};
    std::vector<std::string> interfaces;
    for (const ifaddrs* entry = first; entry; entry = entry->ifa_next) {
        if (!entry->ifa_addr || entry->ifa_addr->sa_family != AF_INET) continue;
        constexpr unsigned wanted = IFF_UP | IFF_RUNNING, unwanted = IFF_LOOPBACK | IFF_POINTOPOINT;
        if ((entry->ifa_flags & (wanted | unwanted)) == wanted) interfaces.emplace_back(entry->ifa_name);
    }
    freeifaddrs(first);
    return interfaces;
}

}  // namespace

namespace ucx {

bool has_infiniband(const std::filesystem::path& classes) {
    std::error_code error;
    const std::filesystem::directory_iterator devices(classes / "infiniband", error);
    return !error && devices != std::filesystem::directory_iterator();
}

std::vector<std::string> rails_among(const std::vector<std::string>& interfaces,
                                     const std::filesystem::path& classes) {
    // The interface of an adapter is the slow way to it, and to name it keeps libucp from the fast one.
    if (has_infiniband(classes)) return {};
    std::map<std::string, long> mbit_per_s;  // by name
    for (const std::string& interface : interfaces) {
        const std::string name = device_of(interface);
        if (is_bridge(name, classes)) continue;
        long speed = 0;  // devices that do not know theirs are of one kind
        std::ifstream(classes / "net" / name / "speed") >> speed;
        mbit_per_s[name] = std::max(speed, 0L);
    }
    // Two networks on one link (VLANs, and what else lies upon a device, which need have no address) carry no
    // more than one. The lowest device stays.
    std::map<std::pair<int, std::string>, std::set<std::string>> links;
    for (const auto& [name, speed] : mbit_per_s) {
        Below below = below_of(name, classes);
        links[{below.layers, name}] = std::move(below.lowest);
    }
    std::set<std::string> taken;
    for (const auto& [device, lowest] : links) {
        const bool shares = std::any_of(lowest.begin(), lowest.end(),
                                        [&taken](const std::string& link) { return taken.contains(link); });
        if (shares)
            mbit_per_s.erase(device.second);
        else
            taken.insert(lowest.begin(), lowest.end());
    }
    long fastest = 0;
    for (const auto& [name, speed] : mbit_per_s) fastest = std::max(fastest, speed);
    std::vector<std::string> names;
    for (const auto& [name, speed] : mbit_per_s) {
        if (speed == fastest && names.size() < ucx_most_rails) names.push_back(name);
    }
    return names;
}

std::string without_bridges(const std::vector<std::string>& interfaces,
                            const std::filesystem::path& classes) {
    std::set<std::string> others;
    bool bridges = false;
    for (const std::string& interface : interfaces) {
        const std::string name = device_of(interface);
        if (is_bridge(name, classes))
            bridges = true;
        else
            others.insert(name);
    }
    std::string list;
    if (bridges)
        for (const std::string& name : others) list += (list.empty() ? "" : ",") + name;
    return list;
}

std::string devices_but_bridges() {
    return has_infiniband() ? std::string() : without_bridges(interfaces_of_host());
}

}  // namespace ucx

std::vector<std::string> ucx_devices() {
    // What the user leaves out may lead nowhere.
    for (const char* const named : {"THALWEG_UCX_NET_DEVICES", "UCX_NET_DEVICES"})
        if (std::getenv(named) != nullptr) return {};
    return ucx::rails_among(interfaces_of_host());
}

}  // namespace thalweg
