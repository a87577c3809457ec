// Which earlier steps of a rank touched the bytes that a step is about to touch.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "schedule/interval_map.h"
#include "schedule/step.h"

namespace thalweg {

// Fed with the accesses of one rank's steps in the order of their ids. Names, per run of bytes, only the
// steps that are adjacent in its history: the last writer, or those that have read it since. Where all
// adjacent pairs are ordered, all pairs are.
class AccessHistory {
  public:
    // conflict(step, byte) for every earlier step that must come before `step` reads `slice`, with one byte
    // that both touch. The same step may be named several times.
    template <class Conflict>
    void read(StepId step, const Slice& slice, Conflict conflict) {
        if (slice.bytes == 0) return;
        runs(slice).change(slice.offset, slice.end(), [&](std::uint64_t at, Run& run) {
            if (run.writer != none && run.writer != step) conflict(run.writer, at);
            if (run.readers != none && cells_[run.readers].reader == step) return;
            cells_.push_back({step, run.readers});
            run.readers = static_cast<std::uint32_t>(cells_.size() - 1);
        });
    }

    // The same for a step that writes. Who has read a run follows its writer, so the writer is named only
    // where nobody has.
    template <class Conflict>
    void write(StepId step, const Slice& slice, Conflict conflict) {
        if (slice.bytes == 0) return;
        runs(slice).each(slice.offset, slice.end(), [&](std::uint64_t at, std::uint64_t, const Run& run) {
            if (run.readers == none && run.writer != none && run.writer != step) conflict(run.writer, at);
            for (std::uint32_t cell = run.readers; cell != none; cell = cells_[cell].next)
                if (cells_[cell].reader != step) conflict(cells_[cell].reader, at);
        });
        runs(slice).assign(slice.offset, slice.end(), Run{step, none});
    }

  private:
    static constexpr std::uint32_t none = ~std::uint32_t{0};

    // The last writer of some bytes and, as the head of a list in cells_, who has read them since. Lists
    // share their tails, so that a run can be cut in two by copying the head.
    struct Run {
        std::uint32_t writer = none;
        std::uint32_t readers = none;

        bool operator==(const Run&) const = default;
    };

    struct Cell {
        StepId reader;
        std::uint32_t next;
    };

    IntervalMap<Run>& runs(const Slice& slice) { return runs_[static_cast<int>(slice.buffer)]; }

    std::array<IntervalMap<Run>, 3> runs_;  // per Buffer
    std::vector<Cell> cells_;
};

}  // namespace thalweg
