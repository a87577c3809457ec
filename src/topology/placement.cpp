#include "topology/placement.h"

#include <dirent.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <set>

namespace thalweg {
namespace {

// A thread with less CPU time than this fraction of the busiest one's waits more than it computes.
constexpr std::uint64_t computing_share = 4;

struct Core {
    int number = -1;
    std::vector<int> usable;  // os_index, ascending
};

// The cores of which at least one thread is usable. A thread without a core is one by itself.
std::vector<Core> usable_cores(std::span<const HardwareThread> threads) {
    std::vector<Core> cores;
    for (const HardwareThread& thread : threads) {
        if (!thread.usable) continue;
        auto core = std::find_if(cores.begin(), cores.end(), [&](const Core& it) {
            return thread.core >= 0 && it.number == thread.core;
        });
        if (core == cores.end()) core = cores.insert(core, Core{thread.core, {}});
        core->usable.push_back(thread.os_index);
    }
    for (Core& core : cores) std::sort(core.usable.begin(), core.usable.end());
    return cores;
}

bool has(const Core& core, int os_index) {
    return std::find(core.usable.begin(), core.usable.end(), os_index) != core.usable.end();
}

AgentPlacement beside(const std::vector<Core>& cores, const Surroundings& around) {
    for (const Core& core : cores) {
        if (!has(core, around.home)) continue;
        for (int os_index : core.usable) {
            if (os_index != around.home) return {AgentPlace::sibling, os_index, ""};
        }
        return {AgentPlace::anywhere, -1, "the other hardware thread of its core is not in the rank's mask"};
    }
    // The computing thread is somewhere in the mask: any core's second thread is no further from it.
    for (const Core& core : cores) {
        if (core.usable.size() >= 2) return {AgentPlace::sibling, core.usable.back(), ""};
    }
    return {AgentPlace::anywhere, -1, "the rank's mask has no core with two hardware threads"};
}

AgentPlacement apart(const std::vector<Core>& cores, const Surroundings& around) {
    if (static_cast<int>(cores.size()) <= around.computing_threads)
        return {AgentPlace::anywhere, -1, "the program computes on every core of the rank's mask"};
    for (auto core = cores.rbegin(); core != cores.rend(); ++core) {
        if (!has(*core, around.home)) return {AgentPlace::core, core->usable.front(), ""};
    }
    return {AgentPlace::anywhere, -1, "the rank's mask has one core"};
}

bool read_line(const std::string& path, std::string& line) {
    std::ifstream file(path);
    return static_cast<bool>(std::getline(file, line));
}

}  // namespace

const char* name_of(AgentPlace place) {
    switch (place) {
        case AgentPlace::none:
            return "none";
        case AgentPlace::anywhere:
            return "anywhere";
        case AgentPlace::sibling:
            return "sibling";
        case AgentPlace::core:
            return "core";
    }
    return "unknown";
}

AgentPlacement place_agent(AgentSetting wanted, const Surroundings& around) {
    if (wanted == AgentSetting::off) return {AgentPlace::none, -1, "switched off"};
    if (wanted == AgentSetting::sleep) return {AgentPlace::anywhere, -1, ""};
    const std::vector<Core> cores = usable_cores(around.threads);
    if (cores.empty()) return {AgentPlace::anywhere, -1, "the rank's hardware threads are not known"};
    if (around.shared) return {AgentPlace::anywhere, -1, "other ranks may run on the same hardware threads"};
    if (wanted == AgentSetting::core) return apart(cores, around);
    if (around.computing_threads > static_cast<int>(cores.size()))
        return {AgentPlace::anywhere, -1,
                "the program has more computing threads than the rank's mask has cores"};
    return beside(cores, around);
}

bool parse_cpu_list(std::string_view text, std::vector<int>& cpus) {
    std::vector<int> parsed;
    while (!text.empty()) {
        const std::string_view part = text.substr(0, text.find(','));
        int first = 0, last = 0;
        const char* const end = part.data() + part.size();
        auto [at, error] = std::from_chars(part.data(), end, first);
        if (error != std::errc() || first < 0) return false;
        last = first;
        if (at != end && *at == '-') {
            const auto second = std::from_chars(at + 1, end, last);
            if (second.ec != std::errc()) return false;
            at = second.ptr;
        }
        if (at != end || last < first || last - first > 1 << 20) return false;
        for (int cpu = first; cpu <= last; ++cpu) parsed.push_back(cpu);
        text.remove_prefix(std::min(text.size(), part.size() + 1));
    }
    if (parsed.empty()) return false;
    cpus = std::move(parsed);
    return true;
}

Status own_hardware_threads(std::vector<HardwareThread>& threads, const std::string& root,
                            const CpuMask& mask) {
    if (mask.empty()) return Status::unsupported;
    const std::vector<int> cpus = numbers_in(mask);
    const std::set<int> usable(cpus.begin(), cpus.end());
    std::vector<HardwareThread> found;
    std::set<int> seen;
    int cores = 0;
    for (int cpu : cpus) {
        if (seen.count(cpu) != 0) continue;
        std::string line;
        std::vector<int> core;
        if (!read_line(root + "/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list", line) ||
            !parse_cpu_list(line, core))
            return Status::unsupported;
        for (int thread : core) {
            if (seen.insert(thread).second)
                found.push_back({thread, cores, -1, -1, usable.count(thread) != 0});
        }
        ++cores;
    }
    std::sort(found.begin(), found.end(),
              [](const HardwareThread& a, const HardwareThread& b) { return a.os_index < b.os_index; });
    threads = std::move(found);
    return Status::ok;
}

int computing_threads(const char* const* environment) {
    constexpr std::string_view variable = "OMP_NUM_THREADS=";
    int count = 1;
    for (; environment != nullptr && *environment != nullptr; ++environment) {
        if (std::strncmp(*environment, variable.data(), variable.size()) == 0)
            count = std::max(count, std::atoi(*environment + variable.size()));
    }
    std::vector<std::uint64_t> times;
    DIR* const tasks = opendir("/proc/self/task");
    if (tasks == nullptr) return count;
    while (const dirent* entry = readdir(tasks)) {
        std::string line;
        if (entry->d_name[0] != '.' &&
            read_line(std::string("/proc/self/task/") + entry->d_name + "/schedstat", line))
            times.push_back(std::strtoull(line.c_str(), nullptr, 10));
    }
    closedir(tasks);
    if (times.empty()) return count;
    const std::uint64_t least = *std::max_element(times.begin(), times.end()) / computing_share;
    const auto busy = std::count_if(times.begin(), times.end(),
                                    [&](std::uint64_t time) { return time >= least && time > 0; });
    return std::max(count, static_cast<int>(busy));
}

}  // namespace thalweg
