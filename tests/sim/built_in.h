// The built-in machines, ranks on their hosts, and operations of these.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "sim/machine.h"
#include "sim/mapping.h"
#include "sim/point.h"

namespace thalweg::sim {

inline SimMachine machine_of(const std::string& name) {
    SimMachine machine;
    std::string why;
    EXPECT_EQ(find_machine(name, machine, why), Status::ok) << why;
    return machine;
}

inline Topology mapped(const SimMachine& machine, std::string_view mapping, int ranks, int per_host) {
    Topology topology;
    std::string why;
    EXPECT_EQ(map_ranks(mapping, ranks, per_host, machine.hosts, 1, topology, why), Status::ok) << why;
    return topology;
}

// Of no bytes yet.
inline Point point_of(Collective collective, const std::string& algorithm) {
    Point point;
    std::string why;
    EXPECT_EQ(parse_choice(collective, algorithm, point.choice, why), Status::ok) << why;
    return point;
}

}  // namespace thalweg::sim
