// A machine of round numbers, small schedules, and their replay in a process of its own.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "schedule/builder.h"
#include "sim/point.h"
#include "sim/replay.h"

namespace thalweg::sim {

inline constexpr std::uint64_t mega = 1'000'000;

// 1 GB/s links, 10 us between hosts, 1 us inside, copies of 1 TB/s; messages above a megabyte ask first.
// Posting and completing are free unless a test says otherwise.
inline SimMachine round_machine() {
    SimMachine machine;
    machine.name = "round";
    machine.hosts = 64;
    machine.cores_per_host = 8;
    machine.link_rate = 1e9;
    machine.inter_latency = 10e-6;
    machine.inter_eager = mega;
    machine.intra_latency = 1e-6;
    machine.intra_eager = 100;
    machine.copy_rate = 1e12;
    machine.host_copy_rate = 1e12;
    machine.reduce_rate = 5e9;
    return machine;
}

inline Outcome replayed(const std::vector<Schedule>& schedules, const std::string& hosts,
                        const SimMachine& machine = round_machine(), const ReplayOptions& options = {}) {
    Topology topology;
    std::string why;
    EXPECT_EQ(Topology::from_text(hosts, topology, why), Status::ok) << why;
    return in_child(60, std::uint64_t{4} << 30,
                    [&] {
                        PointResult result;
                        result.outcome = replay(schedules, topology, machine, options);
                        return result;
                    })
        .outcome;
}

// Every rank's part, written as calls on its builder.
inline std::vector<Schedule> group(int size, const std::function<void(int, Builder&)>& part) {
    std::vector<Schedule> schedules;
    for (int rank = 0; rank < size; ++rank) {
        Builder builder(rank, size);
        part(rank, builder);
        schedules.push_back(std::move(builder).finish());
    }
    return schedules;
}

inline Slice out(std::uint64_t offset, std::uint64_t bytes) { return {Buffer::out, offset, bytes}; }

// `count` messages of `bytes` from rank 0 to rank 1.
inline std::vector<Schedule> stream(int count, std::uint64_t bytes) {
    return group(2, [=](int rank, Builder& builder) {
        for (int i = 0; i < count; ++i) {
            const Slice slice = out(static_cast<std::uint64_t>(i) * bytes, bytes);
            if (rank == 0)
                builder.send(1, slice);
            else
                builder.recv(0, slice);
        }
    });
}

}  // namespace thalweg::sim
