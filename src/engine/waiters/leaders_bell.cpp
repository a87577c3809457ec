#include "engine/waiters/leaders_bell.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace thalweg {
namespace {

// Those that nobody has, all silent.
constexpr std::size_t most_spare = 64;
constinit std::mutex mutex;
constinit std::array<int, most_spare> spare{};
constinit std::size_t spare_count = 0;

}  // namespace

LeadersBell::~LeadersBell() {
    if (descriptor_ < 0) return;
    const std::lock_guard lock(mutex);
    if (spare_count == most_spare)
        close(descriptor_);
    else
        spare[spare_count++] = descriptor_;
}

int LeadersBell::descriptor() {
    if (descriptor_ >= 0) return descriptor_;
    {
        const std::lock_guard lock(mutex);
        if (spare_count != 0) descriptor_ = spare[--spare_count];
    }
    if (descriptor_ < 0) descriptor_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return descriptor_;
}

void LeadersBell::silence() {
    std::uint64_t rings = 0;
    [[maybe_unused]] const ssize_t got = read(descriptor_, &rings, sizeof rings);
}

void LeadersBell::ring(int descriptor) {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(descriptor, &one, sizeof one);
}

}  // namespace thalweg
