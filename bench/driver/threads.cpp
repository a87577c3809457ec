#include "driver/threads.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace thalweg::bench {
namespace {

constexpr const char* agent_name = "thalweg-agent\n";  // as the agent names its thread

std::string contents(const std::string& path) {
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return {};
    char text[4096];
    const ssize_t length = ::read(file, text, sizeof text);
    close(file);
    return length > 0 ? std::string(text, static_cast<std::size_t>(length)) : std::string();
}

double field(const std::string& status, const char* name) {
    const auto at = status.find(name);
    return at == std::string::npos ? 0 : std::strtod(status.c_str() + at + std::strlen(name), nullptr);
}

ThreadClock read_thread(const std::string& folder) {
    ThreadClock clock;
    double running_ns = 0, waiting_ns = 0;
    if (std::sscanf(contents(folder + "/schedstat").c_str(), "%lf %lf", &running_ns, &waiting_ns) == 2) {
        clock.cpu_seconds = 1e-9 * running_ns;
        clock.delay_seconds = 1e-9 * waiting_ns;
    }
    const std::string status = contents(folder + "/status");
    clock.wake_ups = field(status, "\nvoluntary_ctxt_switches:");
    clock.lost = field(status, "\nnonvoluntary_ctxt_switches:");
    return clock;
}

}  // namespace

ProcessClocks read_process_clocks() {
    ProcessClocks clocks;
    DIR* const folder = opendir("/proc/self/task");
    if (folder == nullptr) return clocks;
    const long main_thread = getpid();
    while (const dirent* entry = readdir(folder)) {
        const long thread = std::atol(entry->d_name);
        if (thread <= 0) continue;
        const std::string path = std::string("/proc/self/task/") + entry->d_name;
        const bool agent = thread != main_thread && contents(path + "/comm") == agent_name;
        (thread == main_thread ? clocks.main : agent ? clocks.agent : clocks.other) += read_thread(path);
    }
    closedir(folder);
    return clocks;
}

ThreadClock read_own_clock() {
    ThreadClock clock;
    double running_ns = 0, waiting_ns = 0;
    if (std::sscanf(contents("/proc/thread-self/schedstat").c_str(), "%lf %lf", &running_ns, &waiting_ns) ==
        2)
        clock.delay_seconds = 1e-9 * waiting_ns;
    rusage usage{};
    if (getrusage(RUSAGE_THREAD, &usage) == 0) clock.lost = static_cast<double>(usage.ru_nivcsw);
    return clock;
}

double read_softirq_seconds() {
    // cpu user nice system idle iowait irq softirq …
    unsigned long long ticks = 0;
    if (std::sscanf(contents("/proc/stat").c_str(), "cpu %*u %*u %*u %*u %*u %*u %llu", &ticks) != 1)
        return 0;
    return static_cast<double>(ticks) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

}  // namespace thalweg::bench
