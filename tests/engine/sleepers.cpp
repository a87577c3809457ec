// The ways to sleep: woken by a ring, ended by the clock, and what this CPU lacks is said.
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <thread>

#include "base/clock.h"
#include "engine/emulator.h"
#include "engine/waiters/monitor.h"
#include "engine/waiters/sleeper.h"

namespace thalweg {
namespace {

constexpr std::uint64_t ms = 1'000'000;

CpuAnswers answers(std::uint32_t leaf7_ecx, std::uint32_t extended1_ecx, std::uint32_t extended7_edx) {
    return {0x20, leaf7_ecx, 0x80000022u, extended1_ecx, extended7_edx};
}
constexpr std::uint32_t steady = 1u << 8;

TEST(cpu, what_cpuid_and_the_kernel_say_is_decoded) {
    const Cpu intel = decode_cpu(answers(1u << 5, 0, steady), "1", "100000");
    EXPECT_TRUE(intel.waitpkg);
    EXPECT_FALSE(intel.mwaitx);
    EXPECT_TRUE(intel.deep);
    EXPECT_EQ(intel.longest_umwait, 100000u);
    EXPECT_EQ(intel.no_mwaitx, "this CPU has no MONITORX");
    EXPECT_TRUE(intel.no_waitpkg.empty());
    const Cpu amd = decode_cpu(answers(0, 1u << 29, steady), "", "");
    EXPECT_TRUE(amd.mwaitx);
    EXPECT_FALSE(amd.waitpkg);
    EXPECT_EQ(amd.longest_umwait, 0u);
    EXPECT_FALSE(decode_cpu(answers(1u << 5, 0, steady), "0", "0").deep);
}

TEST(cpu, leaves_that_the_cpu_does_not_have_mean_nothing) {
    CpuAnswers old = answers(1u << 5, 1u << 29, steady);
    old.max_leaf = 6;
    old.max_extended = 0x80000000u;
    const Cpu cpu = decode_cpu(old, "", "");
    EXPECT_FALSE(cpu.waitpkg);
    EXPECT_FALSE(cpu.mwaitx);
}

TEST(cpu, without_a_steady_clock_no_instruction_can_be_told_when_to_end) {
    const Cpu cpu = decode_cpu(answers(1u << 5, 1u << 29, 0), "", "");
    EXPECT_FALSE(cpu.waitpkg);
    EXPECT_FALSE(cpu.mwaitx);
    EXPECT_NE(cpu.no_waitpkg.find("no steady rate"), std::string::npos);
}

// Three ticks to a ns; a look takes 20 ns, and one at the ticks finds the core taken for 4 ms.
std::uint64_t made_up_ns = 0;
int looks = 0, late_look = 0;
std::uint64_t look_at_ns() { return made_up_ns += 20; }
std::uint64_t look_at_ticks() {
    if (looks++ == late_look) made_up_ns += 4 * ms;
    return 3 * look_at_ns();
}

TEST(cpu, the_rate_of_its_ticks_is_right_where_a_look_at_them_is_late) {
    int all_looks = 1;
    for (late_look = 0; late_look < all_looks; ++late_look) {
        looks = 0;
        EXPECT_NEAR(ticks_per_ns(look_at_ns, look_at_ticks), 3, 0.01) << "look " << late_look;
        all_looks = looks;
    }
}

__attribute__((no_sanitize("thread", "address"))) void trap() { __builtin_trap(); }

TEST(cpu, an_illegal_instruction_is_tried_without_harm) {
    if (!executes([] {})) GTEST_SKIP() << "no child that shares memory can be made here";
    EXPECT_FALSE(executes(trap));
    // This process is as it was: the trap was another's.
    EXPECT_TRUE(executes([] {}));
}

std::atomic<int> handled{0};
__attribute__((no_sanitize("thread", "address"))) void take_signal() {
    syscall(SYS_kill, syscall(SYS_getpid), SIGUSR1);
}

// As one for the whole group: the child's memory is this process's.
TEST(cpu, no_handler_of_the_programs_runs_in_the_child) {
    if (!executes([] {})) GTEST_SKIP() << "no child that shares memory can be made here";
    struct sigaction counts = {}, before = {};
    counts.sa_handler = [](int) { ++handled; };
    ASSERT_EQ(sigaction(SIGUSR1, &counts, &before), 0);
    EXPECT_TRUE(executes(take_signal));
    EXPECT_EQ(handled, 0);
    raise(SIGUSR1);
    EXPECT_EQ(handled, 1);
    sigaction(SIGUSR1, &before, nullptr);
}

TEST(cpu, what_is_offered_is_what_runs) {
    const Cpu cpu = detect_cpu();
    std::string why;
    EXPECT_EQ(has_sleeper(SleeperKind::umwait, cpu, why), cpu.waitpkg);
    if (cpu.waitpkg) {
        EXPECT_TRUE(executes(try_waitpkg));
    }
    if (cpu.mwaitx) {
        EXPECT_TRUE(executes(try_mwaitx));
    }
    if (!cpu.waitpkg) {
        EXPECT_EQ(why, cpu.no_waitpkg);
        EXPECT_EQ(describe(SleeperKind::umwait, cpu, {}), "umwait: not exercised, " + cpu.no_waitpkg);
    }
    EXPECT_EQ(describe(SleeperKind::futex, cpu, {}), "futex: not exercised, never chosen");
    EXPECT_EQ(describe(SleeperKind::futex, cpu, {3, 0.5}), "futex: 3 sleeps, 0.500000 s");
}

TEST(monitor, times_become_ticks) {
    Cpu cpu;
    cpu.ticks_per_ns = 2.5;
    EXPECT_EQ(deadline_ticks(cpu, 1000, 400), 2000u);
    EXPECT_EQ(deadline_ticks(cpu, 1000, never_ns), UINT64_MAX);
    EXPECT_EQ(deadline_ticks(cpu, UINT64_MAX - 10, 400), UINT64_MAX);
    EXPECT_EQ(span_ticks(cpu, 400), 1000u);
    EXPECT_EQ(span_ticks(cpu, 0), 1u) << "0 would be no limit";
    EXPECT_EQ(span_ticks(cpu, never_ns), UINT32_MAX);
    EXPECT_EQ(umwait_control(true), 1u) << "C0.1";
    EXPECT_EQ(umwait_control(false), 0u) << "C0.2";
}

// Each way as this CPU has it, and the instructions that it lacks in software.
struct Way {
    SleeperKind kind;
    bool emulated;
};

class each_sleeper : public testing::TestWithParam<Way> {
  protected:
    static constexpr std::uint64_t longest_umwait_ticks = 50'000;

