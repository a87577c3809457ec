// Proves a set of schedules, one per rank, without running anything.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "schedule/schedule.h"

namespace thalweg {

// `slice` must end as the bytes that `rank` held at the start in `buffer` from `offset` on.
struct Expectation {
    Slice slice;
    int rank = 0;
    Buffer buffer = Buffer::out;
    std::uint64_t offset = 0;
};

// `slice` must end as the reduction of what all ranks held at the start in `buffer` from `offset` on: each
// rank's operand once, and the same expression on every rank, so that the bits are equal whatever the
// operation is and whatever arrives first.
struct Combination {
    Slice slice;
    Buffer buffer = Buffer::in;
    std::uint64_t offset = 0;
    bool in_rank_order = false;  // the operation does not commute: ranks ascend from left to right
};

// What holds before the first step and what must hold after the last, in bytes of one rank's buffers.
struct Contract {
    std::uint64_t in_bytes = 0;
    std::uint64_t out_bytes = 0;
    std::vector<Slice> defined;         // defined at the start (a broadcast's root: all of out)
    std::vector<Slice> required;        // must be defined at the end
    std::vector<Expectation> expected;  // and whose bytes they must be, where the collective only moves bytes
    std::vector<Combination> combined;  // or what they must combine; as many on every rank
    std::uint64_t element_bytes = 1;    // reductions begin and end at multiples of it
    bool synchronises = false;          // must not end before every rank has begun
    std::vector<Slice> untouched;       // no part of the result, and the program's: never written
};

struct Verdict {
    Status status = Status::ok;  // ok or invalid_schedule
    std::string why;             // one sentence that names rank and step, empty when ok

    // Of all ranks together; meaningful when ok.
    std::uint64_t messages = 0;  // sends of at least one byte
    std::uint64_t bytes = 0;
    std::uint64_t signals = 0;  // sends of no bytes
    // Longest chain of messages (of any size) that depend on one another. A message depends on what its send
    // and its receive wait for: a large one does not leave before its receive is posted.
    std::uint64_t rounds = 0;
    // Received over bytes that were already there: defined, of the same origin, and unchanged since.
    std::uint64_t redundant_bytes = 0;
    std::uint64_t redundant_messages = 0;  // messages all of whose bytes were redundant
};

// Checks: every send meets a receive of equal size and number; pieces of a message end where the last one
// says so, and follow each other in numbers, in memory and in time; no direct message may arrive before its
// receiver is ready; no cycle across ranks, not even when every send waits for its receive; slices in bounds,
// `in` never written; no two unordered steps of a rank touch the same bytes when one writes; nothing
// undefined is read, no element is cut; every required byte ends defined, and as expected, and nothing is
// written between them; nobody ends too early. schedules[r] and contracts[r] belong to rank r. Reports the
// first violation in that order. O(total steps × log) time where the order of conflicting steps is written
// directly, as Builder and the passes do; throws std::bad_alloc only.
Verdict validate(std::span<const Schedule> schedules, std::span<const Contract> contracts);

}  // namespace thalweg
