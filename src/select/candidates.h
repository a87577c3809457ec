// The choices that a decision is made among, with their chunks tuned to message and machine.
#pragma once

#include <optional>
#include <vector>

#include "select/select.h"

namespace thalweg {

// A candidate, and the cheapest by predict() where that is another one, which is less robust.
struct RobustCandidate {
    Candidate candidate;
    std::optional<Choice> cheapest;
};

// The cheapest by predict(), or a more robust one within a quarter of it, among the pipelines that reach the
// wire's rate between hosts, each combined with several ways inside a host where hosts have more than one
// rank. Ports are those of the machine. Pre: two hosts or more; a byte or more, except for a barrier.
RobustCandidate robust_candidate(Collective collective, const Problem& problem, const Topology& topology,
                                 const Machine& machine);

// Those, every algorithm in its standard form, and `also`: each once, cheapest prediction first, refused ones
// last. Schedules are played where the group sends few messages.
std::vector<Candidate> all_candidates(Collective collective, const Problem& problem, const Topology& topology,
                                      const Machine& machine, const std::optional<Choice>& also);

}  // namespace thalweg
