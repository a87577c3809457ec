// What a communicator keeps between its calls: its plans, and pages of its staging memory. The process bounds
// the sum over all communicators (THALWEG_PLAN_MEMORY); beyond it the least recently used goes first,
// whoever's it is. What is given up is made again when it is needed, so ranks need not agree on it.
#pragma once

#include <atomic>
#include <cstdint>

#include "plan/plan_cache.h"
#include "plan/staging.h"

namespace thalweg {

class KeptMemory {
  public:
    KeptMemory() = default;
    // Pre: nobody is inside, or the calling thread is.
    ~KeptMemory();
    KeptMemory(const KeptMemory&) = delete;
    KeptMemory& operator=(const KeptMemory&) = delete;

    PlanCache plans;
    Staging staging;

    // Around everything that a call does with it: nobody else touches it meanwhile. Costs two atomic
    // operations where the bound is kept.
    class InUse {
      public:
        explicit InUse(KeptMemory& memory);
        ~InUse();
        InUse(const InUse&) = delete;
        InUse& operator=(const InUse&) = delete;

      private:
        KeptMemory& memory_;
    };

    // Gives up all that nobody is using, in all communicators.
    static void give_up_idle();
    // Bytes, for the process; before the first communicator is made.
    static void set_limit(std::uint64_t bytes);
    // The sum over all communicators whose calls have ended.
    static std::uint64_t total();

  private:
    static void trim(std::uint64_t limit, std::uint64_t spare_since);
    bool try_enter() { return !busy_.exchange(true, std::memory_order_acquire); }
    void publish();
    std::uint64_t oldest_use() const;
    void give_up_oldest();

    std::atomic<bool> busy_{false};
    std::uint64_t published_ = 0;  // this communicator's part of the total
    // Among all that have kept something: those that never did cost nobody a look.
    KeptMemory *previous_ = nullptr, *next_ = nullptr;
    bool listed_ = false;
    bool trimmed_ = false;  // entered by a trim
};

}  // namespace thalweg
