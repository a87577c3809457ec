// Whose libucp it is: a process has one, which the transport shares, whoever loaded it.
#include <dlfcn.h>

#include <cstring>
#include <fstream>
#include <set>

#include "job.h"

namespace thalweg::test {
namespace {

// The files that this process has mapped a libucp from.
std::set<std::string> copies_here() {
    std::set<std::string> files;
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        const std::size_t path = line.find('/');
        if (path != std::string::npos && line.find("/libucp.so", path) != std::string::npos)
            files.insert(line.substr(path));
    }
    return files;
}

// In messages that libucp copies, and in some that it does not.
void talk(Job& job, Transport& channel, std::uint32_t operation) {
    const int peer = 1 - job.rank();
    const std::size_t sizes[] = {100, 1 << 22};
    for (const std::size_t bytes : sizes) {
        const Bytes sent = pattern(bytes, operation + static_cast<std::uint32_t>(job.rank()));
        Bytes received(bytes);
        const MessageId id{operation, static_cast<std::uint32_t>(bytes == sizes[0] ? 0 : 1)};
        REQUIRE(channel.post_recv(0, peer, id, received.data(), bytes) == Status::ok);
        REQUIRE(channel.post_send(1, peer, id, sent.data(), bytes, SendMode::buffered) == Status::ok);
        finish(channel, 2);
        REQUIRE(is_pattern(received, operation + static_cast<std::uint32_t>(peer)));
    }
}

}  // namespace

// theirs=FILE: the program has that copy already, from a folder that the dynamic linker knows nothing of: it
// is the one that is used, and no other is loaded. Else ours is there first: whoever asks for libucp after
// that gets it, and lets go of it again without harm.
UCX_CASE(copies) {
    const auto theirs = arguments.find("theirs");
    const bool is_theirs = theirs != arguments.end();
    REQUIRE(copies_here().empty());
    if (is_theirs) REQUIRE(dlopen(theirs->second.c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr);
    const std::set<std::string> before = copies_here();
    REQUIRE(before.size() == (is_theirs ? 1 : 0));
    Node node(job);
    REQUIRE((std::strstr(node.port->description(), " of the process") != nullptr) == is_theirs);
    const std::set<std::string> copies = copies_here();
    REQUIRE(copies.size() == 1 && (!is_theirs || copies == before));
    const auto channel = node.channel({0, 0});
    talk(job, *channel, 0);
    void* const later = dlopen("libucp.so.0", RTLD_NOW | RTLD_LOCAL);
    REQUIRE(later != nullptr && copies_here() == copies);
    talk(job, *channel, 1);
    REQUIRE(dlclose(later) == 0 && copies_here() == copies);
    talk(job, *channel, 2);
    job.barrier();
}

}  // namespace thalweg::test
