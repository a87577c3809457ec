#include "model/exchange.h"

#include <algorithm>
#include <bit>

#include "model/break_even.h"

namespace thalweg {
namespace {

// What goes through one port in one direction.
struct Load {
    std::uint64_t messages = 0, bytes = 0;

    void add(std::uint64_t more_messages, std::uint64_t more_bytes) {
        messages += more_messages;
        bytes += more_bytes;
    }
    Picoseconds time(const Level& level) const {
        const std::uint64_t ports = std::max<std::uint64_t>(level.ports, 1);
        return (messages + ports - 1) / ports * level.latency + level.transfer((bytes + ports - 1) / ports);
    }
};

struct Loads {
    std::vector<Load> out, in;

    explicit Loads(int count) : out(static_cast<std::size_t>(count)), in(static_cast<std::size_t>(count)) {}
    void add(int from, int to, std::uint64_t messages, std::uint64_t bytes) {
        out[static_cast<std::size_t>(from)].add(messages, bytes);
        in[static_cast<std::size_t>(to)].add(messages, bytes);
    }
    Picoseconds longest(const Level& level) const {
        Picoseconds most = 0;
        for (const auto* side : {&out, &in})
            for (const Load& load : *side) most = std::max(most, load.time(level));
        return most;
    }
    Load busiest() const {
        Load most;
        for (const auto* side : {&out, &in})
            for (const Load& load : *side)
                if (load.bytes > most.bytes) most = load;
        return most;
    }
};

class Model {
  public:
    Model(std::span<const std::uint64_t> bytes, const Topology& topology, const Machine& machine)
        : bytes_(bytes),
          topology_(topology),
          machine_(machine),
          links_(topology.nodes()),
          inside_(topology.size()),
          leaders_(topology.nodes()),
          handed_(topology.size()) {
        for_pairs([this](int from, int to, std::uint64_t size) {
            const int there = topology_.node_of(to), here = topology_.node_of(from);
            if (here == there) {
                inside_.add(from, to, 1, size);
            } else {
                links_.add(here, there, 1, size);
                // To the leader, and from the other one: free for a leader itself.
                if (topology_.ranks_on(here)[0] != from)
                    handed_.add(from, topology_.ranks_on(here)[0], 0, size);
                if (topology_.ranks_on(there)[0] != to)
                    handed_.add(topology_.ranks_on(there)[0], to, 0, size);
            }
        });
        // One message for each pair of hosts that has any.
        std::vector<std::uint64_t> between(static_cast<std::size_t>(topology.nodes() * topology.nodes()));
        for_pairs([&](int from, int to, std::uint64_t size) {
            between[static_cast<std::size_t>(topology_.node_of(from) * topology_.nodes() +
                                             topology_.node_of(to))] += size;
        });
        for (int from = 0; from < topology.nodes(); ++from)
            for (int to = 0; to < topology.nodes(); ++to)
                if (const auto size = between[static_cast<std::size_t>(from * topology.nodes() + to)];
                    from != to && size != 0)
                    leaders_.add(from, to, 1, size);
    }

