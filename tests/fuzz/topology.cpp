// Topologies as text: what parses is consistent in itself and is written in a form that parses to the same.
#include "topology/topology.h"

#include <algorithm>

#include "fuzz/fuzz.h"

using namespace thalweg;

namespace {

// Numbers of four digits may ask for millions of ranks; host keys may be of any size.
bool is_large(std::string_view text) {
    if (text.find("ranks") != text.npos) return false;
    int digits = 0;
    for (char c : text) {
        digits = c >= '0' && c <= '9' ? digits + 1 : 0;
        if (digits > 3) return true;
    }
    return false;
}

void is_consistent(const Topology& topology) {
    int ranks = 0, most = 0, first_before = -1;
    for (int node = 0; node < topology.nodes(); ++node) {
        const auto on = topology.ranks_on(node);
        if (on.empty()) fuzz::fail("a host without ranks");
        if (on[0] <= first_before) fuzz::fail("hosts are not numbered by their lowest rank");
        first_before = on[0];
        for (int local = 0; local < static_cast<int>(on.size()); ++local) {
            const int rank = on[static_cast<std::size_t>(local)];
            if (rank < 0 || rank >= topology.size()) fuzz::fail("there is no rank " + std::to_string(rank));
            if (topology.node_of(rank) != node || topology.local_rank(rank) != local)
                fuzz::fail("rank " + std::to_string(rank) + " is elsewhere");
        }
        ranks += static_cast<int>(on.size());
        most = std::max(most, static_cast<int>(on.size()));
    }
    if (ranks != topology.size()) fuzz::fail("ranks are missing");
    if (most != topology.max_ranks_per_node()) fuzz::fail("wrong maximum of ranks");
}

}  // namespace

std::vector<std::string> fuzz::seeds() {
    return {"node:4 core:2",
            "node:4 core:2 map:cyclic",
            "node:3 core:1,2,4",
            "ranks:0,1,0,2",
            "node:16",
            "node:3 core:3,1,2 map:cyclic",
            "ranks:18446744073709551615,7,7,0",
            "node:1 core:130",
            "map:block node:7",
            "ranks:5",
            "node:128 core:128 map:cyclic"};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string text(reinterpret_cast<const char*>(data), size);
    if (is_large(text)) return 0;
    const Topology before = Topology::single_node(3);
    Topology topology = before, again;
    std::string why;
    if (Topology::from_text(text, topology, why) != Status::ok) {
        if (why.empty()) fuzz::fail("refused without a word");
        if (topology.digest() != before.digest()) fuzz::fail("refused, but changed");
        return 0;
    }
    is_consistent(topology);
    const std::string written = topology.to_text();
    if (Topology::from_text(written, again, why) != Status::ok) fuzz::fail("does not read back: " + why);
    if (again.to_text() != written || again.digest() != topology.digest())
        fuzz::fail(written + " reads back as " + again.to_text());
    return 0;
}
