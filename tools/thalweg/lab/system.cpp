// Small wrappers around processes, files and namespaces.
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "lab.h"

namespace thalweg::lab {

void fail(const std::string& sentence) { throw std::runtime_error(sentence); }

void fail_errno(const std::string& what) { fail(what + ": " + std::strerror(errno)); }

double now_s() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

std::string strip(const std::string& text) {
    const auto first = text.find_first_not_of(" \t\r\n");
    if (first == std::string::npos) return {};
    return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

std::string read_file(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
}

void write_file(const std::string& path, const std::string& text) {
    const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0) fail_errno("cannot write " + path);
    const ssize_t written = write(fd, text.data(), text.size());
    const int closed = close(fd);
    if (written != static_cast<ssize_t>(text.size()) || closed != 0) fail_errno("cannot write " + path);
}

std::string own_path() {
    char path[PATH_MAX];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
    if (length <= 0) fail_errno("cannot find this program's own path");
    return std::string(path, length);
}

std::string find_program(const std::string& name) {
    const auto usable = [](const std::string& path) {
        struct stat info;
        return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && access(path.c_str(), X_OK) == 0;
    };
    if (name.find('/') != std::string::npos) {
        if (!usable(name)) return {};
        if (name[0] == '/') return name;
        char folder[4096];
        if (!getcwd(folder, sizeof folder)) return {};
        return std::string(folder) + "/" + name;
    }
    const char* path = getenv("PATH");
    // Debian's root has no sbin in its PATH under su; ip and tc live there.
    std::stringstream folders(std::string(path ? path : "/usr/bin:/bin") + ":/usr/sbin:/sbin");
    for (std::string folder; std::getline(folders, folder, ':');) {
        if (folder.empty()) continue;
        const std::string candidate = folder + "/" + name;
        if (usable(candidate)) return candidate[0] == '/' ? candidate : find_program("./" + candidate);
    }
    return {};
}

namespace {

void restore_signals() {
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    for (int signal_number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGCHLD})
        signal(signal_number, SIG_DFL);
}

[[noreturn]] void exec_now(const Args& argv) {
    std::vector<char*> pointers;
    for (const auto& arg : argv) pointers.push_back(const_cast<char*>(arg.c_str()));
    pointers.push_back(nullptr);
    execvp(pointers[0], pointers.data());
    std::fprintf(stderr, "lab: cannot start %s: %s\n", pointers[0], std::strerror(errno));
    _exit(errno == ENOENT ? 127 : 126);
}

int open_null() {
    const int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (fd < 0) fail_errno("cannot open /dev/null");
    return fd;
}

}  // namespace

std::string read_from_start(int fd) {
    std::string text;
    lseek(fd, 0, SEEK_SET);
    char buffer[4096];
    for (ssize_t got; (got = read(fd, buffer, sizeof buffer)) > 0;) text.append(buffer, got);
    return text;
}

// As close_range does, which glibc has from 2.34 on.
bool close_from(int first) {
    DIR* folder = opendir("/proc/self/fd");
    if (!folder) return false;
    std::vector<int> open;
    while (const dirent* entry = readdir(folder)) {
        const int fd = std::atoi(entry->d_name);  // 0 of "." and ".."
        if (fd >= first && fd > 0 && fd != dirfd(folder)) open.push_back(fd);
    }
    closedir(folder);
    for (const int fd : open) close(fd);
    return true;
}

int memory_file() {
    const int fd = memfd_create("lab", MFD_CLOEXEC);
    if (fd < 0) fail_errno("cannot make a memory file");
    return fd;
}

pid_t spawn(const Args& argv, const Prepare& prepare, int in, int out, int err) {
    std::fflush(nullptr);
    const pid_t pid = fork();
    if (pid < 0) fail_errno("cannot fork");
    if (pid > 0) return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    restore_signals();
    try {
        if (prepare) prepare();
        const int wanted[3] = {in, out, err};
        for (int fd = 0; fd < 3; ++fd) {
            const int source = wanted[fd] < 0 ? open_null() : wanted[fd];
            if (source == fd)
                fcntl(fd, F_SETFD, 0);
            else if (dup2(source, fd) < 0)
                fail_errno("cannot redirect");
        }
    } catch (const std::exception& error) {
        std::fprintf(stderr, "lab: %s\n", error.what());
        _exit(126);
    }
    exec_now(argv);
}

