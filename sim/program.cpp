#include "sim/program.h"

#include "sim/replay.h"

namespace thalweg::sim {

Outcome replay(std::span<const Schedule> schedules, const Topology& topology, const SimMachine& machine,
               const ReplayOptions& options) {
    std::vector<Program> programs;
    programs.reserve(schedules.size());
    for (const Schedule& schedule : schedules) {
        const auto steps = static_cast<StepId>(schedule.steps().size());
        programs.push_back({{ActKind::start, 0, steps, 0},
                            {ActKind::compute, 0, 0, options.compute_seconds},
                            {ActKind::wait, 0, steps, 0}});
    }
    return replay(schedules, programs, topology, machine, options);
}

}  // namespace thalweg::sim
