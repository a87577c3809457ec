#include "schedule/text.h"

#include <algorithm>
#include <vector>

namespace thalweg {
namespace {

const char* name_of(Buffer buffer) {
    constexpr const char* names[] = {"in", "out", "scratch"};
    return names[static_cast<int>(buffer)];
}

// "out[0,64)"
void print(std::ostream& to, const Slice& slice) {
    to << name_of(slice.buffer) << '[' << slice.offset << ',' << slice.end() << ')';
}

void print_label(std::ostream& to, const Step& step) {
    switch (step.kind) {
        case StepKind::send:
            to << (step.direct ? "put " : "send ");
            print(to, step.source);
            to << " to " << step.peer;
            break;
        case StepKind::recv:
            to << "recv ";
            print(to, step.target);
            to << " from " << step.peer;
            break;
        case StepKind::copy:
            to << "copy ";
            print(to, step.source);
            to << " to ";
            print(to, step.target);
            break;
        case StepKind::reduce:
            print(to, step.target);
            to << " = ";
            print(to, step.source_side == Side::left ? step.source : step.target);
            to << " op ";
            print(to, step.source_side == Side::left ? step.target : step.source);
            break;
    }
}

// The receives of one rank, found by sender and number.
class Receives {
  public:
    explicit Receives(const Schedule& schedule) : steps_(schedule.steps()) {
        for (StepId id = 0; id < steps_.size(); ++id)
            if (steps_[id].kind == StepKind::recv) ids_.push_back(id);
        std::sort(ids_.begin(), ids_.end(),
                  [&](StepId a, StepId b) { return before(a, steps_[b].peer, steps_[b].message); });
    }

    bool find(int from, std::uint32_t message, StepId& found) const {
        const auto at = std::partition_point(ids_.begin(), ids_.end(),
                                             [&](StepId id) { return before(id, from, message); });
        if (at == ids_.end() || steps_[*at].peer != from || steps_[*at].message != message) return false;
        found = *at;
        return true;
    }

  private:
    bool before(StepId id, int peer, std::uint32_t message) const {
        return steps_[id].peer != peer ? steps_[id].peer < peer : steps_[id].message < message;
    }

    std::span<const Step> steps_;
    std::vector<StepId> ids_;
};

}  // namespace

void print_goal(std::ostream& to, std::span<const Schedule> schedules) {
    to << "num_ranks " << schedules.size() << "\n";
    for (const Schedule& schedule : schedules) {
        to << "\nrank " << schedule.rank() << " {\n";
        for (StepId id = 0; id < schedule.steps().size(); ++id) {
            const Step& step = schedule.steps()[id];
            to << "l" << id + 1 << ": ";
            if (step.kind == StepKind::send)
                to << "send " << step.source.bytes << "b to " << step.peer << " tag " << step.message;
            else if (step.kind == StepKind::recv)
                to << "recv " << step.target.bytes << "b from " << step.peer << " tag " << step.message;
            else
                to << "calc " << step.source.bytes;
            to << "\n";
        }
        for (StepId id = 0; id < schedule.steps().size(); ++id)
            for (StepId on : schedule.after(id)) to << "l" << id + 1 << " requires l" << on + 1 << "\n";
        to << "}\n";
    }
}

void print_graphviz(std::ostream& to, std::span<const Schedule> schedules) {
    to << "digraph schedule {\n  rankdir=LR;\n  node [shape=box];\n";
    for (const Schedule& schedule : schedules) {
        const int rank = schedule.rank();
        to << "  subgraph cluster_" << rank << " {\n    label=\"rank " << rank << "\";\n";
        for (StepId id = 0; id < schedule.steps().size(); ++id) {
            to << "    r" << rank << "s" << id << " [label=\"";
            print_label(to, schedule.steps()[id]);
            to << "\"];\n";
        }
        for (StepId id = 0; id < schedule.steps().size(); ++id)
            for (StepId on : schedule.after(id))
                to << "    r" << rank << "s" << on << " -> r" << rank << "s" << id << ";\n";
        to << "  }\n";
    }
    std::vector<Receives> receives;
    for (const Schedule& schedule : schedules) receives.emplace_back(schedule);
    for (const Schedule& schedule : schedules)
        for (StepId id = 0; id < schedule.steps().size(); ++id) {
            const Step& step = schedule.steps()[id];
            StepId other = 0;
            if (step.kind != StepKind::send || static_cast<std::size_t>(step.peer) >= receives.size())
                continue;
            if (!receives[static_cast<std::size_t>(step.peer)].find(schedule.rank(), step.message, other))
                continue;
            to << "  r" << schedule.rank() << "s" << id << " -> r" << step.peer << "s" << other
               << " [style=dashed];\n";
        }
    to << "}\n";
}

}  // namespace thalweg
