// A value for every byte offset, stored as maximal runs that were given one value together.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>

namespace thalweg {

// A total map from [0, 2^64) to Value, at first Value{} everywhere. Every call takes O(log runs) plus the
// runs it touches; neighbouring accesses, the usual case, skip the search.
template <class Value>
class IntervalMap {
  public:
    IntervalMap() { near_ = starts_.emplace(0, Value{}).first; }
    IntervalMap(const IntervalMap&) = delete;
    IntervalMap& operator=(const IntervalMap&) = delete;

    // visit(begin, end, value) for every run that meets [begin, end), clipped to it, in ascending order.
    template <class Visit>
    void each(std::uint64_t begin, std::uint64_t end, Visit visit) {
        if (begin >= end) return;
        auto run = find(begin);
        for (std::uint64_t from = begin; from < end;) {
            auto next = std::next(run);
            std::uint64_t to = next == starts_.end() || next->first > end ? end : next->first;
            visit(from, to, run->second);
            near_ = run;
            run = next;
            from = to;
        }
    }

    // change(begin, value) for every such run, after cutting the runs at both ends: the value may be changed.
    template <class Change>
    void change(std::uint64_t begin, std::uint64_t end, Change visit) {
        if (begin >= end) return;
        auto first = cut(begin);
        auto last = cut(end);
        for (auto run = first; run != last; ++run) visit(run->first, run->second);
        near_ = first;
    }

    // Gives [begin, end) one value, as one run. With `join`, the run grows together with equal neighbours.
    void assign(std::uint64_t begin, std::uint64_t end, const Value& value, bool join = false) {
        if (begin >= end) return;
        auto first = cut(begin);
        auto last = cut(end);
        starts_.erase(std::next(first), last);
        first->second = value;
        near_ = first;
        if (!join) return;
        if (last != starts_.end() && last->second == value) starts_.erase(last);
        if (first != starts_.begin() && std::prev(first)->second == value) {
            near_ = std::prev(first);
            starts_.erase(first);
        }
    }

  private:
    using Runs = std::map<std::uint64_t, Value>;
    using Run = typename Runs::iterator;

    // The run that holds `at`: near the last one touched, or by search.
    Run find(std::uint64_t at) {
        if (near_->first <= at) {
            auto next = std::next(near_);
            if (next == starts_.end() || at < next->first) return near_;
            auto after = std::next(next);
            if (after == starts_.end() || at < after->first) return next;
        }
        return std::prev(starts_.upper_bound(at));
    }

    // The run that starts at `at`, made if need be.
    Run cut(std::uint64_t at) {
        auto run = find(at);
        near_ = run;
        if (run->first == at) return run;
        return starts_.emplace_hint(std::next(run), at, run->second);
    }

    Runs starts_;  // a value holds from its key to the next key
    Run near_;
};

}  // namespace thalweg
