#include "plan/place.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <string_view>

#include "base/float_modes.h"

namespace thalweg {

namespace {

std::string read_file(const std::string& path) {
    std::string text;
    const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return text;
    char buffer[4096];
    for (ssize_t got; (got = read(descriptor, buffer, sizeof buffer)) > 0;) text.append(buffer, got);
    close(descriptor);
    return text;
}

std::uint64_t mix(std::uint64_t hash, std::string_view bytes) {
    for (unsigned char byte : bytes) hash = (hash ^ byte) * 1099511628211u;
    return (hash ^ 0xff) * 1099511628211u;  // an end mark, so that "ab","c" is not "a","bc"
}

// Cores that one level of cgroup v2 grants: "max 100000" or "150000 100000". 0: no limit.
double quota_of(const std::string& text) {
    if (text.empty() || text.compare(0, 3, "max") == 0) return 0;
    char* end = nullptr;
    const double quota = std::strtod(text.c_str(), &end);
    const double period = std::strtod(end, nullptr);
    return period > 0 ? quota / period : 0;
}

// The tightest quota from the process's cgroup up to the root, in cores. 0: none.
double cgroup_quota() {
    const std::string membership = read_file("/proc/self/cgroup");
    const std::size_t begin = membership.rfind("0::", 0) == 0 ? 0 : membership.find("\n0::");
    double tightest = 0;
    auto consider = [&tightest](double quota) {
        if (quota > 0 && (tightest == 0 || quota < tightest)) tightest = quota;
    };
    if (begin != std::string::npos) {
        const std::size_t path_begin = membership.find("::", begin) + 2;
        std::string path = membership.substr(path_begin, membership.find('\n', path_begin) - path_begin);
        for (;;) {
            consider(quota_of(read_file("/sys/fs/cgroup" + path + "/cpu.max")));
            const std::size_t slash = path.rfind('/');
            if (path.empty() || slash == std::string::npos) break;
            path.resize(slash);
        }
    }
    const double v1_quota = std::strtod(read_file("/sys/fs/cgroup/cpu/cpu.cfs_quota_us").c_str(), nullptr);
    const double v1_period = std::strtod(read_file("/sys/fs/cgroup/cpu/cpu.cfs_period_us").c_str(), nullptr);
    if (v1_period > 0) consider(v1_quota / v1_period);
    return tightest;
}

CpuMask& first_mask() {
    static auto* const mask = new CpuMask;
    return *mask;
}

}  // namespace

const CpuMask& mask_in_init() { return first_mask(); }

PlaceFacts find_place() {
    constexpr std::uint64_t start = 14695981039346656037u;
    PlaceFacts facts;
    try {
        if (first_mask().empty()) first_mask() = mask_of_this_thread();
    } catch (const std::bad_alloc&) {
    }
    const std::string boot_id = read_file("/proc/sys/kernel/random/boot_id");
    char name[256] = "";
    gethostname(name, sizeof name - 1);
    struct stat network {};
    std::uint64_t inode = 0;
    if (stat("/proc/self/ns/net", &network) == 0) inode = network.st_ino;
    facts.host_key = mix(mix(start, name), boot_id);
    facts.host_key = mix(facts.host_key, {reinterpret_cast<const char*>(&inode), sizeof inode});

    // Without a boot id two machines look like one only if their masks are equal too: the name keeps them
    // apart.
    facts.cores_key = boot_id.empty() ? mix(start, name) : mix(start, boot_id);
    constexpr int most_cpus = 16384;
    cpu_set_t* const mask = CPU_ALLOC(most_cpus);
    const std::size_t mask_bytes = CPU_ALLOC_SIZE(most_cpus);
    if (mask != nullptr) {
        CPU_ZERO_S(mask_bytes, mask);
        if (sched_getaffinity(0, mask_bytes, mask) == 0) {
            facts.cores = static_cast<std::uint32_t>(std::max(1, CPU_COUNT_S(mask_bytes, mask)));
            facts.cores_key = mix(facts.cores_key, {reinterpret_cast<const char*>(mask), mask_bytes});
        }
        CPU_FREE(mask);
    }
    with_texts_in_standard_modes([&] {
        if (const double quota = cgroup_quota(); quota > 0 && quota < facts.cores)
            facts.cores = std::max<std::uint32_t>(1, static_cast<std::uint32_t>(quota));
    });
    return facts;
}

}  // namespace thalweg
