// SimGrid's clock and its timers. Private to the replay.
#pragma once

#include <functional>

namespace thalweg::sim {

// Runs `action` at `date`, seconds of the simulated clock; now or later.
void at(double date, std::function<void()> action);
double now();

// Of the next action; negative: there is none.
double next_date();

}  // namespace thalweg::sim
