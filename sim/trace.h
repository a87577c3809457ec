// A timeline of one operation as Chrome's trace events, which Perfetto and chrome://tracing open: a process
// per rank, in it lanes (threads) of each kind of step, a slice per step from the time it was ready until it
// was complete, an arrow per message.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "schedule/schedule.h"
#include "sim/matching.h"
#include "topology/topology.h"

namespace thalweg::sim {

// When a step was ready and complete, seconds.
struct Span {
    double ready = 0, complete = 0;
};

// spans[g] belongs to step g of matching.first. io_failed: `why` is one sentence.
Status write_trace(const std::string& path, std::span<const Schedule> schedules, const Topology& topology,
                   const Matching& matching, std::span<const Span> spans, std::string& why);

}  // namespace thalweg::sim
