#include "sim/variants.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

namespace thalweg::sim {

Schedule repeated(const Schedule& schedule, unsigned times) {
    const auto count = static_cast<StepId>(schedule.steps().size());
    std::vector<bool> last(count, true);  // nothing depends on it
    std::map<std::pair<std::int32_t, StepKind>, std::uint32_t> messages;
    for (StepId id = 0; id < count; ++id) {
        for (const StepId on : schedule.after(id)) last[on] = false;
        const Step& step = schedule.steps()[id];
        if (is_message(step.kind)) ++messages[{step.peer, step.kind}];
    }
    std::vector<Step> steps;
    std::vector<StepId> after;
    std::vector<std::uint32_t> begin{0};
    const auto add = [&](const Step& step) {
        steps.push_back(step);
        begin.push_back(static_cast<std::uint32_t>(after.size()));
    };
    for (unsigned run = 0; run < times && count > 0; ++run) {
        const auto first = static_cast<StepId>(steps.size());
        for (StepId id = 0; id < count; ++id) {
            for (const StepId on : schedule.after(id)) after.push_back(first + on);
            if (run > 0 && schedule.after(id).empty()) after.push_back(first - 1);
            Step step = schedule.steps()[id];
            if (is_message(step.kind)) step.message += run * messages[{step.peer, step.kind}];
            add(step);
        }
        for (StepId id = 0; id < count; ++id)
            if (last[id]) after.push_back(first + id);
        add(Step{});  // a copy of no bytes, behind everything
    }
    return Schedule(schedule.rank(), schedule.size(), std::move(steps), std::move(after), std::move(begin),
                    schedule.scratch_bytes());
}

Schedule in_turn(const Schedule& schedule) {
    const auto steps = schedule.steps();
    std::vector<StepId> after;
    std::vector<std::uint32_t> begin{0};
    std::vector<StepId> before, current;  // messages of the last exchange and of this one
    for (StepId id = 0; id < steps.size(); ++id) {
        const auto needs = schedule.after(id);
        after.insert(after.end(), needs.begin(), needs.end());
        if (is_message(steps[id].kind)) {
            const bool joins = current.size() == 1 && current[0] + 1 == id &&
                               steps[current[0]].kind != steps[id].kind &&
                               std::find(needs.begin(), needs.end(), current[0]) == needs.end();
            if (!joins) before = std::exchange(current, {});
            current.push_back(id);
            for (const StepId on : before)
                if (std::find(needs.begin(), needs.end(), on) == needs.end()) after.push_back(on);
            std::sort(after.begin() + begin.back(), after.end());
        }
        begin.push_back(static_cast<std::uint32_t>(after.size()));
    }
    return Schedule(schedule.rank(), schedule.size(), {steps.begin(), steps.end()}, std::move(after),
                    std::move(begin), schedule.scratch_bytes());
}

Schedule posted(const Schedule& schedule, Posting posting) {
    if (posting == Posting::as_built) return schedule;
    const auto steps = schedule.steps();
    const auto of_kind = [&](auto wanted) {
        std::vector<StepId> ids;
        for (StepId id = 0; id < steps.size(); ++id)
            if (wanted(steps[id].kind)) ids.push_back(id);
        return ids;
    };
    const auto place = [&](StepId id) -> std::uint64_t {
        const Step& step = steps[id];
        const bool send = step.kind == StepKind::send;
        if (posting == Posting::listed) return send ? step.source.offset : step.target.offset;
        const int away = send ? schedule.rank() - step.peer : step.peer - schedule.rank();
        return static_cast<std::uint64_t>(away < 0 ? away + schedule.size() : away);
    };
    const auto in_order = [&](std::vector<StepId> ids) {
        std::stable_sort(ids.begin(), ids.end(), [&](StepId a, StepId b) { return place(a) < place(b); });
        return ids;
    };
    const auto receives = of_kind([](StepKind kind) { return kind == StepKind::recv; });
    const auto sends = of_kind([](StepKind kind) { return kind == StepKind::send; });
    const auto others = of_kind([](StepKind kind) { return !is_message(kind); });
    std::vector<StepId> taken = in_order(receives);
    const auto first_send = static_cast<StepId>(taken.size());
    for (const StepId id : in_order(sends)) taken.push_back(id);
    taken.insert(taken.end(), others.begin(), others.end());

    std::vector<Step> made;
    std::vector<StepId> after;
    std::vector<std::uint32_t> begin{0};
    for (StepId id = 0; id < taken.size(); ++id) {
        made.push_back(steps[taken[id]]);
        if (id >= first_send && id < first_send + sends.size())
            for (const StepId on : schedule.after(sends[id - first_send])) {
                const auto at = std::lower_bound(sends.begin(), sends.end(), on) - sends.begin();
                after.push_back(first_send + static_cast<StepId>(at));
            }
        begin.push_back(static_cast<std::uint32_t>(after.size()));
    }
    return Schedule(schedule.rank(), schedule.size(), std::move(made), std::move(after), std::move(begin),
                    schedule.scratch_bytes());
}

std::pair<StepId, StepId> Succession::append(const Schedule& schedule) {
    constexpr unsigned memory_bits = 40;  // of one operation, far more than any has
    const std::uint64_t shift = operations_++ << memory_bits;
    const auto first = static_cast<StepId>(steps_.size());
    std::map<std::pair<std::int32_t, StepKind>, std::uint32_t> here;
    for (StepId id = 0; id < schedule.steps().size(); ++id) {
        for (const StepId on : schedule.after(id)) after_.push_back(first + on);
        begin_.push_back(static_cast<std::uint32_t>(after_.size()));
        Step step = schedule.steps()[id];
        step.source.offset += shift;
        step.target.offset += shift;
        if (is_message(step.kind)) {
            ++here[{step.peer, step.kind}];
            step.message += messages_[{step.peer, step.kind}];
        }
        steps_.push_back(step);
    }
    for (const auto& [lane, count] : here) messages_[lane] += count;
    return {first, static_cast<StepId>(steps_.size())};
}

Schedule Succession::finish(int rank, int size) && {
    return Schedule(rank, size, std::move(steps_), std::move(after_), std::move(begin_), 0);
}

}  // namespace thalweg::sim
