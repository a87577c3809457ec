// Bringing a lab up and down.
//
//   owner (`thalweg lab`)  --clone-->  first process, at the bridges  --clone-->  one first process per host
//
// Each arrow makes new net, uts, ipc, pid and mount namespaces and a parent-death signal. When the owner
// dies, however it dies, the kernel kills the first process, with it everything in its pid namespace, and
// then frees devices, mounts and shared memory: nothing has to be cleaned up by hand.
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>

#include "lab.h"

namespace thalweg::lab {

namespace {

constexpr double patience_s = 10;  // from passing a signal on to ending the lab by force

pid_t clone_into_namespaces(bool user_namespace) {
    long flags = CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWPID | SIGCHLD;
    if (user_namespace) flags |= CLONE_NEWUSER;
    std::fflush(nullptr);
    return static_cast<pid_t>(syscall(SYS_clone, flags, nullptr, nullptr, nullptr, nullptr));
}

void mount_or_fail(const char* source, const char* target, const char* type, unsigned long flags,
                   const char* data = nullptr) {
    if (mount(source, target, type, flags, data) != 0) fail_errno(std::string("cannot mount ") + target);
}

// Own /dev/shm, /proc and /sys (a host's /sys shows that host's devices only). Control groups stay visible.
void mount_private() {
    mount_or_fail("none", "/", nullptr, MS_REC | MS_PRIVATE);
    mount_or_fail("tmpfs", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777");
    mount_or_fail("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC);
    const char* parking = "/dev/shm/.cgroup";
    const bool keep_groups = mkdir(parking, 0755) == 0 &&
                             mount("/sys/fs/cgroup", parking, nullptr, MS_BIND | MS_REC, nullptr) == 0;
    mount_or_fail("sysfs", "/sys", "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC);
    if (keep_groups && mount(parking, "/sys/fs/cgroup", nullptr, MS_MOVE, nullptr) != 0)
        umount2(parking, MNT_DETACH);
    rmdir(parking);
    link_help_library();
}

// Every process of the lab resolves the hosts' names; the file behind the mount has no name.
void mount_hosts_file(const Network& network) {
    const char* path = "/dev/shm/.hosts";
    write_file(path, hosts_file(network));
    mount_or_fail(path, "/etc/hosts", nullptr, MS_BIND);
    unlink(path);
}

void set_kernel(const std::string& key, const std::string& value) {
    const int fd = open(("/proc/sys/net/" + key).c_str(), O_WRONLY | O_CLOEXEC);
    if (fd < 0) return;  // a kernel without it needs no setting
    [[maybe_unused]] const ssize_t written = write(fd, value.data(), value.size());
    close(fd);
}

// The same TCP on every machine: a distribution's choice of windows is not what a lab compares, nor that of
// congestion control, which the hosts' routes name (network.cpp). IPv6 is off because its neighbour discovery
// would show up in the links' counters.
void set_up_stack() {
    set_kernel("ipv6/conf/all/disable_ipv6", "1");
    set_kernel("ipv6/conf/default/disable_ipv6", "1");
    set_kernel("ipv4/tcp_rmem", "4096 131072 6291456");
    set_kernel("ipv4/tcp_wmem", "4096 16384 4194304");
}

void map_user(uid_t uid, gid_t gid) {
    write_file("/proc/self/setgroups", "deny");
    write_file("/proc/self/uid_map", "0 " + std::to_string(uid) + " 1");
    write_file("/proc/self/gid_map", "0 " + std::to_string(gid) + " 1");
}

// A host's first process: adopts and buries what its launchers leave behind.
[[noreturn]] void live_as_host(int host, int ready) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, (host_process + std::to_string(host)).c_str());
    try {
        mount_private();
        const std::string name = host_name(host);
        if (sethostname(name.data(), name.size()) != 0) fail_errno("cannot set a host's name");
        set_up_stack();
    } catch (const std::exception& error) {
        std::fprintf(stderr, "lab: %s\n", error.what());
        _exit(failure);
    }
    if (write(ready, "r", 1) != 1) _exit(failure);
    // Holding the owner's descriptors would keep its output pipes open.
    const int null = open("/dev/null", O_RDWR);
    for (int fd = 0; fd < 3; ++fd) dup2(null, fd);
    if (!close_from(3)) _exit(failure);
    [[maybe_unused]] const int moved = chdir("/");
    sigset_t children;
    sigemptyset(&children);
    sigaddset(&children, SIGCHLD);
    sigprocmask(SIG_SETMASK, &children, nullptr);
    for (;;) {
        while (waitpid(-1, nullptr, WNOHANG) > 0) {
        }
        int signal_number = 0;
        sigwait(&children, &signal_number);
    }
}

void batch(const Args& argv, const std::string& input, const Prepare& prepare = {}) {
    const Ran ran = run(argv, input, prepare);
    if (!ran.good()) fail(argv[0] + " failed: " + strip(ran.err));
}

void connect_hosts(Cluster& cluster) {
    const std::string ip = find_program("ip"), tc = find_program("tc");
    if (ip.empty() || tc.empty()) fail("the lab needs ip and tc: install iproute2");
    const Args ip_batch{ip, "-batch", "-"}, tc_batch{tc, "-batch", "-"};
    Network network = cluster.network;
    if (congestion_in_use(network) != network.congestion) network.congestion.clear();
    batch(ip_batch, switch_links(cluster.network, cluster.hosts));
    batch(tc_batch, switch_shaping(cluster.network));
    // The hosts configure themselves side by side; each is its own network, so their locks do not meet.
    std::vector<pid_t> tasks;
    for (int host = 0; host < cluster.network.hosts; ++host)
        tasks.push_back(fork_task([&, host] {
            enter_network(cluster.hosts[host]);
            batch(ip_batch, host_links(network, host));
            batch(tc_batch, host_shaping(cluster.network));
            return 0;
        }));
    for (const pid_t task : tasks)
        if (wait_for(task) != 0) fail("a host's links could not be set up");
}

void start_hosts(Cluster& cluster) {
    int ready[2];
    if (pipe2(ready, O_CLOEXEC) != 0) fail_errno("cannot make a pipe");
    for (int host = 0; host < cluster.network.hosts; ++host) {
        const pid_t pid = clone_into_namespaces(false);
        if (pid < 0) fail_errno("cannot make a host's namespaces");
        if (pid == 0) {
            close(ready[0]);
            live_as_host(host, ready[1]);
        }
        cluster.hosts.push_back(pid);
    }
    close(ready[1]);
    char byte;
    for (int up = 0; up < cluster.network.hosts; ++up)
        if (read(ready[0], &byte, 1) != 1) fail("a host did not come up");
    close(ready[0]);
}

void take_down(const Cluster& cluster) {
    // One deletion for all devices; it returns when they are gone, so the next lab starts on a quiet machine.
    run({find_program("ip"), "link", "del", "group", link_group});
    for (const pid_t host : cluster.hosts) kill(host, SIGKILL);
}

struct Channel {
    int commands[2];
    int reports[2];
};

[[noreturn]] void live_as_lab(const Network& network, const Channel& channel, bool user_namespace, uid_t uid,
                              gid_t gid, const std::function<int(Cluster&)>& body) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(channel.commands[1]);
    close(channel.reports[0]);
    pollfd owner{channel.commands[0], POLLIN, 0};
    if (poll(&owner, 1, 0) > 0 && (owner.revents & POLLHUP)) _exit(failure);  // died before the line above
    int status = failure;
    Cluster cluster;
    cluster.network = network;
    cluster.commands = channel.commands[0];
    cluster.reports = channel.reports[1];
    cluster.folder = "/dev/shm/thalweg-lab";
    try {
        if (user_namespace) map_user(uid, gid);
        prctl(PR_SET_NAME, lab_process);
        mount_private();
        mount_hosts_file(network);
        if (sethostname("head", 4) != 0) fail_errno("cannot set the host's name");
        set_up_stack();
        if (mkdir(cluster.folder.c_str(), 0755) != 0) fail_errno("cannot make " + cluster.folder);
        start_hosts(cluster);
        connect_hosts(cluster);
        status = body(cluster);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "thalweg lab: %s\n", error.what());
    }
    take_down(cluster);
    std::fflush(nullptr);
    _exit(status);
}

// The owner's part: pass signals on, and end the lab by force when that does not help.
int watch_over(pid_t lab, const Channel& channel, int signals) {
    bool running = false;
    int caught = 0;
    double deadline = 0;
    for (;;) {
        pollfd wait[2] = {{signals, POLLIN, 0}, {running ? -1 : channel.reports[0], POLLIN, 0}};
        const int timeout_ms = deadline > 0 ? std::max(0, static_cast<int>(1000 * (deadline - now_s()))) : -1;
        const int events = poll(wait, 2, timeout_ms);
        if (events == 0 && deadline > 0) kill(lab, SIGKILL);
        if (wait[1].revents) {
            char byte;
            running = read(channel.reports[0], &byte, 1) >= 0;
        }
        if (!(wait[0].revents & POLLIN)) continue;
        signalfd_siginfo info;
        if (read(signals, &info, sizeof info) != sizeof info) continue;
        if (info.ssi_signo == SIGCHLD) {
            int status;
            if (waitpid(lab, &status, WNOHANG) != lab) continue;
            if (caught) return 128 + caught;
            if (WIFEXITED(status)) return WEXITSTATUS(status);
            std::fprintf(stderr, "thalweg lab: the lab was ended by signal %d\n", WTERMSIG(status));
            return failure;
        }
        if (!running || caught) {
            kill(lab, SIGKILL);  // nothing to save yet, or the user insists
        } else if (info.ssi_code <= 0) {
            // Sent by a process. (A terminal sends to every process of the job, so the launcher has it
            // already.)
            const char byte = static_cast<char>(info.ssi_signo);
            if (write(channel.commands[1], &byte, 1) != 1) kill(lab, SIGKILL);
        }
        caught = static_cast<int>(info.ssi_signo);
        deadline = now_s() + patience_s;
    }
}

std::string read_kernel(const std::string& key) {
    std::ifstream file("/proc/sys/net/" + key);
    return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

std::string congestion_in_use(const Network& network) {
    std::istringstream known(read_kernel("ipv4/tcp_available_congestion_control"));
    for (std::string name; known >> name;)
        if (name == network.congestion) return name;
    return strip(read_kernel("ipv4/tcp_congestion_control"));
}

int with_cluster(const Network& network, const std::function<int(Cluster&)>& body) {
    Channel channel;
    if (pipe2(channel.commands, O_CLOEXEC) != 0 || pipe2(channel.reports, O_CLOEXEC) != 0)
        fail_errno("cannot make a pipe");
    sigset_t watched, before;
    sigemptyset(&watched);
    for (int signal_number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD}) sigaddset(&watched, signal_number);
    sigprocmask(SIG_BLOCK, &watched, &before);
    const int signals = signalfd(-1, &watched, SFD_CLOEXEC);
    if (signals < 0) fail_errno("cannot watch signals");

    const uid_t uid = geteuid();
    const gid_t gid = getegid();
    bool user_namespace = false;
    pid_t lab = clone_into_namespaces(false);
    if (lab < 0 && errno == EPERM) {
        user_namespace = true;
        lab = clone_into_namespaces(true);
    }
    if (lab < 0)
        fail(std::string("this machine gives no namespaces (") + std::strerror(errno) +
             "): run as root, or allow unprivileged user namespaces");
    if (lab == 0) live_as_lab(network, channel, user_namespace, uid, gid, body);
    close(channel.commands[0]);
    close(channel.reports[1]);
    const int status = watch_over(lab, channel, signals);
    for (int fd : {signals, channel.commands[1], channel.reports[0]}) close(fd);
    sigprocmask(SIG_SETMASK, &before, nullptr);
    return status;
}

int run_program(Cluster& cluster, const Args& argv, const Settings& environment) {
    sigset_t children;
    sigemptyset(&children);
    sigaddset(&children, SIGCHLD);
    sigprocmask(SIG_BLOCK, &children, nullptr);
    const int signals = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
    const pid_t program = spawn(
        argv,
        [&] {
            for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
        },
        0, 1, 2);
    if (write(cluster.reports, "r", 1) != 1) fail("the owner of this lab is gone");
    for (;;) {
        int status;
        for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
            if (pid != program) {
                for (const pid_t host : cluster.hosts)
                    if (pid == host) fail("a host ended before the program did");
                continue;
            }
            close(signals);
            return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
        }
        pollfd wait[2] = {{signals, POLLIN, 0}, {cluster.commands, POLLIN, 0}};
        poll(wait, 2, -1);
        signalfd_siginfo info;
        while (read(signals, &info, sizeof info) == sizeof info) {
        }
        char byte;
        if ((wait[1].revents & POLLIN) && read(cluster.commands, &byte, 1) == 1) kill(program, byte);
    }
}

}  // namespace thalweg::lab
