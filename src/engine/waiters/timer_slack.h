// How late the timers of a thread may be: 50 us unless told otherwise, which is longer than our shortest
// sleep.
#pragma once

#include <sys/prctl.h>

namespace thalweg {

// The slack belongs to the thread, hence to the application: ours lasts from the first lower() to restore().
// Used by one thread between these.
class TimerSlack {
  public:
    static constexpr unsigned long low_ns = 1'000;

    TimerSlack() = default;
    ~TimerSlack() { restore(); }
    TimerSlack(const TimerSlack&) = delete;
    TimerSlack& operator=(const TimerSlack&) = delete;

    // Two system calls the first time, then none.
    void lower() {
        if (before_ns_ != 0) return;
        const int before_ns = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
        before_ns_ = before_ns > 0 ? static_cast<unsigned long>(before_ns) : low_ns;
        prctl(PR_SET_TIMERSLACK, low_ns, 0, 0, 0);
    }

    void restore() {
        if (before_ns_ == 0) return;
        prctl(PR_SET_TIMERSLACK, before_ns_, 0, 0, 0);
        before_ns_ = 0;
    }

  private:
    unsigned long before_ns_ = 0;  // 0: not lowered
};

}  // namespace thalweg
