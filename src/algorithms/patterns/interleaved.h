// A schedule over some of the ranks as part of a larger one, issued a few steps at a time, so that other
// steps can be put between.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "schedule/builder.h"

namespace thalweg::patterns {

// Where a buffer of the part begins in the larger schedule.
struct Base {
    Buffer buffer = Buffer::out;
    std::uint64_t offset = 0;
};

class Interleaved {
  public:
    // The part's rank i is rank_of[i] of the builder. Its scratch is fresh. All three must outlive this
    // object. Two ranks that are in the part must add it at the same place among the messages that they
    // exchange.
    Interleaved(Builder& builder, const Schedule& part, std::span<const int> rank_of, Base in = {Buffer::in},
                Base out = {Buffer::out});

    // Adds the part's steps up to number `end`, those that were added before excepted.
    void until(std::size_t end);
    void rest() { until(part_.steps().size()); }

  private:
    Slice moved(Slice slice) const;

    Builder& builder_;
    const Schedule& part_;
    std::span<const int> rank_of_;
    Base base_[3];  // per Buffer
    std::vector<StepId> id_;
};

}  // namespace thalweg::patterns
