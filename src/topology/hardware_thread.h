// A hardware thread of this host.
#pragma once

namespace thalweg {

// Numbers other than os_index count from 0 in the machine's order; -1: the machine has none, or it was not
// asked.
struct HardwareThread {
    int os_index = 0;  // as in /proc/cpuinfo and taskset
    int core = -1;
    int numa = -1;
    int package = -1;
    bool usable = false;  // in this process's affinity mask, and not taken away by a cgroup

    bool operator==(const HardwareThread&) const = default;
};

}  // namespace thalweg
