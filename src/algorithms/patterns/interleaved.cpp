#include "algorithms/patterns/interleaved.h"

namespace thalweg::patterns {

Interleaved::Interleaved(Builder& builder, const Schedule& part, std::span<const int> rank_of, Base in,
                         Base out)
    : builder_(builder), part_(part), rank_of_(rank_of), base_{in, out, {Buffer::scratch, 0}} {
    if (part.scratch_bytes() != 0) base_[2].offset = builder.scratch(part.scratch_bytes()).offset;
    id_.reserve(part.steps().size());
}

Slice Interleaved::moved(Slice slice) const {
    const Base& base = base_[static_cast<std::size_t>(slice.buffer)];
    return {base.buffer, base.offset + slice.offset, slice.bytes};
}

void Interleaved::until(std::size_t end) {
    std::vector<StepId> after;
    while (id_.size() < end) {
        const auto at = static_cast<StepId>(id_.size());
        const Step& step = part_.steps()[at];
        after.clear();
        for (StepId on : part_.after(at)) after.push_back(id_[on]);
        switch (step.kind) {
            case StepKind::send:
                id_.push_back(
                    builder_.send(rank_of_[static_cast<std::size_t>(step.peer)], moved(step.source), after));
                break;
            case StepKind::recv:
                id_.push_back(
                    builder_.recv(rank_of_[static_cast<std::size_t>(step.peer)], moved(step.target), after));
                break;
            case StepKind::copy:
                id_.push_back(builder_.copy(moved(step.target), moved(step.source), after));
                break;
            case StepKind::reduce:
                id_.push_back(
                    builder_.reduce(moved(step.target), moved(step.source), step.source_side, after));
                break;
        }
    }
}

}  // namespace thalweg::patterns
