#include <sched.h>

#include "engine/waiters/waiter.h"

namespace thalweg {
namespace {

// A yield is a system call of about 0.3 us where nobody else wants the core; once in 64 polls it is not
// noticed.
constexpr std::uint32_t polls_per_yield = 64;

class SpinWaiter final : public Waiter {
  public:
    void begin() override { polls_ = 0; }

    void idle(Transport&, WaitStatistics&) override {
        if (++polls_ % polls_per_yield == 0) {
            sched_yield();
            return;
        }
#if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
#elif defined(__aarch64__)
        asm volatile("yield");
#endif
    }

  private:
    std::uint32_t polls_ = 0;
};

}  // namespace

std::unique_ptr<Waiter> make_spin_waiter() { return std::make_unique<SpinWaiter>(); }

}  // namespace thalweg
