#include "engine/waiters/doorbell.h"

#include <linux/futex.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace thalweg {
namespace {

constexpr std::uint64_t ns_per_second = 1'000'000'000;

}  // namespace

Doorbell::~Doorbell() {
    if (descriptor_ >= 0) close(descriptor_);
}

// The ringer stores the word, then reads how the other sleeps; the sleeper stores how it sleeps, then reads
// the word (lie_down). All four are sequentially consistent, so at least one of them sees the other's store:
// either the sleeper stays up or the ringer wakes it.
void Doorbell::ring() {
    word_.fetch_add(1, std::memory_order_seq_cst);
    switch (sleep_.load(std::memory_order_seq_cst)) {
        case on_word:
            syscall(SYS_futex, &word_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
            break;
        case on_descriptor: {
            const std::uint64_t one = 1;
            // It can only fail where the descriptor is readable already.
            [[maybe_unused]] const ssize_t written = write(descriptor_, &one, sizeof one);
            break;
        }
        default:
            break;
    }
}

bool Doorbell::lie_down(Sleep how, std::uint32_t seen) {
    sleep_.store(how, std::memory_order_seq_cst);
    if (word_.load(std::memory_order_seq_cst) == seen) return true;
    sleep_.store(awake, std::memory_order_seq_cst);
    return false;
}

void Doorbell::sleep_on_word(std::uint32_t seen, std::uint64_t until_ns) {
    if (!lie_down(on_word, seen)) return;
    timespec until{static_cast<time_t>(until_ns / ns_per_second),
                   static_cast<long>(until_ns % ns_per_second)};
    // The kernel compares the word with `seen` once more before it sleeps. WAIT_BITSET, because its time is
    // absolute and that of CLOCK_MONOTONIC.
    syscall(SYS_futex, &word_, FUTEX_WAIT_BITSET_PRIVATE, seen, until_ns == never_ns ? nullptr : &until,
            nullptr, FUTEX_BITSET_MATCH_ANY);
    sleep_.store(awake, std::memory_order_seq_cst);
}

int Doorbell::descriptor() {
    if (descriptor_ < 0) descriptor_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return descriptor_;
}

bool Doorbell::announce(std::uint32_t seen) { return lie_down(on_descriptor, seen); }

void Doorbell::answered() {
    sleep_.store(awake, std::memory_order_seq_cst);
    std::uint64_t rings = 0;
    [[maybe_unused]] const ssize_t bytes = read(descriptor_, &rings, sizeof rings);
}

}  // namespace thalweg
