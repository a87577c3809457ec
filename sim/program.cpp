#include "sim/program.h"

#include <cstddef>

#include "sim/replay.h"

namespace thalweg::sim {

Outcome replay(std::span<const Schedule> schedules, const Topology& topology, const SimMachine& machine,
               const ReplayOptions& options) {
    std::vector<Program> programs;
    programs.reserve(schedules.size());
    for (std::size_t rank = 0; rank < schedules.size(); ++rank) {
        const auto steps = static_cast<StepId>(schedules[rank].steps().size());
        const double seconds =
            options.compute_by_rank.empty() ? options.compute_seconds : options.compute_by_rank[rank];
        programs.push_back(
            {{ActKind::start, 0, steps, 0}, {ActKind::compute, 0, 0, seconds}, {ActKind::wait, 0, steps, 0}});
    }
    return replay(schedules, programs, topology, machine, options);
}

}  // namespace thalweg::sim
