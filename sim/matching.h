// The messages of a group of schedules: which send meets which receive, and over which pair of ranks.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "schedule/schedule.h"
#include "sim/program.h"

namespace thalweg::sim {

// Steps of all ranks are numbered through: rank by rank, in the order of their ids.
using GlobalStep = std::uint64_t;

inline constexpr std::uint32_t none = ~std::uint32_t{0};

struct Matched {
    std::int32_t from = 0, to = 0;
    StepId send = 0, recv = 0;
    std::uint32_t pair = 0;  // messages of equal `pair` have the same sender and the same receiver
    std::uint64_t bytes = 0;
    bool direct = false;
    // As number_operations() says; before that, all are of one of Thalweg's.
    bool left = false;            // to the MPI library
    std::uint32_t operation = 0;  // of its sender's
};

struct Matching {
    std::vector<GlobalStep> first;       // of each rank's step 0; one more at the end
    std::vector<Matched> messages;       // by sender, then receiver, then number
    std::vector<std::uint32_t> message;  // per step: its message, `none` for others
    std::uint32_t pairs = 0;
};

// False: `why` says in one sentence, with rank and step, what does not match, or which two steps of a rank
// race.
bool match(std::span<const Schedule> schedules, Matching& matching, std::string& why);

// Which operation of its sender's program each message belongs to, and whether that is left to the library.
// Of schedules that are `repeat` runs of one operation, each run is one.
Matching number_operations(Matching matching, std::span<const Program> programs, unsigned repeat);

// "rank 3 step 7 (send to 4, message 0)"
std::string name_of_step(const Schedule& schedule, StepId id);

}  // namespace thalweg::sim
