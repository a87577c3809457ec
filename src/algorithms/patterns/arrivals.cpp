#include "algorithms/patterns/arrivals.h"

#include <algorithm>
#include <iterator>
#include <map>

namespace thalweg::patterns {
namespace {

// Bytes seen so far, as disjoint runs begin → end.
class Seen {
  public:
    // Calls `fresh` with each run of `slice` that was not seen before, in order, and remembers it.
    template <typename Fresh>
    void add(const Slice& slice, Fresh fresh) {
        auto run = runs_.upper_bound(slice.offset);
        if (run != runs_.begin() && std::prev(run)->second >= slice.offset) --run;
        std::uint64_t begin = slice.offset, merged_begin = slice.offset, merged_end = slice.end();
        while (run != runs_.end() && run->first <= slice.end()) {
            if (run->first > begin) fresh(Slice{slice.buffer, begin, run->first - begin});
            begin = std::max(begin, run->second);
            merged_begin = std::min(merged_begin, run->first);
            merged_end = std::max(merged_end, run->second);
            run = runs_.erase(run);
        }
        if (begin < slice.end()) fresh(Slice{slice.buffer, begin, slice.end() - begin});
        runs_.emplace(merged_begin, merged_end);
    }

  private:
    std::map<std::uint64_t, std::uint64_t> runs_;
};

std::vector<Arrival> received(const Schedule& schedule) {
    std::vector<Arrival> result;
    Seen seen;
    std::size_t waiting = 0;  // the first piece whose following sends have not all been looked at
    for (std::size_t i = 0; i < schedule.steps().size(); ++i) {
        const Step& step = schedule.steps()[i];
        if (step.kind != StepKind::recv || step.target.buffer != Buffer::out) continue;
        for (; waiting < result.size(); ++waiting) result[waiting].steps = i;
        seen.add(step.target, [&](const Slice& slice) { result.push_back({slice, 0}); });
    }
    for (; waiting < result.size(); ++waiting) result[waiting].steps = schedule.steps().size();
    return result;
}

// Cut at every edge of a message that is sent; ordered by the last send.
std::vector<Arrival> held(const Schedule& schedule, const Slice& message) {
    std::vector<std::uint64_t> edges = {message.offset, message.end()};
    for (const Step& step : schedule.steps())
        if (step.kind == StepKind::send) edges.insert(edges.end(), {step.source.offset, step.source.end()});
    std::sort(edges.begin(), edges.end());
    edges.erase(std::unique(edges.begin(), edges.end()), edges.end());

    std::vector<Arrival> result;
    for (std::size_t i = 0; i + 1 < edges.size(); ++i)
        result.push_back({{message.buffer, edges[i], edges[i + 1] - edges[i]}, 0});
    // From the last send back, every piece is marked once: next_unmarked_ skips those that are.
    std::vector<std::size_t> next_unmarked(result.size() + 1);
    for (std::size_t i = 0; i < next_unmarked.size(); ++i) next_unmarked[i] = i;
    const auto find = [&](std::size_t i) {
        while (next_unmarked[i] != i) i = next_unmarked[i] = next_unmarked[next_unmarked[i]];
        return i;
    };
    for (std::size_t s = schedule.steps().size(); s-- > 0;) {
        const Step& step = schedule.steps()[s];
        if (step.kind != StepKind::send) continue;
        const auto first = std::lower_bound(edges.begin(), edges.end(), step.source.offset) - edges.begin();
        for (std::size_t i = find(static_cast<std::size_t>(first));
             i < result.size() && edges[i] < step.source.end(); i = find(i)) {
            result[i].steps = s + 1;
            next_unmarked[i] = i + 1;
        }
    }
    std::stable_sort(result.begin(), result.end(),
                     [](const Arrival& a, const Arrival& b) { return a.steps < b.steps; });
    return result;
}

}  // namespace

std::vector<Arrival> arrivals(const Schedule& schedule, const Slice& message, bool holds_all) {
    if (message.bytes == 0) return {};
    return holds_all ? held(schedule, message) : received(schedule);
}

std::vector<Arrival> settled(const Schedule& schedule, const Slice& message) {
    std::vector<Arrival> result;  // from the last one to the first, each with the number of its last writer
    Seen seen;
    for (std::size_t s = schedule.steps().size(); s-- > 0;) {
        const Step& step = schedule.steps()[s];
        if (step.kind == StepKind::send || !overlap(step.target, message)) continue;
        const std::uint64_t from = std::max(step.target.offset, message.offset);
        const std::uint64_t to = std::min(step.target.end(), message.end());
        seen.add({message.buffer, from, to - from}, [&](const Slice& slice) {
            result.push_back({slice, s});
        });
    }
    const std::size_t written = result.size();
    if (message.bytes != 0) seen.add(message, [&](const Slice& slice) { result.push_back({slice, 0}); });
    // A piece may go on once everything up to the next write has been issued, and that write too: a receive
    // stays on the same side of what is put between as the send beside it, and so at the other end.
    std::size_t next = schedule.steps().size(), writer = next;
    for (std::size_t i = 0; i < written; ++i) {
        if (result[i].steps != writer && i > 0) next = writer + 1;
        writer = result[i].steps;
        result[i].steps = next;
    }
    std::reverse(result.begin(), result.end());
    return result;
}

}  // namespace thalweg::patterns
