// One error convention for every room: 0 is success, a positive code means "fine, but nothing was done", a
// negative code is an error. A sentence that says what to do is logged once, where the error is first known.
#pragma once

namespace thalweg {

enum class Status : int {
    ok = 0,
    // Fine, nothing done.
    in_progress = 1,  // asked about something that has not completed
    declined = 2,     // the call belongs to the native MPI
    not_found = 3,    // a look-up had no result
    // Errors.
    invalid_argument = -1,
    out_of_memory = -2,
    unsupported = -3,  // this build, machine or transport cannot do it
    mismatch = -4,     // ranks disagree, or a message has the wrong size
    invalid_schedule = -5,
    transport_failed = -6,
    io_failed = -7,
    truncated = -8,  // a message was longer than its receive; everything else is as it should be
};

constexpr bool failed(Status status) { return static_cast<int>(status) < 0; }
// Whether what an operation ran on is of no use any more.
constexpr bool breaks(Status status) { return failed(status) && status != Status::truncated; }

// Static storage, never null, one sentence without a full stop.
const char* describe(Status status);

}  // namespace thalweg
