#include "topology/machine/ranks.h"

#include <algorithm>
#include <utility>

namespace thalweg {
namespace {

// Two numbers of a part that a rank has so far: the same, or in several.
struct Common {
    int number = -1;
    bool first = true;

    void add(int other) {
        number = first || number == other ? other : -1;
        first = false;
    }
};

// False: it may use nothing.
bool find_place(const LocalMachine& machine, RankPlace& place) {
    Common package, numa, core, thread;
    for (const HardwareThread& it : machine.threads) {
        if (!it.usable) continue;
        package.add(it.package);
        numa.add(it.numa);
        core.add(it.core);
        thread.add(it.os_index);
    }
    place = {package.number, numa.number, core.number, thread.number};
    return !thread.first;
}

// Whatever either may use of it.
bool same_machine(const LocalMachine& a, const LocalMachine& b) {
    return std::equal(a.threads.begin(), a.threads.end(), b.threads.begin(), b.threads.end(),
                      [](HardwareThread left, HardwareThread right) {
                          left.usable = right.usable;
                          return left == right;
                      });
}

}  // namespace

Status topology_of(std::span<const RankMachine> ranks, Topology& topology, std::vector<RankPlace>& places,
                   std::string& why) {
    std::vector<std::uint64_t> keys;
    for (const RankMachine& rank : ranks) keys.push_back(rank.host_key);
    Topology made = Topology::from_table(keys);
    std::vector<RankPlace> found(ranks.size());
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
        const LocalMachine& machine = *ranks[rank].machine;
        const int first = made.ranks_on(made.node_of(static_cast<int>(rank))).front();
        if (!same_machine(machine, *ranks[static_cast<std::size_t>(first)].machine)) {
            why = "ranks " + std::to_string(first) + " and " + std::to_string(rank) +
                  " are on one host and describe different machines";
            return Status::invalid_argument;
        }
        if (!find_place(machine, found[rank])) {
            why = "rank " + std::to_string(rank) + " may use no hardware thread of its machine";
            return Status::invalid_argument;
        }
    }
    topology = std::move(made);
    places = std::move(found);
    return Status::ok;
}

}  // namespace thalweg
