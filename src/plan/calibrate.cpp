#include "plan/calibrate.h"

#include <bit>
#include <memory>
#include <new>
#include <optional>

#include "base/float_modes.h"
#include "base/log.h"
#include "model/repeated_timing.h"
#include "plan/set_up.h"
#include "plan/world.h"
#include "transport/mpi/mpi_transport.h"

namespace thalweg {
namespace {

constexpr std::size_t small_part_bytes = 16u << 10;
constexpr std::size_t part_sizes[] = {small_part_bytes, MeasuredLink::largest_part_bytes};
constexpr std::uint64_t shortest_ns = 1'000'000;  // streams that take less are repeated with large parts

std::uint64_t rounded(std::uint64_t value) {
    if (value < 8) return value;
    const int shift = std::bit_width(value) - 3;
    return (value + (std::uint64_t{1} << (shift - 1))) >> shift << shift;
}

// Both ends run the same protocol, until one of them gives up.
void measure_as_sender(MeasuredLink& link, Network& network) {
    if (!link.ping(network.latency_ns)) return;
    for (const std::size_t part_bytes : part_sizes) {
        MeasuredLink::Verdict verdict{};
        do {
            if (!link.stream_out(part_bytes) || !link.hear(verdict)) return;
        } while (verdict.again != 0);
        const unsigned __int128 bytes =
            static_cast<unsigned __int128>(MeasuredLink::parts - MeasuredLink::untimed_parts) * part_bytes *
            1'000'000'000;
        if (verdict.duration_ns != 0)
            network.bytes_per_second = static_cast<std::uint64_t>(bytes / verdict.duration_ns);
        if (verdict.duration_ns >= shortest_ns) break;
    }
}

void measure_as_receiver(MeasuredLink& link) {
    if (!link.pong()) return;
    for (const std::size_t part_bytes : part_sizes) {
        RepeatedTiming timing;
        while (timing.wants_more()) {
            std::uint64_t duration_ns = 0;
            if (!link.stream_in(part_bytes, duration_ns)) return;
            timing.add(duration_ns);
            if (!link.tell({timing.believed_ns(), timing.wants_more()})) return;
        }
        if (timing.believed_ns() >= shortest_ns) break;
    }
}

// Under a number of its own, which is nobody's again where messages or receives are left.
Network measure(MPI_Comm comm, World& world, int rank, const Topology& topology, const RankMap& places) {
    const int sender = topology.ranks_on(0)[0], receiver = topology.ranks_on(1)[0];
    const bool takes_part = rank == sender || rank == receiver;
    std::unique_ptr<MeasuredLink::Memory> memory;
    if (takes_part) memory.reset(new (std::nothrow) MeasuredLink::Memory);
    Reason ignored = Reason::setup_failed;
    const std::shared_ptr<LaneNumber> number =
        claim_number(comm, world, rank == 0, !takes_part || memory != nullptr, ignored, true);
    if (number == nullptr) return {};
    Network network;
    MeasuredLink::Outcome outcome;
    if (takes_part) {
        const MPI_Comm pool = world.pool().comm();
        MeasuredLink link(pool, places[rank == sender ? receiver : sender],
                          MpiTransport::first_tag_on(pool, static_cast<unsigned>(number->value())),
                          world.policy(), *memory);
        if (rank == sender)
            measure_as_sender(link, network);
        else
            measure_as_receiver(link);
        outcome = link.end();
        if (!outcome.clean) {
            number->keep();
            memory.release();  // MPI's, for good
        }
    }
    // The ranks that wait here leave their cores to the two that measure.
    // [what the sender found, why an end gave up, whether messages are left]
    std::uint64_t most[4] = {rounded(network.latency_ns), rounded(network.bytes_per_second),
                             static_cast<std::uint64_t>(outcome.trouble), !outcome.clean};
    agree_on(comm, host()->max, most);
    if (most[3] != 0) number->keep();
    if (most[2] != 0) return {0, most[2]};
    return most[1] == 0 ? Network{} : Network{most[0], most[1]};
}

}  // namespace

const char* text_of(LinkTrouble trouble) {
    switch (trouble) {
        case LinkTrouble::none:
            return "nothing went wrong";
        case LinkTrouble::silent:
            return "one end did not answer in time";
        case LinkTrouble::failed:
            return "a call of the MPI library failed at one end";
    }
    return "";
}

void learn_network(MPI_Comm comm, World& world, int rank, const Topology& topology, const RankMap& places,
                   Network& network) {
    const Settings& settings = world.settings();
    const bool told = settings.rate > 0 && settings.latency_us > 0;
    if (topology.nodes() > 1 && !told) {
        if (!network.known() && !network.declined()) {
            network = measure(comm, world, rank, topology, places);
            if (rank == 0 && network.known())
                with_texts_in_standard_modes([&] {
                    THALWEG_LOG_AT(info, "the network between hosts: %.3g us, %.4g MB/s",
                                   static_cast<double>(network.latency_ns) / 1e3,
                                   static_cast<double>(network.bytes_per_second) / 1e6);
                });
            if (rank == 0 && network.declined())
                THALWEG_LOG_AT(warn, "the network between hosts was not measured: %s; a guess stands for it",
                               text_of(network.trouble()));
        }
        if (network.known() || network.declined()) world.learn(network);
    }
    if (!network.known()) network = {0, 0, topology.nodes() > 1 && !told};
}

}  // namespace thalweg
