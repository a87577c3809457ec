#include "sim/dependencies.h"

#include <numeric>

namespace thalweg::sim {

Dependencies::Dependencies(std::span<const Schedule> schedules, std::span<const GlobalStep> first)
    : left_(first.back()), next_begin_(first.back() + 1, 0) {
    for (std::size_t r = 0; r < schedules.size(); ++r)
        for (StepId id = 0; id < schedules[r].steps().size(); ++id) {
            const auto after = schedules[r].after(id);
            // A step that needs no other needs its operation to be started.
            left_[first[r] + id] = after.empty() ? 1 : static_cast<std::uint32_t>(after.size());
            for (const StepId on : after) ++next_begin_[first[r] + on + 1];
        }
    std::partial_sum(next_begin_.begin(), next_begin_.end(), next_begin_.begin());
    next_.resize(next_begin_.back());
    std::vector<std::uint64_t> fill(next_begin_.begin(), next_begin_.end() - 1);
    for (std::size_t r = 0; r < schedules.size(); ++r)
        for (StepId id = 0; id < schedules[r].steps().size(); ++id)
            for (const StepId on : schedules[r].after(id)) next_[fill[first[r] + on]++] = id;
}

StepId Dependencies::incomplete_send(const Schedule& schedule, GlobalStep first, StepId id) const {
    const auto& steps = schedule.steps();
    while (id < steps.size() && (steps[id].kind != StepKind::send || is_complete(first + id))) ++id;
    return id;
}

std::string Dependencies::first_incomplete(const Schedule& schedule, GlobalStep first) const {
    for (StepId id = 0; id < schedule.steps().size(); ++id) {
        const std::uint32_t left = left_[first + id];
        if (left == none) continue;
        return name_of_step(schedule, id) + " never completes: " +
               (left != 0 ? "it waits for steps of its own rank that never do"
                          : "its peer waits for something that this rank sends later");
    }
    return "a rank never completes";
}

}  // namespace thalweg::sim
