// Prints the schedules of every algorithm on some numbers of ranks as GOAL text. In front of each a line
// "==== " and, as JSON, what the schedules themselves say of it; goal.py reads both.
#include <iostream>
#include <map>

#include "algorithms/cases.h"
#include "schedule/text.h"

namespace thalweg {
namespace {

// Not where the choice cannot serve the problem.
void print(const Choice& choice, Collective collective, int ranks, std::uint64_t bytes,
           const Topology& topology) {
    Problem problem;
    problem.size = ranks;
    problem.root = ranks / 2;
    problem.bytes = collective == Collective::barrier ? 0 : bytes;
    if (!refuse(choice, problem, topology).empty()) return;
    const std::vector<Schedule> schedules = build_all(choice, problem, topology);
    const Verdict verdict = validate(schedules, oracle::contracts_for(collective, problem));
    std::uint64_t steps = 0, dependencies = 0, calculated = 0;
    for (const Schedule& schedule : schedules)
        for (StepId id = 0; id < schedule.steps().size(); ++id) {
            const Step& step = schedule.steps()[id];
            ++steps;
            dependencies += schedule.after(id).size();
            if (!is_message(step.kind)) calculated += step.source.bytes;
        }
    std::cout << "==== {\"of\": \"" << name_of(collective) << "/" << to_text(choice) << " p=" << ranks
              << " bytes=" << bytes << "\", \"algorithm\": \"" << name_of(collective) << "/"
              << choice.algorithm->name << "\", \"ranks\": " << ranks
              << ", \"valid\": " << (verdict.status == Status::ok ? "true" : "false")
              << ", \"steps\": " << steps << ", \"requires\": " << dependencies
              << ", \"calculated\": " << calculated << ", \"messages\": " << verdict.messages
              << ", \"signals\": " << verdict.signals << ", \"bytes\": " << verdict.bytes
              << ", \"rounds\": " << verdict.rounds << "}\n";
    print_goal(std::cout, schedules);
}

void print_all() {
    const std::map<int, Topology> hosts = {{1, topology_of("node:1 core:1")},
                                           {2, topology_of("node:2 core:1")},
                                           {5, topology_of("ranks:0,1,0,2,1")},
                                           {8, topology_of("node:4 core:2")}};
    for (const auto& [ranks, topology] : hosts)
        for (int i = 0; i < collective_count; ++i) {
            const auto collective = static_cast<Collective>(i);
            for (std::uint64_t bytes : {0u, 3u, 131u}) {
                for (const Choice& choice : flat_choices(collective))
                    print(choice, collective, ranks, bytes, topology);
                for (const Algorithm& row : algorithms())
                    if (row.collective == collective && !row.parts.empty())
                        print(standard_choice(row), collective, ranks, bytes, topology);
            }
        }
    for (const Algorithm& row : algorithms())
        std::cout << "==== {\"row\": \"" << name_of(row.collective) << "/" << row.name << "\"}\n";
}

}  // namespace
}  // namespace thalweg

int main() { thalweg::print_all(); }
