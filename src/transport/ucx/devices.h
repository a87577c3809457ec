// The network devices of a host, as the kernel tells of them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace thalweg::ucx {

// Where it does.
inline constexpr const char* device_classes = "/sys/class";

// Whether the host has adapters that libucp drives by themselves, not by way of the system's sockets:
// InfiniBand, RoCE and the like.
bool has_infiniband(const std::filesystem::path& classes = device_classes);

// Those of these interfaces, which are up and have addresses, that look like rails: ucx_devices() of the
// host.
std::vector<std::string> rails_among(const std::vector<std::string>& interfaces,
                                     const std::filesystem::path& classes = device_classes);

// Where some of these interfaces are bridges: the others, as a list for libucp. Else, and where there are no
// others, nothing.
std::string without_bridges(const std::vector<std::string>& interfaces,
                            const std::filesystem::path& classes = device_classes);
// The same of those of this host, where libucp has no adapters besides.
std::string devices_but_bridges();

}  // namespace thalweg::ucx
