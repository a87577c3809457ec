// The steps of all ranks as one graph. Private to the validator, which fills it in from part to part.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "schedule/schedule.h"

namespace thalweg {

// All steps of all ranks are numbered through: rank by rank, in the order of their ids.
using Node = std::uint32_t;
inline constexpr Node no_node = ~Node{0};

inline const char* buffer_name(Buffer buffer) {
    constexpr const char* names[] = {"in", "out", "scratch"};
    return names[static_cast<int>(buffer)];
}

struct GroupSteps {
    std::span<const Schedule> schedules;
    std::vector<Node> first;  // node of each rank's step 0
    Node total = 0;
    std::vector<Node> other_end;  // of a send or receive; no_node for other steps
    std::vector<Node> order;      // events, each after those that it waits for; a message is its send's node

    const Step& step(std::size_t rank, StepId id) const { return schedules[rank].steps()[id]; }
    Node node(std::size_t rank, StepId id) const { return first[rank] + id; }

    // The rank and the id of a node.
    std::pair<std::size_t, StepId> place(Node node) const {
        const auto after = std::upper_bound(first.begin(), first.end(), node);
        const auto rank = static_cast<std::size_t>(after - first.begin()) - 1;
        return {rank, node - first[rank]};
    }

    std::string name(std::size_t rank, StepId id) const {
        constexpr const char* kinds[] = {"send to ", "recv from ", "copy", "reduce"};
        const Step& it = step(rank, id);
        std::string text = "rank " + std::to_string(rank) + " step " + std::to_string(id) + " (" +
                           kinds[static_cast<int>(it.kind)];
        if (is_message(it.kind)) text += std::to_string(it.peer) + ", message " + std::to_string(it.message);
        return text + ")";
    }
    std::string name(Node node) const {
        const auto [rank, id] = place(node);
        return name(rank, id);
    }
};

}  // namespace thalweg
