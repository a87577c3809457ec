// umwait, tpause (Intel WAITPKG) and mwaitx (AMD MONITORX).
#include "engine/waiters/monitor.h"

#include <algorithm>

#include "base/clock.h"
#include "engine/waiters/sleepers.h"

#if defined(__x86_64__) || defined(__i386__)
#include <x86intrin.h>
// They also run where no sanitizer may keep books (executes()).
#define THALWEG_TARGET(name) __attribute__((target(name), no_sanitize("thread", "address")))
#else
#define THALWEG_TARGET(name)
#endif

namespace thalweg {

std::uint64_t deadline_ticks(const Cpu& cpu, std::uint64_t now_ticks, std::uint64_t span_ns) {
    const double ticks = static_cast<double>(span_ns) * cpu.ticks_per_ns;
    if (ticks >= static_cast<double>(UINT64_MAX - now_ticks)) return UINT64_MAX;
    return now_ticks + static_cast<std::uint64_t>(ticks);
}

std::uint32_t span_ticks(const Cpu& cpu, std::uint64_t span_ns) {
    const double ticks = static_cast<double>(span_ns) * cpu.ticks_per_ns;
    // 0 would mean no limit.
    return ticks >= static_cast<double>(UINT32_MAX) ? UINT32_MAX
                                                    : std::max(static_cast<std::uint32_t>(ticks), 1u);
}

#if defined(__x86_64__) || defined(__i386__)

// The word is read after the line is watched: a write before the watch is seen here, a later one ends the
// wait.
THALWEG_TARGET("waitpkg")
void umwait_once(const std::atomic<std::uint32_t>& word, std::uint32_t seen, std::uint32_t control,
                 std::uint64_t deadline) {
    _umonitor(const_cast<std::atomic<std::uint32_t>*>(&word));
    if (word.load(std::memory_order_seq_cst) == seen) _umwait(control, deadline);
}

THALWEG_TARGET("waitpkg")
void tpause_once(std::uint32_t control, std::uint64_t deadline) { _tpause(control, deadline); }

THALWEG_TARGET("mwaitx")
void mwaitx_once(const std::atomic<std::uint32_t>& word, std::uint32_t seen, std::uint32_t ticks) {
    constexpr unsigned timer = 2;  // the third operand counts
    // A hint above C1 keeps the core's caches and clocks as they are: 0xf0 asks for C0.
    constexpr unsigned light_sleep = 0xf0;
    _mm_monitorx(const_cast<std::atomic<std::uint32_t>*>(&word), 0, 0);
    if (word.load(std::memory_order_seq_cst) == seen) _mm_mwaitx(timer, light_sleep, ticks);
}

THALWEG_TARGET("waitpkg")
void try_waitpkg() {
    static const std::atomic<std::uint32_t> word{0};
    umwait_once(word, 0, umwait_control(true), 0);
    tpause_once(umwait_control(true), 0);
}

THALWEG_TARGET("mwaitx")
void try_mwaitx() {
    static const std::atomic<std::uint32_t> word{0};
    mwaitx_once(word, 0, 1);
}

#else

void umwait_once(const std::atomic<std::uint32_t>&, std::uint32_t, std::uint32_t, std::uint64_t) {}
void tpause_once(std::uint32_t, std::uint64_t) {}
void mwaitx_once(const std::atomic<std::uint32_t>&, std::uint32_t, std::uint32_t) {}
void try_waitpkg() {}
void try_mwaitx() {}

#endif

namespace {

// Each loops, because a wait may end early: by the kernel's bound, by an interrupt, for no reason.
class MonitorSleeper final : public Sleeper {
  public:
    MonitorSleeper(SleeperKind kind, const Cpu& cpu, bool light)
        : kind_(kind), cpu_(cpu), control_(umwait_control(light)) {}

    bool sleep(Doorbell& bell, std::uint32_t seen, std::uint64_t until_ns) override {
        while (bell.rings() == seen) {
            const std::uint64_t time_ns = now_ns();
            if (time_ns >= until_ns) break;
            const std::uint64_t span_ns = until_ns - time_ns;
            switch (kind_) {
                case SleeperKind::umwait:
                    umwait_once(bell.word(), seen, control_, deadline_ticks(cpu_, read_ticks(), span_ns));
                    break;
                case SleeperKind::tpause:
                    tpause_once(control_,
                                deadline_ticks(cpu_, read_ticks(), std::min(span_ns, longest_deaf_ns)));
                    break;
                default:
                    mwaitx_once(bell.word(), seen, span_ticks(cpu_, span_ns));
                    break;
            }
        }
        return false;
    }

  private:
    // tpause does not see the bell, so it looks up this often.
    static constexpr std::uint64_t longest_deaf_ns = 2'000;

    SleeperKind kind_;
    Cpu cpu_;
    std::uint32_t control_;
};

}  // namespace

std::unique_ptr<Sleeper> make_monitor_sleeper(SleeperKind kind, const Cpu& cpu, bool light) {
    return std::make_unique<MonitorSleeper>(kind, cpu, light);
}

}  // namespace thalweg
