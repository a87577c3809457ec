#include "topology/machine/machine.h"

#include <hwloc.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <set>

namespace thalweg {
namespace {

struct DestroyTopology {
    void operator()(hwloc_topology_t topology) const { hwloc_topology_destroy(topology); }
};
using HwlocTopology = std::unique_ptr<hwloc_topology, DestroyTopology>;

struct FreeBitmap {
    void operator()(hwloc_bitmap_t bitmap) const { hwloc_bitmap_free(bitmap); }
};
using Bitmap = std::unique_ptr<hwloc_bitmap_s, FreeBitmap>;

int ancestor(hwloc_topology_t topology, hwloc_obj_t thread, hwloc_obj_type_t type) {
    const hwloc_obj_t object = hwloc_get_ancestor_obj_by_type(topology, type, thread);
    return object == nullptr ? -1 : static_cast<int>(object->logical_index);
}

int numa_of(hwloc_topology_t topology, hwloc_obj_t thread) {
    const int os_index = thread->nodeset == nullptr ? -1 : hwloc_bitmap_first(thread->nodeset);
    if (os_index < 0) return -1;
    const hwloc_obj_t domain = hwloc_get_numanode_obj_by_os_index(topology, static_cast<unsigned>(os_index));
    return domain == nullptr ? -1 : static_cast<int>(domain->logical_index);
}

// `usable`: the threads that the process may use.
LocalMachine describe(hwloc_topology_t topology, hwloc_const_bitmap_t usable) {
    LocalMachine machine;
    machine.packages = std::max(0, hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PACKAGE));
    machine.numa_domains = std::max(0, hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE));
    machine.cores = std::max(0, hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE));
    const hwloc_obj_t root = hwloc_get_root_obj(topology);
    machine.memory_bytes = root->total_memory;
    for (hwloc_obj_t object : {hwloc_get_obj_by_type(topology, HWLOC_OBJ_PACKAGE, 0), root}) {
        const char* model = object == nullptr ? nullptr : hwloc_obj_get_info_by_name(object, "CPUModel");
        if (model != nullptr && machine.cpu_model.empty()) machine.cpu_model = model;
    }
    for (hwloc_obj_t thread = nullptr;
         (thread = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_PU, thread)) != nullptr;) {
        HardwareThread it;
        it.os_index = static_cast<int>(thread->os_index);
        it.core = ancestor(topology, thread, HWLOC_OBJ_CORE);
        it.package = ancestor(topology, thread, HWLOC_OBJ_PACKAGE);
        it.numa = numa_of(topology, thread);
        it.usable = hwloc_bitmap_isset(usable, thread->os_index) != 0;
        machine.threads.push_back(it);
    }
    std::sort(machine.threads.begin(), machine.threads.end(),
              [](const HardwareThread& a, const HardwareThread& b) { return a.os_index < b.os_index; });
    return machine;
}

