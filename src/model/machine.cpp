#include "model/machine.h"

#include <cmath>
#include <limits>

#include "base/float_modes.h"

namespace thalweg {

Picoseconds Level::transfer(std::uint64_t bytes) const {
    constexpr Picoseconds most = std::numeric_limits<Picoseconds>::max() / 4;  // sums of a few stay in range
    if (bytes == 0 || bytes_per_second == 0) return 0;
    constexpr std::uint64_t per_second = 1'000'000'000'000;
    const unsigned __int128 work = static_cast<unsigned __int128>(bytes) * per_second;
    const unsigned __int128 time = (work + bytes_per_second - 1) / bytes_per_second;
    return time > most ? most : static_cast<Picoseconds>(time);
}

Machine Machine::from_options(double latency_us, double bytes_per_second) {
    return in_standard_modes([&] {
        Machine machine;
        if (latency_us > 0) machine.inter.latency = static_cast<Picoseconds>(std::llround(latency_us * 1e6));
        if (bytes_per_second >= 1)
            machine.inter.bytes_per_second = static_cast<std::uint64_t>(bytes_per_second);
        return machine;
    });
}

}  // namespace thalweg
