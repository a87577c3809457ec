#include "bench/exchange_twin.h"

#include <algorithm>
#include <cstdint>

#include "algorithms/algorithm.h"
#include "bench/columns.h"
#include "sim/natives.h"
#include "topology/topology.h"

namespace thalweg::bench {

std::string twin_column(std::string_view mpi, int ranks) {
    if (ranks < 2) return "";
    // Debian's builds run the same rules.
    const std::string text = sim::native_choice(mpi.substr(0, mpi.find("-debian")), Collective::alltoallv, 0,
                                                Topology::single_node(ranks));
    Choice native;
    std::string why;
    if (text.empty() || parse_choice(Collective::alltoallv, text, native, why) != Status::ok) return "";
    // The column has the algorithm's standard parameters; a rank has no more on its way than there are
    // others.
    const Choice standard = standard_choice(*native.algorithm);
    const auto others = static_cast<std::uint64_t>(ranks - 1);
    for (std::size_t i = 0; i < native.algorithm->parameters.size(); ++i) {
        const auto effective = [&](std::uint64_t value) -> std::uint64_t {
            if (native.algorithm->parameters[i].name != "in_flight") return value;
            return value == 0 ? others : std::min(value, others);
        };
        if (effective(native.values[i]) != effective(standard.values[i])) return "";
    }
    return std::string(automatic_plan) + " " + std::string(native.algorithm->name);
}

}  // namespace thalweg::bench
