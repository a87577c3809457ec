// Where a rank's agent lives. The hardware threads of the rank's own mask are the only candidates: another
// rank's are never taken, and one that the program computes on is not either.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/cpu_mask.h"
#include "base/options.h"
#include "base/status.h"
#include "topology/hardware_thread.h"

namespace thalweg {

struct Surroundings {
    // The rank's usable hardware threads at least, each with its core.
    std::span<const HardwareThread> threads;
    int home = -1;              // the one that the rank's computing thread runs on; -1: not known
    int computing_threads = 1;  // threads of the rank that want a core each
    // Another rank of this host may use some of the usable ones: masks overlap, or there are none.
    bool shared = false;
};

// none: no agent. anywhere: not bound, and it sleeps. sibling: beside a computing thread, on the other
// hardware thread of a core; it may idle there by an instruction that leaves the core to the other. core: on
// one that nothing computes on; it may spin.
enum class AgentPlace : std::uint8_t { none, anywhere, sibling, core };
const char* name_of(AgentPlace place);

struct AgentPlacement {
    AgentPlace place = AgentPlace::anywhere;
    int hardware_thread = -1;  // the one to be bound to; -1: none
    const char* why = "";      // why not what was asked for, or the best; one clause, static storage
};

// Pure.
AgentPlacement place_agent(AgentSetting wanted, const Surroundings& surroundings);

// Where the kernel describes them.
inline constexpr const char* kernels_cpus = "/sys/devices/system/cpu";
// The hardware threads of `mask` and the others of their cores, ascending, with core and usable set, as the
// kernel says (`root`: where; another in tests). About 10 us a core. Not by hwloc: this runs inside the
// program, which may carry an hwloc of its own. unsupported: the kernel does not say; `threads` is unchanged.
Status own_hardware_threads(std::vector<HardwareThread>& threads, const std::string& root = kernels_cpus,
                            const CpuMask& mask = mask_of_this_thread());

// How many threads of this process compute: those that have had at least a quarter of the CPU time of the one
// that had most, and at least as many as OMP_NUM_THREADS says (`environment` as environ). At least 1.
int computing_threads(const char* const* environment);

// "0-2,6" to {0, 1, 2, 6}. False: malformed.
bool parse_cpu_list(std::string_view text, std::vector<int>& cpus);

}  // namespace thalweg
