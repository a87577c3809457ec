// The registry of algorithms, made from algorithms.def: pure functions (Problem, Topology, parameters) ->
// Schedule.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/exchange.h"
#include "base/status.h"
#include "schedule/schedule.h"
#include "topology/topology.h"

namespace thalweg {

enum class Collective : std::uint8_t { bcast, allgather, allreduce, barrier, alltoallv };
inline constexpr int collective_count = 5;
std::string_view name_of(Collective collective);

// One rank's contribution to an allgather, as it ends in `out`.
struct Block {
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;

    bool operator==(const Block&) const = default;
};

// What to build, as seen by one rank. Everything is equal on all ranks except `rank`, `in_place` and the
// offsets of `blocks`, which never change what is sent, and `exchange`.
//
//   bcast      `out` is the message, of `bytes`; the root's is defined at the start
//   allgather  `in` is this rank's block; `out` ends with the blocks of all ranks: rank r's, of `bytes`, at
//              r * bytes, or where and as long as blocks[r] says
//   allreduce  `in` and `out` are vectors of `bytes`, whole elements of element_bytes
//   barrier    no bytes; no rank ends before all have begun
//   alltoallv  every rank sends `bytes` to every rank, itself included: `in` and `out` hold rank r's at
//              r * bytes; or what `exchange` says, which each rank knows of itself alone
//
// in_place: what `in` would hold is in `out` (the own block at its place, the own vector), `in` is not used.
// Not of an alltoallv, whose `in` is then a copy.
struct Problem {
    int rank = 0;
    int size = 1;
    int root = 0;  // of a broadcast
    std::uint64_t bytes = 0;
    // For combinators, which build a part piece by piece: where the message starts in `out`, and how many
    // messages one pair of ranks may still exchange. A caller leaves them alone.
    std::uint64_t offset = 0;
    std::uint64_t messages_per_pair = max_messages_per_pair;
    std::uint64_t element_bytes = 1;
    bool commutative = true;  // of a reduction: operands may be combined in another order than that of ranks
    bool in_place = false;
    // Empty: all blocks are alike. Else one per rank; `bytes` is then their mean, rounded up (for prices).
    // The memory is the caller's and is not used after the call.
    std::span<const Block> blocks = {};
    // Of an alltoallv; null: all pairs are alike. `bytes` is then a mean that all ranks agreed on (for
    // prices). The memory is the caller's and is not used after the call.
    const Exchange* exchange = nullptr;
};

// One parameter of an algorithm. The name says the unit (chunk_bytes); a value is written 65536, 64K, 1M.
struct Parameter {
    std::string_view name;
    std::uint64_t standard = 0;  // the value when none is given
    std::uint64_t minimum = 0;
    std::uint64_t maximum = 0;
    std::string_view text;
};
inline constexpr int max_parameters = 4;

// One operand of a combinator.
struct Part {
    std::string_view name;  // "intra"
    Collective collective = Collective::bcast;
    std::string_view standard;  // the algorithm it stands for when none is given
};

struct Algorithm;

// An algorithm with its parameters' values: what a user writes as "chain:chunk_bytes=64K" or, for a
// combinator, "node_leader(intra=linear,inter=chain:chunk_bytes=64K)". A value type; equal choices build
// equal schedules.
struct Choice {
    const Algorithm* algorithm = nullptr;
    std::array<std::uint64_t, max_parameters> values{};
    std::vector<Choice> parts;  // a combinator's operands in the order of its row; else empty

    bool operator==(const Choice&) const = default;
};

// What an algorithm promises for a whole group (all ranks added up). A test compares it with its schedules.
// Every figure is exact, except that `rounds` is an upper bound for combinators, where hosts differ in their
// ranks, where ranks contribute nothing, and for reductions in place. Where pairs of an alltoallv differ
// (Problem::exchange) one rank cannot know the group: messages and bytes are then what this rank sends.
struct Claim {
    std::uint64_t rounds = 0;           // longest chain of messages that depend on one another
    std::uint64_t messages = 0;         // sends of at least one byte, all ranks
    std::uint64_t bytes = 0;            // bytes sent, all ranks
    std::uint64_t redundant_bytes = 0;  // received although the rank already held them
    std::uint64_t signals = 0;          // sends of no bytes, all ranks
};

// The textbook price, rounds * latency + bytes / rate, for ranks that send `ports` messages and receive as
// many at a time, each at the full rate.
struct Price {
    std::uint64_t rounds = 0;
    std::uint64_t bytes = 0;        // on the critical path, over all ports of a rank
    std::uint64_t piece_bytes = 0;  // the largest message
    std::uint64_t degree = 0;       // messages that the busiest rank sends per piece
    std::uint64_t ports = 1;
    std::uint64_t reduced_bytes = 0;  // combined on the critical path
    // Of piece_bytes, which a rank sends in all, each as soon as one of `ports` is free for it; a last round
    // may have fewer. 0: every round has as many messages as there are ports.
    std::uint64_t messages = 0;
    // Parts of the message that flow beside one another: a rank that sends `degree` messages per piece of one
    // gets pieces of the others meanwhile.
    std::uint64_t flows = 1;
};

// One row of algorithms.def.
struct Algorithm {
    Collective collective = Collective::bcast;
    std::string_view name;     // "scatter_ring_trimmed"
    std::string_view summary;  // one sentence
    std::string_view formula;  // the price as people write it
    std::string_view source;   // who published it
    std::span<const Parameter> parameters;
    std::span<const Part> parts;  // a combinator's operands, else empty
    // Why this algorithm cannot serve the problem, or an empty view when it can. Depends only on values that
    // are equal on all ranks (never on Problem::rank).
    std::string_view (*refuse)(const Problem&, const Topology&, const Choice&);
    // Pre: refuse() is empty. Never fails; throws std::bad_alloc only.
    Schedule (*build)(const Problem&, const Topology&, const Choice&);
    Claim (*claim)(const Problem&, const Topology&, const Choice&);
    // Pre: refuse() is empty, no parts (model/ prices a combinator from its parts). Cheap enough to be asked
    // at every new message size.
    Price (*price)(const Problem&, const Topology&, const Choice&);
};

std::span<const Algorithm> algorithms();
const Algorithm* find_algorithm(Collective collective, std::string_view name);

// The choice with every parameter at its standard value (a combinator's operands likewise).
Choice standard_choice(const Algorithm& algorithm);

// Parses "chain:chunk_bytes=64K" or "node_leader(intra=linear,inter=chain:chunk_bytes=64K)". On error
// `choice` is unchanged and `why` is one sentence with the accepted form (and the nearest name for a misspelt
// one).
Status parse_choice(Collective collective, std::string_view text, Choice& choice, std::string& why);
std::string to_text(const Choice& choice);

// Why the choice cannot serve the problem, or an empty view when it can: asks the algorithm's row.
std::string_view refuse(const Choice& choice, const Problem& problem, const Topology& topology);
// Pre: refuse() is empty.
Schedule build(const Choice& choice, const Problem& problem, const Topology& topology);
Claim claim(const Choice& choice, const Problem& problem, const Topology& topology);

// An algorithm of a native MPI as a schedule of ours, so that a bench can tell the algorithm from the
// waiting.
struct Twin {
    Collective collective = Collective::bcast;
    std::string_view family;   // "mpich" or "openmpi"
    std::string_view native;   // as that MPI's own control calls it
    std::string_view choice;   // what parse_choice reads
    std::string_view differs;  // how ours differs, empty when messages and order are the same
};
std::span<const Twin> twins();

// The text of docs/algorithms.md. A test compares the file with it.
std::string algorithms_markdown();

}  // namespace thalweg
