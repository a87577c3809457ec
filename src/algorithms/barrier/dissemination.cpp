// In round i every rank tells the one (k+1)^i after it, and so on, that all before it have come.
//
//     size 5, k = 1:  round 1:  v → v+1      round 2:  v → v+2      round 3:  v → v+4
//
// After round i a rank has heard, through others, of the (k+1)^i ranks before it. Rounds: ⌈log_(k+1) p⌉ for
// any p, with k messages of no bytes each. D. Hensgen, R. Finkel, U. Manber: Two Algorithms for Barrier
// Synchronization, 1988; with k = 2 the n-way form of T. Hoefler et al., 2006.
#include "algorithms/patterns/digits.h"
#include "schedule/builder.h"

namespace thalweg::barrier::dissemination {

enum : std::size_t { ports };

std::string_view refuse(const Problem&, const Topology&, const Choice&) { return {}; }

Schedule build(const Problem& problem, const Topology&, const Choice& choice) {
    Builder builder(problem.rank, problem.size);
    const int p = problem.size, v = problem.rank;
    std::vector<StepId> heard, hearing;  // of earlier rounds, of this one
    int round_width = 1;
    patterns::each_digit(choice.values[ports], p, [&](int width, int i) {
        if (width != round_width) {
            heard.insert(heard.end(), hearing.begin(), hearing.end());
            hearing.clear();
            round_width = width;
        }
        builder.send((v + i * width) % p, {}, heard);
        hearing.push_back(builder.recv((v - i * width + p) % p, {}));
    });
    return std::move(builder).finish();
}

Claim claim(const Problem& problem, const Topology&, const Choice& choice) {
    Claim claim;
    claim.rounds = patterns::ceil_log(choice.values[ports] + 1, static_cast<std::uint64_t>(problem.size));
    patterns::each_digit(choice.values[ports], problem.size,
                         [&](int, int) { claim.signals += static_cast<std::uint64_t>(problem.size); });
    return claim;
}

Price price(const Problem& problem, const Topology&, const Choice& choice) {
    Price price;
    const auto p = static_cast<std::uint64_t>(problem.size);
    price.rounds = patterns::ceil_log(choice.values[ports] + 1, p);
    price.ports = p > 1 ? std::min(choice.values[ports], p - 1) : 1;
    return price;
}

}  // namespace thalweg::barrier::dissemination