// A topology of the whole machine, so that a core whose other thread belongs to somebody else still shows its
// sibling; not loaded yet. Null: `why` says it.
hwloc_topology_t start(std::string& why) {
    hwloc_topology_t raw = nullptr;
    if (hwloc_topology_init(&raw) != 0) {
        why = std::string("hwloc does not start: ") + std::strerror(errno);
        return nullptr;
    }
    hwloc_topology_set_flags(raw, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
    return raw;
}

// The machine that `set` gives to hwloc. invalid_argument: hwloc refuses it, `why` is unchanged.
template <class Set>
Status describe_other(Set set, std::span<const int> usable, LocalMachine& machine, std::string& why) {
    const HwlocTopology topology(start(why));
    hwloc_topology_t const raw = topology.get();
    if (raw == nullptr) return Status::unsupported;
    if (!set(raw) || hwloc_topology_load(raw) != 0) return Status::invalid_argument;
    const Bitmap mask(hwloc_bitmap_alloc());
    for (int os_index : usable) hwloc_bitmap_set(mask.get(), static_cast<unsigned>(os_index));
    if (usable.empty()) hwloc_bitmap_fill(mask.get());
    hwloc_bitmap_and(mask.get(), mask.get(), hwloc_topology_get_allowed_cpuset(raw));
    machine = describe(raw, mask.get());
    return Status::ok;
}

std::string plural(int count, const char* what) {
    return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

}  // namespace

int LocalMachine::usable_threads() const {
    return static_cast<int>(
        std::count_if(threads.begin(), threads.end(), [](auto& it) { return it.usable; }));
}

int LocalMachine::usable_cores() const {
    std::set<int> cores;  // threads without a known core count as one each
    for (const HardwareThread& it : threads)
        if (it.usable) cores.insert(it.core >= 0 ? it.core : -1 - it.os_index);
    return static_cast<int>(cores.size());
}

std::vector<int> LocalMachine::siblings(int os_index) const {
    std::vector<int> others;
    const auto self =
        std::find_if(threads.begin(), threads.end(), [&](auto& it) { return it.os_index == os_index; });
    if (self == threads.end() || self->core < 0) return others;
    for (const HardwareThread& it : threads)
        if (it.core == self->core && it.os_index != os_index) others.push_back(it.os_index);
    return others;
}

int LocalMachine::usable_sibling(int os_index) const {
    for (int sibling : siblings(os_index))
        for (const HardwareThread& it : threads)
            if (it.os_index == sibling && it.usable) return sibling;
    return -1;
}

std::string LocalMachine::to_text() const {
    std::string mask;
    for (std::size_t i = 0; i < threads.size(); ++i) {
        if (!threads[i].usable) continue;
        std::size_t last = i;
        while (last + 1 < threads.size() && threads[last + 1].usable &&
               threads[last + 1].os_index == threads[last].os_index + 1)
            ++last;
        mask += (mask.empty() ? "" : ",") + std::to_string(threads[i].os_index);
        if (last != i) mask += "-" + std::to_string(threads[last].os_index);
        i = last;
    }
    return plural(packages, "package") + ", " + plural(cores, "core") + ", " +
           plural(static_cast<int>(threads.size()), "thread") + ", " + plural(numa_domains, "NUMA domain") +
           "; this process may use " + (usable_threads() == 1 ? "thread " : "threads ") + mask + " (" +
           plural(usable_cores(), "core") + ")";
}

Status describe_machine(LocalMachine& machine, std::string& why) {
    const HwlocTopology topology(start(why));
    hwloc_topology_t const raw = topology.get();
    if (raw == nullptr) return Status::unsupported;
    if (hwloc_topology_load(raw) != 0) {
        why = std::string("hwloc cannot read this machine: ") + std::strerror(errno);
        return Status::unsupported;
    }
    const Bitmap usable(hwloc_bitmap_alloc());
    if (!usable || hwloc_get_cpubind(raw, usable.get(), HWLOC_CPUBIND_PROCESS) != 0) {
        why = std::string("hwloc cannot read the affinity mask of this process: ") + std::strerror(errno);
        return Status::unsupported;
    }
    hwloc_bitmap_and(usable.get(), usable.get(), hwloc_topology_get_allowed_cpuset(raw));
    machine = describe(raw, usable.get());
    return Status::ok;
}

Status describe_synthetic(const std::string& description, std::span<const int> usable, LocalMachine& machine,
                          std::string& why) {
    const auto set = [&](hwloc_topology_t raw) {
        return hwloc_topology_set_synthetic(raw, description.c_str()) == 0;
    };
    if (const Status status = describe_other(set, usable, machine, why); status != Status::invalid_argument)
        return status;
    why = "hwloc does not understand \"" + description +
          "\"; write a machine like \"pack:2 numa:1 core:4 pu:2\"";
    return Status::invalid_argument;
}

Status describe_xml(const std::string& file, std::span<const int> usable, LocalMachine& machine,
                    std::string& why) {
    const auto set = [&](hwloc_topology_t raw) { return hwloc_topology_set_xml(raw, file.c_str()) == 0; };
    if (const Status status = describe_other(set, usable, machine, why); status != Status::invalid_argument)
        return status;
    why = "hwloc finds no machine in \"" + file + "\"; write one with `lstopo machine.xml`";
    return Status::invalid_argument;
}

}  // namespace thalweg
