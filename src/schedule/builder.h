// Makes a Schedule. Order is written into the schedule as dependencies; the builder derives those that data
// flow demands, so an algorithm states only what it moves, in an order that would be right if run step by
// step.
//
// Derived: a step that reads bytes follows the earlier steps that wrote them; a step that writes bytes
// follows the earlier steps that read or wrote them. Anything else (a round that must not overtake another)
// is passed in `after`.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>

#include "schedule/schedule.h"

namespace thalweg {

class Builder {
  public:
    Builder(int rank, int size);
    ~Builder();

    // Of a step: its number among the pair's messages, and what step.h says of pieces.
    struct Piece {
        std::uint32_t message = 0, may_follow = 0;
        std::uint64_t full_bytes = 0;
    };

    // Each returns the new step's id. A slice of zero bytes makes a real zero-byte message (or a no-op copy),
    // so an algorithm that wants none must not add the step. Pre: 0 <= peer < size, peer != rank; ids in
    // `after` exist.
    StepId send(int to, Slice source, std::span<const StepId> after = {});
    StepId recv(int from, Slice target, std::span<const StepId> after = {});
    // A piece of a message whose ends may give it different sizes (step.h). The caller numbers all messages
    // of the pair in this direction, from 0.
    StepId send_piece(int to, Slice source, const Piece& piece, std::span<const StepId> after = {});
    StepId recv_piece(int from, Slice target, const Piece& piece, std::span<const StepId> after = {});
    // The two ends of a direct message (step.h). `after` of the arrival names the step by which the sender is
    // told that the memory is ready, and `after` of the put the one that hears it.
    StepId put(int to, Slice source, std::span<const StepId> after);
    StepId arrival(int from, Slice target, std::span<const StepId> after);
    StepId copy(Slice target, Slice source, std::span<const StepId> after = {});
    // target = source op target where the source is on the left (as MPI's own reductions take it), else
    // target = target op source. Slices are whole elements, and start at multiples of the element from the
    // place that an operand of the collective has.
    StepId reduce(Slice target, Slice source, Side source_side = Side::left,
                  std::span<const StepId> after = {});

    // `bytes` of fresh scratch memory, undefined at every start.
    Slice scratch(std::uint64_t bytes);

    // Adds all steps of `part`, a schedule over a subset of the ranks: its rank i is rank_of[i] here. Its
    // buffers are these buffers, its scratch is fresh. Dependencies inside the part are kept; those on
    // earlier steps of this builder are derived. The part's numbering of messages is kept, behind the
    // messages that each pair has exchanged so far: a message between two ranks that are both in `part` must
    // not be added by one of them as a part and by the other step by step.
    void append(const Schedule& part, std::span<const int> rank_of);

    // Ends the building. The messages of each pair are numbered in the order in which they were added.
    Schedule finish() &&;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace thalweg
