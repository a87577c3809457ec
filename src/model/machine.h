// What the cost model knows of a machine: latency and rate per level. Whole numbers only, so that every rank
// of a communicator computes the same cost whatever its processor.
#pragma once

#include <cstdint>

namespace thalweg {

// Durations of the model are picoseconds: a byte at 400 Gbit/s takes 20.
using Picoseconds = std::uint64_t;

// One level of a machine: the network between hosts, or the memory inside one.
struct Level {
    Picoseconds latency = 0;             // what a message costs besides its bytes
    std::uint64_t bytes_per_second = 0;  // of one port in one direction
    std::uint64_t ports = 1;             // that carry messages at the same time: rails of a host

    bool operator==(const Level&) const = default;

    // Time of `bytes` on an idle port, rounded up; saturates instead of wrapping.
    Picoseconds transfer(std::uint64_t bytes) const;
};

struct Machine {
    Level inter{2'000'000, 12'000'000'000};  // 2 µs, 12 GB/s: a 100 Gbit/s fabric
    Level intra{500'000, 6'000'000'000};     // 0.5 µs, 6 GB/s: one copy through shared memory
    // What all ranks of a host together copy: a core's rate times its ranks is more than the memory of a full
    // host carries. 0: no limit.
    std::uint64_t host_bytes_per_second = 80'000'000'000;    // eight channels of memory, three times a byte
    std::uint64_t reduced_bytes_per_second = 4'000'000'000;  // combined by one core: two reads and a write

    bool operator==(const Machine&) const = default;

    // The default machine with the options THALWEG_LATENCY_US and THALWEG_RATE (bytes per second) applied to
    // the level between hosts; 0 keeps the default. A latency is rounded to the picosecond, a rate to the
    // byte.
    static Machine from_options(double latency_us, double bytes_per_second);

    // Time in which a host's memory carries copies of `bytes` in all, however many ranks make them.
    Picoseconds copies(std::uint64_t bytes) const { return Level{0, host_bytes_per_second}.transfer(bytes); }

    // Time in which a core combines `bytes` with as many others.
    Picoseconds reduction(std::uint64_t bytes) const {
        return Level{0, reduced_bytes_per_second}.transfer(bytes);
    }
};

}  // namespace thalweg
