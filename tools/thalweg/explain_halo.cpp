// thalweg explain halo --grid 4x4x2 --cells 256 --ranks-per-host 8: which bytes of a halo exchange stay
// inside hosts, what takes longest, and by which protocol each message inside a host would be copied. Runs
// nothing and needs no MPI.
#include "explain_halo.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "algorithms/option_check.h"
#include "base/text.h"
#include "bench/halo.h"
#include "bench/table.h"
#include "common/number_within.h"
#include "model/halo.h"
#include "model/machine.h"
#include "transport/shm/choice.h"
#include "verb.h"

namespace thalweg::tool {
namespace {

constexpr double seconds_per_picosecond = 1e-12, ns_per_s = 1e9;

// A message that stays inside the host, and how its receiver would have it copied.
struct Inside {
    int from = 0;
    std::uint64_t bytes = 0;
    bool strided = false;
    std::string protocol, because;
    std::uint64_t receivers_share = 0;  // of the bytes, that the receiver copies
};

std::uint64_t inside_bytes(const std::vector<HaloMessage>& messages, const std::vector<int>& host_of,
                           int rank) {
    std::uint64_t all = 0;
    for (const HaloMessage& message : messages)
        if (host_of[static_cast<std::size_t>(message.peer)] == host_of[static_cast<std::size_t>(rank)] &&
            message.peer != rank)
            all += message.bytes;
    return all;
}

// As if each protocol had been measured: what a rank copies, and in proportion what the others begin with.
shm::CopyRates rates_of(double copied_bytes_per_s) {
    constexpr std::size_t sample_bytes = 1 << 20;
    const shm::CopyRates before;
    shm::CopyRates rates;
    for (const shm::Protocol* protocol : shm::protocols) {
        const double share = before.bytes_per_s(*protocol, 0) / before.bytes_per_s(shm::cma_get, 0);
        // Through a ring: into it, and as long out of it.
        const double parts = protocol == &shm::eager ? 2 : 1;
        const double taken_s = sample_bytes / (share * copied_bytes_per_s) / parts;
        rates.measured(*protocol, shm::size_class_of(sample_bytes), sample_bytes, taken_s, taken_s);
    }
    return rates;
}

// What production's chooser says to the messages of this rank, one after the other. All ranks are as far as
// this one: a peer still has to copy the same part of its own.
std::vector<Inside> inside_of(const HaloGrid& grid, int rank, const std::vector<int>& host_of, double wire_s,
                              const shm::CopyRates& rates) {
    std::vector<Inside> all;
    shm::Chooser chooser(false);
    const shm::Reach reach{.reads = true, .writes = true, .mapped = false};
    const HaloPart part = halo_part(grid, rank);
    const std::uint64_t total = inside_bytes(part.incoming, host_of, rank);
    const auto wire_ns = static_cast<std::uint64_t>(wire_s * ns_per_s);
    std::uint64_t queued = 0;
    for (const HaloMessage& message : part.incoming) {
        if (host_of[static_cast<std::size_t>(message.peer)] != host_of[static_cast<std::size_t>(rank)])
            continue;
        Inside row{message.peer, message.bytes, message.strided, "", "", 0};
        if (message.peer == rank) {
            row.protocol = "own copy";
            row.because = "sender and receiver are one rank";
            row.receivers_share = message.bytes;
        } else {
            const double done = static_cast<double>(queued) / static_cast<double>(total);
            const std::uint64_t others =
                inside_bytes(halo_part(grid, message.peer).incoming, host_of, message.peer);
            const shm::Load sender{static_cast<std::uint64_t>(done * static_cast<double>(others)), wire_ns};
            const auto decision =
                chooser.choose(message.bytes, reach, {queued, wire_ns}, sender, rates, nullptr);
            row.protocol = decision.protocol->name;
            row.because = shm::describe(chooser.account(shm::Chooser::class_of(message.bytes)).because);
            row.receivers_share = decision.receivers_share;
            queued += message.bytes;
        }
        all.push_back(std::move(row));
    }
    return all;
}

// The rank with the most bytes inside its host, the lowest of them.
int busiest_inside(const HaloGrid& grid, const std::vector<int>& host_of) {
    int busiest = 0;
    std::uint64_t most = 0;
    for (int rank = 0; rank < grid.size(); ++rank)
        if (const auto bytes = inside_bytes(halo_part(grid, rank).incoming, host_of, rank); bytes > most)
            busiest = rank, most = bytes;
    return busiest;
}

// Messages of one exchange between different hosts, and ordered pairs of hosts that have some.
struct BetweenHosts {
    std::uint64_t messages = 0, pairs = 0;
};
BetweenHosts between_hosts(const HaloGrid& grid, const std::vector<int>& host_of) {
    BetweenHosts all;
    std::set<std::pair<int, int>> pairs;
    for (int rank = 0; rank < grid.size(); ++rank)
        for (const HaloMessage& message : halo_part(grid, rank).outgoing) {
            const std::pair hosts(host_of[static_cast<std::size_t>(rank)],
                                  host_of[static_cast<std::size_t>(message.peer)]);
            if (hosts.first == hosts.second) continue;
            ++all.messages;
            pairs.insert(hosts);
        }
    all.pairs = pairs.size();
    return all;
}

// What a rank sends to other hosts.
struct Leaving {
    int rank = 0;
    std::uint64_t messages = 0, strided = 0;
};
Leaving leaving(const HaloGrid& grid, const std::vector<int>& host_of, int rank) {
    Leaving found{rank};
    for (const HaloMessage& message : halo_part(grid, rank).outgoing)
        if (host_of[static_cast<std::size_t>(message.peer)] != host_of[static_cast<std::size_t>(rank)])
            ++found.messages, found.strided += message.strided;
    return found;
}

// Of `rank`, or where that sends nothing there of the lowest that does.
Leaving some_leaving(const HaloGrid& grid, const std::vector<int>& host_of, int rank) {
    Leaving found = leaving(grid, host_of, rank);
    for (int other = 0; found.messages == 0 && other < grid.size(); ++other)
        found = leaving(grid, host_of, other);
    return found;
}

std::string range_text(std::uint64_t least, std::uint64_t most) {
    return least == most ? bench::bytes_text(most)
                         : bench::bytes_text(least) + " to " + bench::bytes_text(most);
}

}  // namespace

int explain_halo(int argc, char** argv) {
    CLI::App app{
        "thalweg explain halo --grid 4x4x2 --cells 256 --ranks-per-host 8 [OPTIONS]\n"
        "Which bytes of a halo exchange stay inside hosts, what takes longest, and the protocols.",
        "explain"};
    bench::HaloRequest request;
    std::string name = "explain halo", rate, latency, copy_rate = "6GB/s";
    int ranks_per_host = 1, cores = 0;
    double wire_cpu_ns = 0;
    bool json = false;
    app.add_option("--grid", request.grid, "of ranks, like 4x4x2, in blocks of a host each")->required();
    app.add_option("--cells", request.cells, "of a rank, 8 bytes each: 64 (in every dimension) or 128x128x16")
        ->required()
        ->expected(1);
    app.add_option("--ranks-per-host", ranks_per_host, "ranks that share a host")
        ->check(CLI::Range(1, 100000))
        ->required();
    app.add_option("--points", request.points,
                   "of the stencil: 7 or 27 in three dimensions, 9 or 81 in four (default: faces only)");
    app.add_flag("--periodic", request.periodic, "the grid goes round in every dimension");
    app.add_option("--rate", rate,
                   "one link, one direction: " + std::string(rate_form) + " (default 12GB/s)");
    app.add_option("--latency-us", latency, "one way between two hosts, microseconds (default 2)");
    app.add_option("--copy-rate", copy_rate, "what a rank copies while all ranks of its host do")
        ->capture_default_str();
    app.add_option("--cores", cores, "of a host (default: one for each rank)")->check(CLI::Range(1, 100000));
    app.add_option("--wire-cpu-ns", wire_cpu_ns,
                   "CPU time that the kernel takes for each byte on the wire, at either end, ns")
        ->check(apps::number_within(0, 1e9))
        ->capture_default_str();
    app.add_flag("--json", json, "print JSON");
    argv[0] = name.data();
    if (const auto status = parse(app, argc, argv)) return *status;

    Settings settings;
    std::string why;
    const std::pair<std::string_view, const std::string*> given[] = {{"THALWEG_RATE", &rate},
                                                                     {"THALWEG_LATENCY_US", &latency}};
    for (const auto& [variable, value] : given)
        if (!value->empty() &&
            settings.set(variable, *value, Origin::command_line, why, check_option) != Status::ok)
            return usage_error("explain", why);
    const auto copied = parse_rate(copy_rate);
    if (!copied || *copied <= 0)
        return usage_error("explain",
                           "--copy-rate " + copy_rate + " is not valid: expected " + std::string(rate_form));
    const std::vector<int> extents = parse_extents(request.grid);
    if (extents.empty())
        return usage_error("explain", "--grid " + request.grid + " is not valid: expected one like 4x4x2");
    request.dims = static_cast<int>(extents.size());
    HaloGrid counted;
    counted.ranks = extents;
    counted.cells.assign(extents.size(), 1);
    std::vector<HaloGrid> grids;
    if (why = refuse(counted); !why.empty()) return usage_error("explain", "--grid: " + why);
    if (!bench::read_grids(request, counted.size(), grids, why)) return usage_error("explain", why);
    const HaloGrid& grid = grids.front();
    std::vector<int> host_of;
    for (int rank = 0; rank < grid.size(); ++rank) host_of.push_back(rank / ranks_per_host);
    const int hosts = host_of.back() + 1, here = std::min(ranks_per_host, grid.size());

    const Machine machine = Machine::from_options(settings.latency_us, settings.rate);
    const HaloBytes bytes = halo_bytes(grid, host_of);
    HaloRates rates;
    if (hosts > 1) rates.wire_bytes_per_s = static_cast<double>(machine.inter.bytes_per_second);
    rates.wire_latency_s = static_cast<double>(machine.inter.latency) * seconds_per_picosecond;
    rates.copied_bytes_per_s = *copied * here;
    rates.wire_cpu_s_per_byte = wire_cpu_ns / ns_per_s;
    rates.copiers = here;
    rates.cores = cores > 0 ? cores : here;
    const HaloLimits limits = halo_limits(bytes.link, bytes.host_wire, bytes.host_copied, rates);
    const std::string mix(mix_of(limits));
    const int shown = busiest_inside(grid, host_of);
    const auto inside = inside_of(grid, shown, host_of, limits.wire_s, rates_of(*copied));
    const Leaving outgoing = some_leaving(grid, host_of, shown);
    const BetweenHosts crossing = between_hosts(grid, host_of);

    if (json) {
        nlohmann::json all = bench::to_json(grid);
        all.update({{"points", grid.points()},
                    {"hosts", hosts},
                    {"ranks_per_host", here},
                    {"inside_bytes_per_rank", {bytes.least_inside, bytes.most_inside}},
                    {"outside_bytes_per_rank", {bytes.least_outside, bytes.most_outside}},
                    {"link_bytes", bytes.link},
                    {"messages_between_hosts", crossing.messages},
                    {"messages_by_leaders", crossing.pairs},
                    {"copied_bytes_per_host", bytes.host_copied},
                    {"wire_seconds", limits.wire_s},
                    {"copies_seconds", limits.copies_s},
                    {"cpu_seconds", limits.cpu_s},
                    {"limit_seconds", limits.largest()},
                    {"bound_by", mix},
                    {"rank", shown},
                    {"messages", nlohmann::json::array()}});
        for (const Inside& each : inside)
            all["messages"].push_back({{"from", each.from},
                                       {"bytes", each.bytes},
                                       {"strided", each.strided},
                                       {"protocol", each.protocol},
                                       {"because", each.because},
                                       {"receivers_share", each.receivers_share}});
        fmt::print("{}\n", all.dump(2));
        return exit_ok;
    }
    fmt::print("halo on {}; {} hosts of {} ranks\n\n", grid.text(), hosts, here);
    fmt::print("{}", bench::format_cells(
                         {{"bytes", "of one rank", "of the busiest host"},
                          {"  stay inside the host", range_text(bytes.least_inside, bytes.most_inside),
                           bench::bytes_text(bytes.host_copied) + " copied, packing for the wire included"},
                          {"  leave it", range_text(bytes.least_outside, bytes.most_outside),
                           bench::bytes_text(bytes.link) + " over its link"}},
                         false));
    fmt::print("\nwire {}, copies {}, CPU {}: {}; limit {}\n", bench::time_text(limits.wire_s),
               bench::time_text(limits.copies_s), bench::time_text(limits.cpu_s),
               mix == "balanced" ? "balanced" : "bound by " + mix, bench::time_text(limits.largest()));
    if (outgoing.messages > 0)
        fmt::print(
            "\nbetween hosts: posted first; rank {} sends {} messages there, {} of them strided and packed "
            "before\n",
            outgoing.rank, outgoing.messages, outgoing.strided);
    if (crossing.messages > 0)
        fmt::print(
            "all ranks send {} there; by leaders of hosts (--alltoallv node_leader) {} would travel, one for "
            "each\n"
            "pair of hosts that are neighbours\n",
            crossing.messages, crossing.pairs);
    if (!inside.empty()) {
        fmt::print("\ninside the host: rank {}, which has the most of it, receives\n\n", shown);
        std::vector<std::vector<std::string>> cells{{"  from", "bytes", "protocol", "it copies", "because"}};
        for (const Inside& each : inside)
            cells.push_back({fmt::format("  rank {}", each.from), bench::bytes_text(each.bytes),
                             each.protocol, bench::bytes_text(each.receivers_share), each.because});
        fmt::print("{}", bench::format_cells(cells, false));
    }
    fmt::print(
        "\n  Limits are what no protocol can undercut: link bytes at {}, copies at {} per rank. Protocols "
        "are\n"
        "  those of THALWEG_TRANSPORT=shm before anything was measured; it changes them by what it "
        "measures.\n"
        "  `thalweg bench halo` measures the same.\n",
        rate_text(static_cast<double>(machine.inter.bytes_per_second)), rate_text(*copied));
    return exit_ok;
}

}  // namespace thalweg::tool
