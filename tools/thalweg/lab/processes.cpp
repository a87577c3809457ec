// Labs that run on this machine, found by the names of their first processes: there is no registry to go
// stale.
#include <dirent.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "lab.h"

namespace thalweg::lab {

namespace {

struct Process {
    pid_t pid;
    pid_t parent;
    std::string name;
    bool first;  // of a pid namespace: a program may call itself what it likes, but is never that in a lab
};

std::vector<Process> all_processes() {
    std::vector<Process> found;
    DIR* folder = opendir("/proc");
    if (!folder) return found;
    while (const dirent* entry = readdir(folder)) {
        const pid_t pid = std::atoi(entry->d_name);
        if (pid <= 0) continue;
        const std::string text = read_file("/proc/" + std::to_string(pid) + "/status");
        const auto field = [&](const char* name) -> std::string {
            const auto at = text.find(name);
            if (at == std::string::npos) return {};
            const auto end = text.find('\n', at + 1);
            return strip(text.substr(at + std::strlen(name), end - at - std::strlen(name)));
        };
        const std::string nested =
            field("\nNSpid:");  // our number for it, then that of each namespace inwards
        const auto last = nested.find_last_of('\t');
        found.push_back({pid, std::atoi(field("\nPPid:").c_str()), field("Name:"),
                         nested.substr(last == std::string::npos ? 0 : last + 1) == "1"});
    }
    closedir(folder);
    return found;
}

}  // namespace

std::vector<RunningLab> running_labs() {
    std::vector<RunningLab> labs;
    const auto processes = all_processes();
    const auto name_of_pid = [&](pid_t pid) -> std::string {
        for (const auto& process : processes)
            if (process.pid == pid) return process.name;
        return {};
    };
    for (const auto& process : processes) {
        if (process.name != lab_process || !process.first) continue;
        RunningLab lab;
        lab.pid = process.pid;
        // An orphan is handed to process 1 or a subreaper, neither of which is a thalweg.
        const std::string parent = process.parent > 0 ? name_of_pid(process.parent) : "";
        lab.owner = parent.rfind("thalweg", 0) == 0 ? process.parent : 0;
        for (const auto& host : processes)
            if (host.parent == process.pid && host.name.rfind(host_process, 0) == 0)
                lab.hosts[std::atoi(host.name.c_str() + std::strlen(host_process))] = host.pid;
        labs.push_back(lab);
    }
    return labs;
}

int clean() {
    int removed = 0;
    for (const auto& lab : running_labs()) {
        if (lab.owner != 0 || lab.pid == 1) continue;
        // It may be ending by itself, or somebody else may be cleaning up.
        if (kill(lab.pid, SIGKILL) != 0 && errno != ESRCH)
            fail_errno("cannot end the abandoned lab " + std::to_string(lab.pid));
        for (const double give_up = now_s() + 5; kill(lab.pid, 0) == 0 && now_s() < give_up;) usleep(5000);
        ++removed;
    }
    std::printf(removed == 1 ? "removed 1 abandoned lab\n" : "removed %d abandoned labs\n", removed);
    return 0;
}

int exec_verb(const Args& args) {
    const char* usage = "usage: thalweg lab exec [--lab PID] HOST [--] COMMAND…";
    std::size_t at = 0;
    pid_t wanted = 0;
    if (at + 1 < args.size() && args[at] == "--lab") {
        char* end = nullptr;
        const long pid = std::strtol(args[at + 1].c_str(), &end, 10);
        if (*end != '\0' || pid < 1 || pid > std::numeric_limits<pid_t>::max())
            fail("--lab takes the PID of a running lab, not \"" + args[at + 1] + "\"");
        wanted = static_cast<pid_t>(pid);
        at += 2;
    }
    if (at >= args.size()) fail(usage);
    std::string name = args[at++];
    if (name.rfind("node", 0) == 0) name = name.substr(4);
    char* end = nullptr;
    const long host = std::strtol(name.c_str(), &end, 10);
    if (name.empty() || *end) fail(usage);
    if (host < 0 || host >= max_hosts) fail("there is no host " + name);
    if (at < args.size() && args[at] == "--") ++at;
    if (at >= args.size()) fail(usage);
    auto labs = running_labs();
    if (wanted)
        labs.erase(
            std::remove_if(labs.begin(), labs.end(), [&](const auto& lab) { return lab.pid != wanted; }),
            labs.end());
    if (labs.empty()) fail(wanted ? "no lab has that PID" : "no lab is running");
    if (labs.size() > 1) {
        std::string pids;
        for (const auto& lab : labs) pids += " " + std::to_string(lab.pid);
        fail("several labs are running, choose one with --lab:" + pids);
    }
    const auto found = labs[0].hosts.find(static_cast<int>(host));
    if (found == labs[0].hosts.end()) fail("that lab has no host " + name);
    exec_on_host(found->second, Args(args.begin() + at, args.end()), false);
}

// The launchers' ssh: [options] HOST COMMAND…, the words joined and given to a shell, as ssh does.
int agent_exec_verb(const Args& args) {
    std::size_t at = 0;
    for (; at < args.size() && !args[at].empty() && args[at][0] == '-'; ++at)
        if (args[at].size() == 2 && std::strchr("BbcDEeFIiJLlmOopQRSWw", args[at][1])) ++at;
    if (at + 1 >= args.size()) fail("usage: thalweg lab agent-exec HOST COMMAND…");
    const std::string name = args[at++];
    std::string command;
    for (; at < args.size(); ++at) command += (command.empty() ? "" : " ") + args[at];
    for (const auto& lab : running_labs()) {
        if (lab.pid != 1) continue;
        for (const auto& [host, pid] : lab.hosts)
            if (name == host_name(host) || name == address_of(0, host))
                exec_on_host(pid, {"/bin/sh", "-c", command}, true);
    }
    fail("there is no host " + name + " here");
}

}  // namespace thalweg::lab
