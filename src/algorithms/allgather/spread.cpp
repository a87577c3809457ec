// Every rank sends its block to every other rank, k at a time.
//
//     size 4, k = 1:  v →v→ v+1   then   v →v→ v+2   then   v →v→ v+3
//
// Rounds: ⌈(p-1)/k⌉, one with k = 0. Bytes: (p-1) m. In step i everybody receives from another rank: no two
// send to one at a time as long as they keep step.
#include "algorithms/patterns/contributions.h"
#include "algorithms/patterns/group.h"

namespace thalweg::allgather::spread {

enum : std::size_t { ports };

namespace {

std::uint64_t at_a_time(const Problem& problem, const Choice& choice) {
    return patterns::at_a_time(choice.values[ports], static_cast<std::uint64_t>(problem.size - 1));
}

}  // namespace

std::string_view refuse(const Problem&, const Topology&, const Choice&) { return {}; }

Schedule build(const Problem& problem, const Topology&, const Choice& choice) {
    Builder builder(problem.rank, problem.size);
    const patterns::Contributions blocks(problem);
    const int p = problem.size, v = problem.rank;
    const std::uint64_t window = at_a_time(problem, choice);
    blocks.add_own(builder);
    std::vector<StepId> sends;
    for (int i = 1; i < p; ++i) {
        const int from = (v - i + p) % p;
        if (blocks.bytes(v) != 0) {
            const bool waits = sends.size() >= window;
            const std::span<const StepId> order(waits ? &sends[sends.size() - window] : nullptr,
                                                waits ? 1 : 0);
            sends.push_back(builder.send((v + i) % p, blocks.own(), order));
        }
        if (blocks.bytes(from) != 0) builder.recv(from, blocks.place(from));
    }
    return std::move(builder).finish();
}

Claim claim(const Problem& problem, const Topology&, const Choice& choice) {
    const patterns::Contributions blocks(problem);
    if (problem.size == 1 || blocks.total() == 0) return {};
    const auto others = static_cast<std::uint64_t>(problem.size - 1);
    return {patterns::ceil_div(others, at_a_time(problem, choice)),
            static_cast<std::uint64_t>(blocks.not_empty()) * others, patterns::all_bytes(blocks)};
}

Price price(const Problem& problem, const Topology&, const Choice& choice) {
    if (problem.size == 1 || problem.bytes == 0) return {};
    const auto others = static_cast<std::uint64_t>(problem.size - 1);
    Price price{0, others * (problem.bytes + patterns::skew_bytes(problem)), problem.bytes, others};
    price.ports = at_a_time(problem, choice);
    price.rounds = patterns::ceil_div(others, price.ports);
    price.messages = others;
    return price;
}

}  // namespace thalweg::allgather::spread
