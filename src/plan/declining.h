// Counting what is left to the native library.
#pragma once

#include <cstdint>

#include "plan/communicator.h"
#include "plan/last_call.h"
#include "plan/statistics.h"
#include "select/select.h"

namespace thalweg {

// Calls of one kind.
class Declining {
  public:
    explicit Declining(CallKind kind) : kind_(kind) {}

    // Before anything was asked about the communicator: one atomic addition.
    void anywhere(Reason reason, std::uint64_t bytes = 0) const {
        note_declined(reason, bytes);
        count_declined(kind_, reason);
    }
    // Throws std::bad_alloc.
    void on(Communicator& communicator, Reason reason, std::uint64_t bytes) const {
        note_declined(reason, bytes);
        Tally& tally = communicator.record().declined(reason, size_class(bytes), kind_);
        ++tally.calls;
        tally.bytes += bytes;
    }

  private:
    CallKind kind_;
};

// Why a decision without a choice is one.
inline Reason reason_of(const Decision& decision) {
    return decision.reason.starts_with("asked for") ? Reason::cannot : Reason::native_best;
}

}  // namespace thalweg