    // All messages at once, each over its port.
    Picoseconds spread() const {
        return std::max(links_.longest(machine_.inter), inside_.longest(machine_.intra));
    }
    // Bundles between hosts, handed out inside.
    Picoseconds node_leader() const {
        Loads inside = handed_;
        for (std::size_t i = 0; i < inside.out.size(); ++i) {
            inside.out[i].add(2, 0);
            inside.in[i].add(2, 0);
        }
        return leaders_.longest(machine_.inter) +
               std::max(inside.longest(machine_.intra), inside_.longest(machine_.intra));
    }
    // One round after another, each as long as its longest message.
    Picoseconds pairwise() const {
        Picoseconds sum = 0;
        const int size = topology_.size();
        for (int step = 1; step < size; ++step) {
            Loads links(topology_.nodes()), inside(size);
            for (int from = 0; from < size; ++from) {
                const int to = (from + step) % size;
                const auto one = bytes_[static_cast<std::size_t>(from * size + to)];
                if (one == 0) continue;
                if (topology_.node_of(from) == topology_.node_of(to)) {
                    inside.add(from, to, 1, one);
                } else {
                    links.add(topology_.node_of(from), topology_.node_of(to), 1, one);
                }
            }
            sum += std::max(links.longest(machine_.inter), inside.longest(machine_.intra));
        }
        return sum;
    }
    Picoseconds latency() const {
        return topology_.nodes() > 1 ? machine_.inter.latency : machine_.intra.latency;
    }
    // Everybody waits for everybody.
    Picoseconds meeting() const {
        return latency() * std::bit_width(static_cast<unsigned>(std::max(topology_.size() - 1, 0)));
    }
    // A word from each to each.
    Picoseconds words() const {
        const auto peers = static_cast<Picoseconds>(std::max(topology_.size() - 1, 0));
        return std::min(peers * latency(), 2 * meeting());
    }
    std::uint64_t link_bytes() const { return links_.busiest().bytes; }
    Picoseconds limit() const {
        if (topology_.nodes() > 1 && links_.busiest().bytes > 0)
            return Load{1, links_.busiest().bytes}.time(machine_.inter);
        return inside_.busiest().bytes > 0 ? Load{1, inside_.busiest().bytes}.time(machine_.intra) : 0;
    }

  private:
    template <class F>
    void for_pairs(F&& f) const {
        const int size = topology_.size();
        for (int from = 0; from < size; ++from)
            for (int to = 0; to < size; ++to)
                if (const auto one = bytes_[static_cast<std::size_t>(from * size + to)];
                    from != to && one != 0)
                    f(from, to, one);
    }

