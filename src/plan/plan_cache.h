// The plans of one communicator: schedules with all memory their runs need, found again by (bytes, root)
// and the size that the algorithm was chosen for.
//
// A plan also remembers "leave this size to the native library". The least recently used plans go first when
// there are too many, or when the process keeps too much (kept_memory.h). Finding a plan allocates nothing.
// Used by one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <unordered_map>

#include "engine/engine.h"
#include "plan/statistics.h"
#include "schedule/schedule.h"

namespace thalweg {

struct Plan {
    std::uint64_t bytes = 0;
    int root = 0;
    std::uint64_t decided_bytes = 0;       // the size the algorithm was chosen for: a last piece is smaller
    std::unique_ptr<Execution> execution;  // null: native
    Reason native_reason = Reason::native_best;
    std::string algorithm;              // as the user would write it
    std::string reason;                 // why it was chosen
    Tally* tally = nullptr;             // lives in the communicator's record
    std::uint64_t footprint_bytes = 0;  // memory that goes with the plan
    std::uint64_t last_use = 0;         // by use_clock()
    bool transient = false;             // made from the reserve: to be dropped after the call
};

// Counts uses of plans and staging memory in the process; larger is later.
std::uint64_t use_clock();

class PlanCache {
  public:
    static constexpr std::size_t most_plans = 256;

    // Null when there is none. The plan stays valid until the next insert or clear.
    Plan* find(std::uint64_t bytes, int root, std::uint64_t decided_bytes);
    // Drops what is too many, never the new plan. Throws std::bad_alloc, with nothing inserted.
    Plan& insert(Plan plan);
    void clear();
    // Pre: there is one.
    void drop_oldest();
    // Drops those made from the reserve.
    void drop_transient();
    std::size_t size() const { return plans_.size(); }
    std::uint64_t footprint_bytes() const { return footprint_bytes_; }
    // When the least and the most recently used plan were used; without plans never, and at the beginning.
    std::uint64_t oldest_use() const { return plans_.empty() ? ~std::uint64_t{0} : plans_.back().last_use; }
    std::uint64_t newest_use() const { return plans_.empty() ? 0 : plans_.front().last_use; }

  private:
    struct Key {
        std::uint64_t bytes;
        int root;
        std::uint64_t decided_bytes;
        bool operator==(const Key&) const = default;
    };
    struct Hash {
        std::size_t operator()(const Key& key) const {
            return (key.bytes + 31 * key.decided_bytes +
                    0x9e3779b97f4a7c15u * static_cast<unsigned>(key.root + 1)) *
                   0xff51afd7ed558ccdu;
        }
    };
    void drop(std::list<Plan>::iterator plan);

    std::list<Plan> plans_;  // the most recently used first
    std::unordered_map<Key, std::list<Plan>::iterator, Hash> index_;
    std::uint64_t footprint_bytes_ = 0;
};

}  // namespace thalweg
