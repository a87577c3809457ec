#include "bench/proof.h"

#include <algorithm>
#include <string>
#include <vector>

#include "algorithms/algorithm.h"

namespace thalweg::bench {
namespace {

constexpr double header_bytes = 66;     // Ethernet 14, IPv4 20, TCP 20 with 12 of time stamps
constexpr double segment_bytes = 1448;  // payload of a full segment at an MTU of 1500
constexpr double tolerance = 0.12;
constexpr std::uint64_t smallest_bytes = 64u << 10;

}  // namespace

bool link_claim(const std::string& choice_text, int hosts, int ppn, int root, std::uint64_t bytes,
                LinkClaim& claim, std::string& why, Collective collective) {
    Choice choice;
    if (failed(parse_choice(collective, choice_text, choice, why))) return false;
    Topology topology;
    const std::string text = "node:" + std::to_string(hosts) + " core:" + std::to_string(ppn);
    if (failed(Topology::from_text(text, topology, why))) return false;
    const int size = hosts * ppn;
    Problem problem{0, size, root, bytes};
    if (collective == Collective::allreduce) problem.element_bytes = sizeof(std::int64_t);  // the driver's
    if (const auto refused = choice.algorithm->refuse(problem, topology, choice); !refused.empty()) {
        why = std::string(refused);
        return false;
    }
    std::vector<LinkClaim> host(static_cast<std::size_t>(hosts));
    for (int rank = 0; rank < size; ++rank) {
        problem.rank = rank;
        const Schedule schedule = choice.algorithm->build(problem, topology, choice);
        const int from = topology.node_of(rank);
        for (const Step& step : schedule.steps()) {
            if (step.kind != StepKind::send || topology.node_of(step.peer) == from) continue;
            host[static_cast<std::size_t>(from)].tx_bytes += step.source.bytes;
            host[static_cast<std::size_t>(from)].messages += 1;
            host[static_cast<std::size_t>(topology.node_of(step.peer))].rx_bytes += step.source.bytes;
        }
    }
    claim = *std::max_element(host.begin(), host.end(),
                              [](const LinkClaim& a, const LinkClaim& b) { return a.tx_bytes < b.tx_bytes; });
    return true;
}

Expected expected_tx_bytes(const LinkClaim& claim) {
    const double payload = static_cast<double>(claim.tx_bytes);
    const double sent = payload + payload / segment_bytes * header_bytes;
    return {sent, sent + static_cast<double>(claim.rx_bytes) / segment_bytes * header_bytes};
}

Proof prove(const Row& row, int hosts, int ppn) {
    if (row.tx_bytes < 0 || row.algorithm.empty() || hosts < 2) return Proof::not_counted;
    Collective collective = Collective::bcast;
    for (const Collective other : {Collective::allgather, Collective::allreduce})
        if (row.collective == name_of(other)) collective = other;
    if (collective == Collective::bcast && row.bytes < smallest_bytes) return Proof::not_counted;
    LinkClaim claim;
    std::string why;
    if (!link_claim(row.algorithm, hosts, ppn, 0, row.bytes, claim, why, collective)) return Proof::differs;
    if (claim.tx_bytes < smallest_bytes) return Proof::not_counted;
    const Expected expected = expected_tx_bytes(claim);
    const bool agrees =
        row.tx_bytes >= expected.low * (1 - tolerance) && row.tx_bytes <= expected.high * (1 + tolerance);
    return agrees ? Proof::agrees : Proof::differs;
}

}  // namespace thalweg::bench