    std::span<const std::uint64_t> bytes_;
    const Topology& topology_;
    const Machine& machine_;
    Loads links_, inside_, leaders_, handed_;
};

}  // namespace

std::vector<ExchangePrediction> predict_exchange(std::span<const std::uint64_t> bytes,
                                                 const Topology& topology, const Machine& machine) {
    const Model model(bytes, topology, machine);
    const Picoseconds spread = model.spread(), meeting = model.meeting(), words = model.words();
    // A library that knows nothing asks the receiver first, once, for messages beyond its buffers.
    const Picoseconds native = spread + model.latency();
    // Words, an agreement, freeing a window and making another one, which ends with a meeting each.
    const Picoseconds window = words + 4 * meeting;
    const Picoseconds fences = 2 * meeting + spread;
    const Picoseconds own_window = words + 3 * meeting;  // of a plan: agreement, making, freeing
    const Picoseconds own_plan = words + 2 * meeting;    // agreement there and back
    std::vector<ExchangePrediction> all{
        {"native", 0, native},
        {"native init", 2 * meeting, native, 0, 0, true},
        {"window per call", 0, window + fences + meeting},
        {"window kept", 0, words + 2 * meeting + fences + meeting},
        {"rma_fence", own_window, fences, 0, 0, true},
        {"rma_lock", own_window, 2 * meeting + model.latency() + spread, 0, 0, true},
        {"rma_pscw", own_window, spread + 2 * model.latency(), 0, 0, true},
        {"rma_get", own_window, spread + 2 * model.latency(), 0, 0, true},
        {"spread", own_plan, native, 0, 0, true},
        {"pairwise", own_plan, model.pairwise(), 0, 0, true},
        // Ready messages travel before the data are there.
        {"notify", own_plan, spread, 0, 0, true},
    };
    if (topology.nodes() > 1 && topology.max_ranks_per_node() > 1)
        all.push_back({"node_leader", own_plan, model.node_leader(), 0, 0, true});
    for (ExchangePrediction& each : all) {
        const auto seconds = [](Picoseconds duration) { return static_cast<double>(duration) * 1e-12; };
        each.calls_native =
            each.plan ? break_even(seconds(each.init), seconds(native), seconds(each.call)) : never;
        each.calls_window =
            each.plan ? break_even(seconds(each.init), seconds(all[2].call), seconds(each.call)) : never;
    }
    return all;
}

namespace {

// Packets of Ethernet: their bytes, those of a TCP payload among them, and an acknowledgement, one for two of
// them: in an exchange they travel where data of the other direction do.
constexpr double packet_bytes = 1514, payload_bytes = 1448, acknowledgement_bytes = 66;
// Messages from this size on are announced, and what announces them waits behind the data of others: all but
// smaller pieces lose a tenth. Smaller ones that nobody puts in order still hinder one another a little.
constexpr std::uint64_t announced_bytes = 64 << 10;
constexpr double announced_loss = 1.1, unordered_loss = 1.02;

// How a way differs from the wire's time, and what it costs once, in small calls.
struct WayCosts {
    std::string_view way;
    double passes;      // of the bytes over the wire, or of what waits for them
    double small;       // added to each call
    double init_small;  // making and freeing the plan
};

// Fitted to the rows of MPICH 5.0.2, Open MPI 5.0.11 and Intel MPI 2021.18 on 4 hosts of one rank and 2 cores
// (docs/measurements.md, which says how many they meet; tests/bench/exchange_test.cpp holds the two-sided
// ones against the rows). Windows are emulated over TCP there: a get is asked for, a lock's put answered for.
constexpr WayCosts way_costs[] = {
    {"pairwise", 1, 1.8, 7},
    {"spread", unordered_loss, 1.5, 7},
    {"node_leader", unordered_loss, 1.5, 11},
    {"notify", 1.35, 2.5, 11},
    {"rma_fence", 1.15, 3, 5.5},
    {"rma_fence_barrier", 1.15, 5, 6},
    {"rma_pscw", 1.15, 7, 6.5},
    {"rma_lock", 2, 5, 6.5},
    {"rma_get", 2, 8, 8},
};

}  // namespace

double wire_seconds(double link_bytes, double bytes_per_second, double burst_bytes) {
    const double free_bytes = burst_bytes * payload_bytes / packet_bytes;
    return std::max(0.0, link_bytes - free_bytes) / bytes_per_second *
           (1 + acknowledgement_bytes / (2 * packet_bytes));
}

std::optional<PlanForecast> forecast_plan(std::string_view way, const ExchangeSeen& seen) {
    if (seen.once_seconds <= 0 || seen.small_seconds <= 0 || seen.bytes_per_second <= 0 ||
        seen.link_bytes <= 0)
        return std::nullopt;
    if (way == "native") return PlanForecast{0, seen.once_seconds, never};
    const std::string_view name = way.substr(0, way.find(':'));
    const auto costs = std::find_if(std::begin(way_costs), std::end(way_costs),
                                    [&](const WayCosts& each) { return each.way == name; });
    if (costs == std::end(way_costs)) return std::nullopt;
    double wire = costs->passes * wire_seconds(seen.link_bytes, seen.bytes_per_second, seen.burst_bytes);
    const bool in_pieces = way.find("chunk_bytes=") != way.npos;
    if (seen.message_bytes >= announced_bytes && !in_pieces && costs->passes < 2) wire *= announced_loss;
    PlanForecast forecast;
    forecast.init_seconds = costs->init_small * seen.small_seconds;
    forecast.call_seconds = wire + costs->small * seen.small_seconds;
    forecast.calls = break_even(forecast.init_seconds, seen.once_seconds, forecast.call_seconds);
    return forecast;
}

std::uint64_t exchange_link_bytes(std::span<const std::uint64_t> bytes, const Topology& topology) {
    return Model(bytes, topology, Machine{}).link_bytes();
}

Picoseconds exchange_limit(std::span<const std::uint64_t> bytes, const Topology& topology,
                           const Machine& machine) {
    return Model(bytes, topology, machine).limit();
}

}  // namespace thalweg
