// One maker a file. Private to the waiters.
#pragma once

#include "engine/waiters/sleeper.h"

namespace thalweg {

std::unique_ptr<Sleeper> make_pause_sleeper();
std::unique_ptr<Sleeper> make_futex_sleeper();
// Null where the system has no descriptor left.
std::unique_ptr<Sleeper> make_epoll_sleeper();
std::unique_ptr<Sleeper> make_monitor_sleeper(SleeperKind kind, const Cpu& cpu, bool light);

}  // namespace thalweg
