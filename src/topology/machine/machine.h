// This machine, as hwloc sees it: packages, NUMA domains, cores, SMT siblings, and which of them this process
// may use. No preload object links hwloc (docs/decisions/0106-where-a-topology-comes-from.md).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "topology/hardware_thread.h"

namespace thalweg {

struct LocalMachine {
    std::string cpu_model;           // empty: unknown
    std::uint64_t memory_bytes = 0;  // of all NUMA domains; 0: unknown
    int packages = 0;                // sockets
    int numa_domains = 0;
    int cores = 0;
    std::vector<HardwareThread> threads;  // ascending os_index

    int usable_threads() const;
    // Cores with at least one usable thread: how many ranks can compute at a time without sharing.
    int usable_cores() const;

    // The other hardware threads of the same core, ascending; empty without SMT or for an unknown os_index.
    std::vector<int> siblings(int os_index) const;
    // The first of them that this process may use, or -1: where an agent beside a rank on `os_index` can
    // live.
    int usable_sibling(int os_index) const;

    // "1 package, 2 cores, 4 threads, 1 NUMA domain; this process may use threads 0-1 (1 core)".
    std::string to_text() const;
};

// Describes the machine and this process's mask. Talks to the operating system only; milliseconds.
// unsupported: hwloc cannot see it; `machine` is unchanged and `why` is one sentence.
Status describe_machine(LocalMachine& machine, std::string& why);

// The same for a machine that does not exist: hwloc's synthetic form, "pack:2 numa:1 core:4 pu:2", and the
// hardware threads that the process may use (empty: all). invalid_argument: hwloc does not understand the
// description.
Status describe_synthetic(const std::string& description, std::span<const int> usable, LocalMachine& machine,
                          std::string& why);

// The same for a machine that was recorded: an XML file of hwloc's (`lstopo machine.xml`). What a cgroup had
// taken away there is not usable.
Status describe_xml(const std::string& file, std::span<const int> usable, LocalMachine& machine,
                    std::string& why);

}  // namespace thalweg
