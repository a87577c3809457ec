// The second half of validate(): what every byte holds from step to step, and what has happened when a rank
// ends.
#pragma once

#include <span>
#include <string>

#include "schedule/group_steps.h"
#include "schedule/validate.h"

namespace thalweg {

// Follows all values through `group.order`. Returns what is wrong in one sentence, empty when nothing is;
// counts redundant bytes and messages in `verdict`. Pre: every send has its receive, no races, no cycle.
std::string follow_values(const GroupSteps& group, std::span<const Contract> contracts, Verdict& verdict);

// A rank whose contract says `synchronises` and that may end before another has begun: one sentence, empty
// when there is none. A receive follows its send; a send waits for nobody (the message may be buffered).
std::string find_early_end(const GroupSteps& group, std::span<const Contract> contracts);

}  // namespace thalweg