    void SetUp() override {
        cpu_ = detect_cpu();
        const SleeperKind kind = GetParam().kind;
        std::string why;
        const bool has = has_sleeper(kind, cpu_, why);
        if (GetParam().emulated) {
#if defined(__x86_64__)
            if (has) GTEST_SKIP() << "this CPU has it itself";
            cpu_.waitpkg = cpu_.mwaitx = true;
            cpu_.ticks_per_ns = 2;
            // What CPUID hides may be there; then it is no emulation, but all the better.
            native_ = kind == SleeperKind::mwaitx ? executes(try_mwaitx) : executes(try_waitpkg);
            emulator_ = std::make_unique<test::Emulator>(longest_umwait_ticks);
#else
            GTEST_SKIP() << "not this architecture";
#endif
        } else if (!has) {
            GTEST_SKIP() << name_of(kind) << ": " << why;
        }
        sleeper_ = make_sleeper(kind, cpu_, false);
        ASSERT_NE(sleeper_, nullptr);
    }
    Cpu cpu_;
    bool native_ = false;
    std::unique_ptr<Sleeper> sleeper_;
#if defined(__x86_64__)
    std::unique_ptr<test::Emulator> emulator_;
#endif
};

TEST_P(each_sleeper, a_ring_before_the_sleep_is_not_missed) {
    Doorbell bell;
    const std::uint32_t seen = bell.rings();
    bell.ring();
    EXPECT_FALSE(sleeper_->sleep(bell, seen, never_ns));
}

TEST_P(each_sleeper, the_clock_ends_it) {
    Doorbell bell;
    const std::uint64_t begin = now_ns();
    while (now_ns() < begin + 3 * ms) sleeper_->sleep(bell, bell.rings(), begin + 3 * ms);
    EXPECT_GE(now_ns() - begin, 3 * ms);
    // A time that is over already: it returns.
    sleeper_->sleep(bell, bell.rings(), begin);
}

// No ring is lost, however it falls between looking and sleeping.
TEST_P(each_sleeper, every_ring_wakes) {
    Doorbell bell;
    std::atomic<std::uint32_t> asked{0}, answered{0};
    // One that keeps its core while it waits may keep it from the ringer.
    const bool keeps_core = GetParam().kind != SleeperKind::futex && GetParam().kind != SleeperKind::epoll;
    const std::uint32_t rounds = keeps_core ? 200 : 2000;
    std::thread sleeper([&] {
        for (std::uint32_t round = 1; round <= rounds; ++round) {
            for (;;) {
                const std::uint32_t seen = bell.rings();
                if (asked.load() >= round) break;
                sleeper_->sleep(bell, seen, never_ns);
            }
            answered.store(round);
        }
    });
    for (std::uint32_t round = 1; round <= rounds; ++round) {
        asked.store(round);
        bell.ring();
        while (answered.load() < round) std::this_thread::yield();
    }
    sleeper.join();
    EXPECT_EQ(answered.load(), rounds);
}

#if defined(__x86_64__)
// The instructions are executed, with the operands that were asked for, and a wait that the kernel's bound
// cuts short goes on.
TEST_P(each_sleeper, the_instruction_itself_runs) {
    if (!GetParam().emulated) GTEST_SKIP() << "seen only where it is emulated";
    if (native_) GTEST_SKIP() << "this CPU runs it, though CPUID hides it";
    if (!executes([] {})) GTEST_SKIP() << "whether this CPU runs it cannot be tried here";
    Doorbell bell;
    // Again where the thread lost its core meanwhile, and the time was over at the first look.
    const auto& counts = test::Emulator::counts();
    const auto seen_enough = [&] {
        if (GetParam().kind == SleeperKind::umwait) return counts.umwait > 1 && counts.cut_short > 0;
        return GetParam().kind == SleeperKind::tpause ? counts.tpause > 1 : counts.mwaitx > 0;
    };
    for (int tries = 0; tries < 100 && !seen_enough(); ++tries) {
        const std::uint64_t begin = now_ns();
        sleeper_->sleep(bell, bell.rings(), begin + 2 * ms);
        EXPECT_GE(now_ns() - begin, 2 * ms);
    }
    switch (GetParam().kind) {
        case SleeperKind::umwait:
            EXPECT_GT(counts.umwait, 1u);
            EXPECT_EQ(counts.umonitor, counts.umwait);
            EXPECT_GT(counts.cut_short, 0u);
            EXPECT_EQ(counts.control, 0u) << "C0.2";
            break;
        case SleeperKind::tpause:
            EXPECT_GT(counts.tpause, 1u);
            EXPECT_EQ(counts.umwait + counts.umonitor, 0u);
            break;
        default:
            EXPECT_GT(counts.mwaitx, 0u);
            EXPECT_EQ(counts.monitorx, counts.mwaitx);
            break;
    }
}
#endif

INSTANTIATE_TEST_SUITE_P(sleepers, each_sleeper,
                         testing::Values(Way{SleeperKind::pause, false}, Way{SleeperKind::tpause, false},
                                         Way{SleeperKind::umwait, false}, Way{SleeperKind::mwaitx, false},
                                         Way{SleeperKind::futex, false}, Way{SleeperKind::epoll, false},
                                         Way{SleeperKind::tpause, true}, Way{SleeperKind::umwait, true},
                                         Way{SleeperKind::mwaitx, true}),
                         [](const auto& way) {
                             return std::string(name_of(way.param.kind)) +
                                    (way.param.emulated ? "_emulated" : "");
                         });

TEST(epoll, a_descriptor_wakes_and_counts_as_one_for_all_its_users) {
    const auto sleeper = make_sleeper(SleeperKind::epoll, {}, true);
    ASSERT_NE(sleeper, nullptr);
    Doorbell bell;
    const int descriptor = eventfd(0, EFD_CLOEXEC);
    ASSERT_GE(descriptor, 0);
    EXPECT_EQ(sleeper->watch(descriptor), Status::ok);
    EXPECT_EQ(sleeper->watch(descriptor), Status::ok);
    const std::uint64_t one = 1;
    ASSERT_EQ(write(descriptor, &one, sizeof one), 8);
    EXPECT_TRUE(sleeper->sleep(bell, bell.rings(), never_ns));
    sleeper->let_go(descriptor);
    EXPECT_TRUE(sleeper->sleep(bell, bell.rings(), never_ns)) << "one user is left";
    sleeper->let_go(descriptor);
    EXPECT_FALSE(sleeper->sleep(bell, bell.rings(), now_ns() + ms));
    EXPECT_EQ(sleeper->watch(-1), Status::io_failed);
    close(descriptor);
}

// From now on the kernel answers `error` to this system call of this thread.
bool refuse(std::uint32_t number, std::uint32_t error) {
    sock_filter lines[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                           BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
                           BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
                           BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    const sock_fprog program{std::size(lines), lines};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

#ifndef SYS_epoll_pwait2
constexpr long SYS_epoll_pwait2 = 441;
#endif

// Containers' filters say EPERM of calls that they do not know.
TEST(epoll, sleeps_where_the_finer_call_is_refused) {
    bool filtered = true;
    for (const std::uint32_t error : {EPERM, ENOSYS, EACCES}) {
        Doorbell bell;
        std::atomic<bool> slept{false}, rung{false};
        std::uint64_t slept_ns = 0;
        int sleeps = 0, rings = 0;
        std::thread sleeper([&] {
            filtered &= refuse(SYS_epoll_pwait2, error);
            const auto way = make_sleeper(SleeperKind::epoll, {}, false);
            const std::uint64_t begin = now_ns();
            way->sleep(bell, bell.rings(), begin + 5 * ms);
            slept_ns = now_ns() - begin;
            slept.store(true);
            const std::uint64_t until = begin + 100'000 * ms;
            for (std::uint32_t seen = bell.rings(); !rung.load() && now_ns() < until; seen = bell.rings()) {
                way->sleep(bell, seen, until);
                ++sleeps;
            }
            rings = rung.load();
        });
        while (!slept.load()) usleep(1'000);
        usleep(10'000);
        rung.store(true);
        bell.ring();
        sleeper.join();
        if (!filtered) GTEST_SKIP() << "no filter of system calls can be set here";
        EXPECT_GE(slept_ns, 5 * ms) << std::strerror(static_cast<int>(error));
        EXPECT_LE(sleeps, 2) << "it was awake";
        EXPECT_EQ(rings, 1) << "it did not hear the bell";
    }
}

// As before Linux 5.11. On a busy machine one of many sleeps has to show it.
TEST(epoll, a_short_sleep_is_short_without_the_finer_call) {
    constexpr std::uint64_t span_ns = ms / 5;
    bool filtered = false, heard = false;
    std::uint64_t shortest_ns = never_ns;
    std::thread sleeper([&] {
        filtered = refuse(SYS_epoll_pwait2, ENOSYS);
        Doorbell bell;
        const auto way = make_sleeper(SleeperKind::epoll, {}, false);
        for (int tries = 0; tries < 1000 && shortest_ns >= ms; ++tries) {
            const std::uint64_t begin = now_ns();
            way->sleep(bell, bell.rings(), begin + span_ns);
            shortest_ns = std::min(shortest_ns, now_ns() - begin);
        }
        const int descriptor = eventfd(1, EFD_CLOEXEC);
        heard =
            way->watch(descriptor) == Status::ok && way->sleep(bell, bell.rings(), now_ns() + 100'000 * ms);
        close(descriptor);
    });
    sleeper.join();
    if (!filtered) GTEST_SKIP() << "no filter of system calls can be set here";
    EXPECT_GE(shortest_ns, span_ns);
    EXPECT_LT(shortest_ns, ms);
    EXPECT_TRUE(heard) << "by a descriptor";
}

}  // namespace
}  // namespace thalweg