Ran run(const Args& argv, const std::string& input, const Prepare& prepare) {
    const int in = memory_file(), out = memory_file(), err = memory_file();
    if (write(in, input.data(), input.size()) != static_cast<ssize_t>(input.size()))
        fail_errno("cannot write");
    lseek(in, 0, SEEK_SET);
    const pid_t pid = spawn(argv, prepare, in, out, err);
    Ran ran;
    while (waitpid(pid, &ran.status, 0) < 0)
        if (errno != EINTR) fail_errno("cannot wait");
    ran.out = read_from_start(out);
    ran.err = read_from_start(err);
    for (int fd : {in, out, err}) close(fd);
    return ran;
}

pid_t fork_task(const std::function<int()>& task) {
    std::fflush(nullptr);
    const pid_t pid = fork();
    if (pid < 0) fail_errno("cannot fork");
    if (pid > 0) return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int value = 1;
    try {
        value = task();
    } catch (const std::exception& error) {
        std::fprintf(stderr, "lab: %s\n", error.what());
    }
    std::fflush(nullptr);
    _exit(value);
}

int wait_for(pid_t pid) {
    int status = 0;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR) fail_errno("cannot wait");
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

namespace {

struct OpenNamespace {
    const char* name;
    int type;
    int fd;
};

std::vector<OpenNamespace> open_namespaces(pid_t host, std::vector<OpenNamespace> wanted) {
    for (auto& space : wanted) {
        const std::string path = "/proc/" + std::to_string(host) + "/ns/" + space.name;
        space.fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
        if (space.fd < 0) fail_errno("cannot open " + path);
    }
    return wanted;
}

bool same_namespace(pid_t host, const char* name) {
    struct stat here, there;
    const std::string path = "/proc/" + std::to_string(host) + "/ns/" + name;
    return stat((std::string("/proc/self/ns/") + name).c_str(), &here) == 0 &&
           stat(path.c_str(), &there) == 0 && here.st_ino == there.st_ino;
}

}  // namespace

void enter_network(pid_t host) {
    for (const auto& space : open_namespaces(host, {{"net", CLONE_NEWNET, -1}})) {
        if (setns(space.fd, space.type) != 0) fail_errno("cannot enter a host's network");
        close(space.fd);
    }
}

void exec_on_host(pid_t host, const Args& argv, bool own_session) {
    char folder[4096];
    const bool have_folder = getcwd(folder, sizeof folder) != nullptr;
    std::vector<OpenNamespace> wanted;
    // Entering one's own user namespace again is an error; the user namespace goes first, the mounts last.
    if (!same_namespace(host, "user")) wanted.push_back({"user", CLONE_NEWUSER, -1});
    for (OpenNamespace space :
         {OpenNamespace{"net", CLONE_NEWNET, -1}, OpenNamespace{"uts", CLONE_NEWUTS, -1},
          OpenNamespace{"ipc", CLONE_NEWIPC, -1}, OpenNamespace{"pid", CLONE_NEWPID, -1},
          OpenNamespace{"mnt", CLONE_NEWNS, -1}})
        wanted.push_back(space);
    for (const auto& space : open_namespaces(host, wanted))
        if (setns(space.fd, space.type) != 0)
            fail_errno(std::string("cannot enter a host's namespace ") + space.name);
    // Entering mounts moves to the root folder; the files are the same everywhere, so go back.
    if (have_folder && chdir(folder) != 0) fail_errno(std::string("cannot enter ") + folder);
    // Only a child is in the new pid namespace; this process stands for it outside, as ssh does.
    signal(SIGINT, SIG_IGN);
    const pid_t pid = fork();
    if (pid < 0) fail_errno("cannot fork");
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        restore_signals();
        if (own_session) setsid();
        exec_now(argv);
    }
    _exit(wait_for(pid));
}

}  // namespace thalweg::lab
