#include <sched.h>

#include "engine/waiters/waiter.h"

namespace thalweg {
namespace {

// A yield is a system call of about 0.3 us where nobody else wants the core: too much for a wait that is over
// in a few polls. A longer one yields at every poll, as an MPI's own does, because it may share its core with
// another thread of this process, which would get little more than the yields leave it.
constexpr std::uint32_t polls_before_yields = 64;

class SpinWaiter final : public Waiter {
  public:
    void begin() override { polls_ = 0; }

    void progressed() override { polls_ = 0; }

    void idle(Transport&, WaitStatistics&) override {
        if (polls_ == polls_before_yields) {
            sched_yield();
            return;
        }
        ++polls_;
#if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
#elif defined(__aarch64__)
        asm volatile("yield");
#endif
    }

  private:
    std::uint32_t polls_ = 0;  // without an event, up to polls_before_yields
};

}  // namespace

std::unique_ptr<Waiter> make_spin_waiter() { return std::make_unique<SpinWaiter>(); }

}  // namespace thalweg
