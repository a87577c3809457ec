// Proves a set of schedules, one per rank, without running anything.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "schedule/schedule.h"

namespace thalweg {

// What holds before the first step and what must hold after the last, in bytes of one rank's buffers.
struct Contract {
    std::uint64_t in_bytes = 0;
    std::uint64_t out_bytes = 0;
    std::vector<Slice> defined;   // defined at the start (a broadcast's root: all of out)
    std::vector<Slice> required;  // must be defined at the end
};

struct Verdict {
    Status status = Status::ok;  // ok or invalid_schedule
    std::string why;             // one sentence that names rank and step, empty when ok
    std::uint64_t messages = 0;  // sends of at least one byte
    std::uint64_t bytes = 0;
    std::uint64_t rounds = 0;  // longest chain of messages that depend on one another, all ranks
    std::uint64_t redundant_bytes =
        0;  // received over bytes that were already defined and never changed between
    std::uint64_t redundant_messages = 0;  // messages all of whose bytes were redundant
};

// Checks: every send meets a receive of equal size and number; no cycle across ranks; slices in bounds; no
// two unordered steps of a rank touch the same bytes when one writes; nothing undefined is read; every
// required byte ends defined. schedules[r] and contracts[r] belong to rank r. O(total steps × log) time.
Verdict validate(std::span<const Schedule> schedules, std::span<const Contract> contracts);

}  // namespace thalweg
