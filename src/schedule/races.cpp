#include "schedule/races.h"

#include <algorithm>
#include <vector>

#include "schedule/access_history.h"

namespace thalweg {
namespace {

class RaceFinder {
  public:
    explicit RaceFinder(const Schedule& schedule)
        : schedule_(schedule), ancestor_of_(schedule.steps().size(), ~StepId{0}) {}

    bool find(Race& race) {
        for (StepId id = 0; id < schedule_.steps().size(); ++id) {
            collect(id);
            if (open_.empty()) continue;
            search_ancestors(id);
            for (const Race& pair : open_) {
                if (ancestor_of_[pair.earlier] == id) continue;
                race = pair;
                return true;
            }
        }
        return false;
    }

  private:
    // Fills open_ with the steps that must come before `id` and are not among its dependencies.
    void collect(StepId id) {
        const Step& step = schedule_.steps()[id];
        for (StepId on : schedule_.after(id)) ancestor_of_[on] = id;
        open_.clear();
        auto conflict = [&](Buffer buffer) {
            return [this, id, buffer](StepId earlier, std::uint64_t byte) {
                if (ancestor_of_[earlier] != id) open_.push_back({earlier, id, buffer, byte});
            };
        };
        if (step.kind != StepKind::recv) history_.read(id, step.source, conflict(step.source.buffer));
        if (step.kind != StepKind::send) history_.write(id, step.target, conflict(step.target.buffer));
    }

    // Marks the ancestors of `id`, back to the earliest step in open_.
    void search_ancestors(StepId id) {
        StepId earliest = id;
        for (const Race& pair : open_) earliest = std::min(earliest, pair.earlier);
        stack_.assign(schedule_.after(id).begin(), schedule_.after(id).end());
        while (!stack_.empty()) {
            const StepId top = stack_.back();
            stack_.pop_back();
            for (StepId on : schedule_.after(top)) {
                if (on < earliest || ancestor_of_[on] == id) continue;
                ancestor_of_[on] = id;
                stack_.push_back(on);
            }
        }
    }

    const Schedule& schedule_;
    AccessHistory history_;
    std::vector<StepId> ancestor_of_;  // the last step that each was found to precede
    std::vector<Race> open_;
    std::vector<StepId> stack_;
};

}  // namespace

bool find_race(const Schedule& schedule, Race& race) { return RaceFinder(schedule).find(race); }

}  // namespace thalweg
