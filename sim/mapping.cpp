#include "sim/mapping.h"

#include <algorithm>
#include <vector>

#include "base/mixing.h"

namespace thalweg::sim {
namespace {

std::uint64_t next(std::uint64_t& state) { return mixed(state += golden_step); }

}  // namespace

Status map_ranks(std::string_view mapping, int ranks, int per_host, int most_hosts, std::uint64_t seed,
                 Topology& topology, std::string& why) {
    if (ranks < 1 || per_host < 1) {
        why = "there must be at least one rank, and one rank per host";
        return Status::invalid_argument;
    }
    std::vector<std::uint64_t> host(static_cast<std::size_t>(ranks));
    const auto places = static_cast<std::uint64_t>(per_host);
    std::uint64_t hosts = (host.size() + places - 1) / places;
    if (mapping == "block" || mapping == "permuted") {
        for (std::size_t r = 0; r < host.size(); ++r) host[r] = r / places;
        if (mapping == "permuted")
            for (std::size_t r = host.size(); r > 1; --r) std::swap(host[r - 1], host[next(seed) % r]);
    } else if (mapping == "cyclic") {
        for (std::size_t r = 0; r < host.size(); ++r) host[r] = r % hosts;
    } else if (mapping == "ragged") {
        const std::uint64_t sizes[] = {places, std::max<std::uint64_t>(places / 2, 1),
                                       std::max<std::uint64_t>(places * 3 / 4, 1)};
        hosts = 0;
        for (std::size_t r = 0; r < host.size(); ++hosts)
            for (std::uint64_t i = 0; i < sizes[hosts % 3] && r < host.size(); ++i) host[r++] = hosts;
    } else {
        why = "there is no mapping " + std::string(mapping) + "; known: block, cyclic, permuted, ragged";
        return Status::invalid_argument;
    }
    if (hosts > static_cast<std::uint64_t>(most_hosts)) {
        why = std::to_string(ranks) + " ranks need " + std::to_string(hosts) + " hosts of " +
              std::to_string(per_host) + "; the machine has " + std::to_string(most_hosts) +
              ": ask for fewer ranks, for more per host or for another machine";
        return Status::invalid_argument;
    }
    topology = Topology::from_table(host);
    return Status::ok;
}

}  // namespace thalweg::sim
