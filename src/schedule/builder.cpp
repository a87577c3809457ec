#include "schedule/builder.h"

#include <algorithm>
#include <cassert>
#include <unordered_map>
#include <utility>
#include <vector>

#include "schedule/access_history.h"

namespace thalweg {
namespace {

constexpr std::uint64_t scratch_alignment = 64;  // a cache line: two scratch slices never share one

// Messages exchanged with one peer so far, and by the part that is being appended.
struct Ordinals {
    std::uint32_t sent = 0, received = 0;
    std::uint32_t part_sent = 0, part_received = 0;
};

}  // namespace

struct Builder::Impl {
    int rank = 0, size = 1;
    std::vector<Step> steps;
    std::vector<StepId> after;
    std::vector<std::uint32_t> after_begin{0};
    std::uint64_t scratch_bytes = 0;

    AccessHistory history;
    std::vector<StepId> listed_for;  // the last step that lists this one as a dependency, plus one; 0: none
    std::unordered_map<int, Ordinals> ordinals;
    int last_peer = -1;
    Ordinals* last_ordinals = nullptr;
    std::vector<StepId> mapped;  // append(): a part's dependencies as ids of this builder

    Ordinals& with(int peer) {
        if (peer != last_peer) {
            last_ordinals = &ordinals[peer];
            last_peer = peer;
        }
        return *last_ordinals;
    }

    void depend(StepId step, StepId on) {
        if (listed_for[on] == step + 1) return;
        assert(on < step);
        listed_for[on] = step + 1;
        after.push_back(on);
    }

    StepId add(const Step& step, std::span<const StepId> explicit_order) {
        const auto id = static_cast<StepId>(steps.size());
        steps.push_back(step);
        listed_for.push_back(0);
        for (StepId on : explicit_order) depend(id, on);
        auto conflict = [&](StepId on, std::uint64_t) { depend(id, on); };
        // Nobody writes to `in`, so who has read it is of no matter; of n sends whose bytes overlap it would
        // be n² runs.
        if (step.kind != StepKind::recv && step.source.buffer != Buffer::in)
            history.read(id, step.source, conflict);
        if (step.kind != StepKind::send) history.write(id, step.target, conflict);
        after_begin.push_back(static_cast<std::uint32_t>(after.size()));
        return id;
    }
};

Builder::Builder(int rank, int size) : impl_(std::make_unique<Impl>()) {
    assert(0 <= rank && rank < size);
    impl_->rank = rank;
    impl_->size = size;
}

Builder::~Builder() = default;

StepId Builder::send(int to, Slice source, std::span<const StepId> after) {
    assert(0 <= to && to < impl_->size && to != impl_->rank);
    return impl_->add(
        {.kind = StepKind::send, .peer = to, .message = impl_->with(to).sent++, .source = source}, after);
}

StepId Builder::recv(int from, Slice target, std::span<const StepId> after) {
    assert(0 <= from && from < impl_->size && from != impl_->rank);
    return impl_->add(
        {.kind = StepKind::recv, .peer = from, .message = impl_->with(from).received++, .target = target},
        after);
}

StepId Builder::send_piece(int to, Slice source, const Piece& piece, std::span<const StepId> after) {
    assert(0 <= to && to < impl_->size && to != impl_->rank && source.bytes <= piece.full_bytes);
    std::uint32_t& count = impl_->with(to).sent;
    count = std::max(count, piece.message + 1);
    return impl_->add({.kind = StepKind::send,
                       .peer = to,
                       .message = piece.message,
                       .may_follow = piece.may_follow,
                       .source = source,
                       .full_bytes = piece.full_bytes},
                      after);
}

StepId Builder::recv_piece(int from, Slice target, const Piece& piece, std::span<const StepId> after) {
    assert(0 <= from && from < impl_->size && from != impl_->rank && target.bytes <= piece.full_bytes);
    std::uint32_t& count = impl_->with(from).received;
    count = std::max(count, piece.message + 1);
    return impl_->add({.kind = StepKind::recv,
                       .peer = from,
                       .message = piece.message,
                       .may_follow = piece.may_follow,
                       .target = target,
                       .full_bytes = piece.full_bytes},
                      after);
}

StepId Builder::put(int to, Slice source, std::span<const StepId> after) {
    assert(0 <= to && to < impl_->size && to != impl_->rank);
    return impl_->add({.kind = StepKind::send,
                       .direct = true,
                       .peer = to,
                       .message = impl_->with(to).sent++,
                       .source = source},
                      after);
}

StepId Builder::arrival(int from, Slice target, std::span<const StepId> after) {
    assert(0 <= from && from < impl_->size && from != impl_->rank);
    return impl_->add({.kind = StepKind::recv,
                       .direct = true,
                       .peer = from,
                       .message = impl_->with(from).received++,
                       .target = target},
                      after);
}

StepId Builder::copy(Slice target, Slice source, std::span<const StepId> after) {
    assert(target.bytes == source.bytes);
    return impl_->add({.kind = StepKind::copy, .source = source, .target = target}, after);
}

StepId Builder::reduce(Slice target, Slice source, Side source_side, std::span<const StepId> after) {
    assert(target.bytes == source.bytes);
    return impl_->add(
        {.kind = StepKind::reduce, .source_side = source_side, .source = source, .target = target}, after);
}

Slice Builder::scratch(std::uint64_t bytes) {
    Impl& all = *impl_;
    const std::uint64_t offset = (all.scratch_bytes + scratch_alignment - 1) & ~(scratch_alignment - 1);
    all.scratch_bytes = offset + bytes;
    return {Buffer::scratch, offset, bytes};
}

void Builder::append(const Schedule& part, std::span<const int> rank_of) {
    Impl& all = *impl_;
    assert(static_cast<std::size_t>(part.size()) == rank_of.size() && rank_of[part.rank()] == all.rank);
    const std::uint64_t scratch_base = part.scratch_bytes() ? scratch(part.scratch_bytes()).offset : 0;
    const auto first = static_cast<StepId>(all.steps.size());
    for (StepId id = 0; id < part.steps().size(); ++id) {
        Step step = part.steps()[id];
        if (is_message(step.kind)) {
            step.peer = rank_of[step.peer];
            Ordinals& pair = all.with(step.peer);
            const bool send = step.kind == StepKind::send;
            std::uint32_t& count = send ? pair.part_sent : pair.part_received;
            count = std::max(count, step.message + 1);
            step.message += send ? pair.sent : pair.received;
        }
        if (step.source.buffer == Buffer::scratch) step.source.offset += scratch_base;
        if (step.target.buffer == Buffer::scratch) step.target.offset += scratch_base;
        all.mapped.clear();
        for (StepId on : part.after(id)) all.mapped.push_back(first + on);
        all.add(step, all.mapped);
    }
    for (const Step& step : part.steps()) {
        if (!is_message(step.kind)) continue;
        Ordinals& pair = all.with(rank_of[step.peer]);
        pair.sent += std::exchange(pair.part_sent, 0);
        pair.received += std::exchange(pair.part_received, 0);
    }
}

Schedule Builder::finish() && {
    Impl& all = *impl_;
    return Schedule(all.rank, all.size, std::move(all.steps), std::move(all.after),
                    std::move(all.after_begin), all.scratch_bytes);
}

}  // namespace thalweg
