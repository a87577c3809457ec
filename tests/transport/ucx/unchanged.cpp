// What starting the transport may not change in its process.
#include <dirent.h>
#include <dlfcn.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "job.h"

namespace thalweg::test {
namespace {

struct Surroundings {
    std::vector<std::string> environment;
    char** environment_at = environ;
    std::map<int, std::pair<void*, int>> signals;
    std::map<std::string, Bytes> code;
    std::vector<bool> blocked;

    Surroundings() {
        for (char** entry = environ; *entry; ++entry) environment.emplace_back(*entry);
        for (int number = 1; number < NSIG; ++number) {
            struct sigaction action = {};
            if (sigaction(number, nullptr, &action) == 0) {
                signals[number] = {reinterpret_cast<void*>(action.sa_handler), action.sa_flags};
            }
        }
        for (const char* name : {"mmap", "munmap", "mremap", "madvise", "shmat", "shmdt", "brk", "sbrk"}) {
            const auto* first = static_cast<const std::byte*>(dlsym(RTLD_DEFAULT, name));
            REQUIRE(first);
            code[name] = Bytes(first, first + 16);
        }
        sigset_t mask;
        sigprocmask(SIG_BLOCK, nullptr, &mask);
        for (int number = 1; number < NSIG; ++number) blocked.push_back(sigismember(&mask, number) == 1);
    }
};

std::string line_of(const std::string& file, const std::string& name) {
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);) {
        if (line.substr(0, name.size()) == name) return line.substr(name.size());
    }
    return "";
}

}  // namespace

// Signal handlers, the first bytes of mmap, munmap and the like, the environment by content and address, the
// thread's signal mask, what is printed; and no thread of the library takes signals. With requests done, too.
UCX_CASE(unchanged) {
    REQUIRE(std::getenv("UCX_HANDLE_ERRORS") == nullptr);
    const Surroundings before;
    const auto compare = [&] {
        const Surroundings now;
        REQUIRE(now.environment == before.environment && now.environment_at == before.environment_at);
        REQUIRE(now.signals == before.signals);
        for (const auto& [name, bytes] : before.code) {
            if (now.code.at(name) != bytes) std::fprintf(stderr, "%s was changed\n", name.c_str());
            REQUIRE(now.code.at(name) == bytes);
        }
        REQUIRE(now.blocked == before.blocked);
    };
    {
        Node node(job);
        compare();
        std::printf("%s\n", node.port->description());
        const auto channel = node.channel({0, 0});
        const int peer = 1 - job.rank();
        Bytes sent = pattern(1 << 22, 1), received(1 << 22);
        Region region = 0;
        Bytes key;
        REQUIRE(channel->expose(received.data(), received.size(), region, key) == Status::ok);
        REQUIRE(channel->post_send(0, peer, {0, 0}, sent.data(), sent.size(), SendMode::buffered) ==
                Status::ok);
        REQUIRE(channel->post_recv(1, peer, {0, 0}, received.data(), received.size()) == Status::ok);
        finish_sleeping(*channel, 2);
        REQUIRE(is_pattern(received, 1));
        compare();
        for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
            if (task.path().filename() == std::to_string(gettid())) continue;
            const std::string blocked = line_of(task.path() / "status", "SigBlk:");
            // All but those of a thread's own faults, SIGKILL, SIGSTOP, and the two that the C library keeps.
            std::uint64_t open = 0x1'8000'0000u;
            for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGKILL, SIGSTOP})
                open |= std::uint64_t{1} << (signal - 1);
            REQUIRE((std::stoull(blocked, nullptr, 16) | open) == ~std::uint64_t{0});
        }
        job.barrier();
    }
    compare();
}

}  // namespace thalweg::test
