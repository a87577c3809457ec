// Copies from and to another process's memory that the system refuses.
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <thread>

#include "transport/shm/elements.h"
#include "transport/shm/protocol.h"

namespace thalweg::shm {
namespace {

// What a copy says where the system does not find the memory of a process that has this life.
Status copy_without_memory(int life) {
    std::byte here{};
    Transfer transfer;
    transfer.local = &here;
    transfer.remote = reinterpret_cast<std::uintptr_t>(&here);
    transfer.life = life;
    std::size_t done = 1;
    const Status status = cma_copy(
        [](pid_t, const iovec*, unsigned long, const iovec*, unsigned long, unsigned long) -> ssize_t {
            errno = ESRCH;
            return -1;
        },
        transfer, 0, 1, done);
    EXPECT_EQ(done, 0u);
    return status;
}

// A process whose first thread has ended has no memory for the system; the ring is left, as long as others of
// its threads go on.
TEST(Copies, WithoutItsFirstThreadAProcessIsReachedByTheRing) {
    int life[2];
    ASSERT_EQ(pipe(life), 0);
    EXPECT_EQ(copy_without_memory(life[0]), Status::unsupported);
    ASSERT_EQ(write(life[1], "x", 1), 1);
    EXPECT_EQ(copy_without_memory(life[0]), Status::transport_failed) << "it has ended";
    close(life[0]);
    close(life[1]);
}

// Such as a profiler's. One that is pending interrupts the question whether a process has ended, which waits
// for nothing.
TEST(Copies, ASignalIsNoEndOfAnotherProcess) {
    constexpr int copies = 20'000;
    int life[2];
    ASSERT_EQ(pipe(life), 0);
    struct sigaction heard = {}, before = {};
    heard.sa_handler = [](int) {};
    ASSERT_EQ(sigaction(SIGUSR2, &heard, &before), 0);
    std::atomic<bool> over{false};
    std::thread signals([&over, copier = pthread_self()] {
        while (!over.load(std::memory_order_relaxed)) pthread_kill(copier, SIGUSR2);
    });
    int reached = 0;
    for (int i = 0; i < copies; ++i) reached += copy_without_memory(life[0]) == Status::unsupported;
    over.store(true, std::memory_order_relaxed);
    signals.join();
    EXPECT_EQ(reached, copies);
    EXPECT_EQ(sigaction(SIGUSR2, &before, nullptr), 0);
    close(life[0]);
    close(life[1]);
}

}  // namespace
}  // namespace thalweg::shm
