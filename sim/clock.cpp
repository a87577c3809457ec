#include "sim/clock.h"

#include <simgrid/kernel/Timer.hpp>
#include <simgrid/s4u.hpp>
#include <utility>

namespace thalweg::sim {

using simgrid::kernel::timer::Timer;

double now() { return simgrid::s4u::Engine::get_clock(); }

void at(double date, std::function<void()> action) { Timer::set(date, std::move(action)); }

double next_date() { return Timer::next(); }

}  // namespace thalweg::sim
