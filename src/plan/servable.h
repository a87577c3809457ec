// Whether algorithms can serve the calls of one communicator, found out once for calls alike: where hosts
// have many ranks that takes longer than many a call.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "algorithms/algorithm.h"

namespace thalweg {

// For one thread at a time.
class Servable {
  public:
    // What `ask()` says of messages of `bytes`, in elements of `element_bytes`, by `choice`, which are all
    // that it depends on. The latest few answers are kept. Throws std::bad_alloc.
    template <typename Ask>
    bool by(const Choice& choice, std::uint64_t bytes, std::uint64_t element_bytes, Ask ask) {
        for (const Answer& known : answers_)
            if (known.bytes == bytes && known.element_bytes == element_bytes && known.choice == choice)
                return known.is_servable;
        Answer found{choice, bytes, element_bytes, ask()};
        std::swap(answers_[next_], found);
        const bool is_servable = answers_[next_].is_servable;
        next_ = (next_ + 1) % answers_.size();
        return is_servable;
    }

  private:
    struct Answer {
        Choice choice;  // without an algorithm: of no calls
        std::uint64_t bytes = 0, element_bytes = 0;
        bool is_servable = false;
    };
    std::array<Answer, 8> answers_;
    std::size_t next_ = 0;
};

}  // namespace thalweg
