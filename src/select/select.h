// Which algorithm a collective runs with, decided from values that are equal on all ranks: bytes, the
// topology and agreed settings. A tuning table speaks first, the cost model where the table is silent, and
// the native MPI keeps what it does best.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/algorithm.h"
#include "base/status.h"
#include "model/machine.h"
#include "topology/topology.h"

namespace thalweg {

// What a hop costs at least where ranks sleep while they wait, whatever the network's latency was measured
// to be: about one sleep and a wake-up. In no way where somebody says what the latency is.
inline constexpr Picoseconds sleeping_hop = 30'000'000;

// Everything here must be equal on all ranks of the communicator.
struct Selection {
    Machine machine;
    std::string family;  // of the native MPI, as tuning rows name it: "mpich", "openmpi", "impi", …
    std::optional<Choice> forced;  // the user's demand (THALWEG_BCAST); empty: choose
    std::string table;  // JSON of a table, or of a list, that comes before the built-in ones; empty: none
    // A nonblocking or persistent operation that something of ours advances while the program computes: a
    // native one waits for its caller between its rounds, so that more is worth taking.
    bool overlapped = false;
    bool persistent = false;  // one that runs in the memory of its one host
    // Ranks that wait for a blocking one sleep: cores are fewer than ranks, or it was asked for.
    bool sleeps = false;
    std::string library = {};  // what MPI_Get_library_version says of the native MPI; empty: not known
    // The calls themselves can tell: a blocking broadcast, allgather or allreduce between hosts for which no
    // table speaks takes turns with the native call before the model has its way, which knows the links but
    // not what the native library does on them.
    bool tries_model = false;
    // Nothing is known of the network yet. The first call that a schedule serves measures it, and so do calls
    // that are tried, or that tables speak of, once it is known.
    bool unknown = false;
    // Of persistent ones, or of blocking ones that are tried on one host: between neighbours of a topology.
    // Of overlapped ones smallest_on_one_host() alone is asked (neighbours.h).
    bool neighbours = false;
};

struct Decision {
    std::optional<Choice> choice;  // empty: leave the call to the native MPI
    std::string reason;            // one short phrase: "tuning table", "the model: 1.05 ms", "one host", …
    bool tried = false;            // in turns with the native call, until what both took says which is faster
    bool over_library = false;     // then: on one host by the MPI library's messages, not in its memory
    bool only_in_memory = false;   // or natively, where that memory cannot be had
};

// Checks the text of a tuning table, or of a list of them. invalid_argument: `why` is one sentence that names
// the row, and the table by its number in the list.
Status check_table(std::string_view json, std::string& why);

// The decisions of communicators alike: tables are read and pruned once, and what was decided is kept for all
// who share it. Any thread may ask.
class Selector {
  public:
    // A malformed Selection::table is ignored (check_table says why).
    Selector(Collective collective, const Topology& topology, const Selection& selection);
    ~Selector();
    Selector(Selector&&) noexcept;
    Selector& operator=(Selector&&) noexcept;

    // The first time that a class of sizes is asked for it takes microseconds, and milliseconds of a thousand
    // hosts that have not as many ranks each; later a look-up under a lock and an allocation or two: meant to
    // be asked once per message size and kept with the plan, or by way of Decisions (decisions.h).
    Decision decide(std::uint64_t bytes) const;

    // Of a persistent exchange for which `in_rounds` was decided, and whose messages differ so much that
    // rounds would wait (exchanges.h), of so many bytes per pair on average. Where no row speaks of it:
    // `in_rounds`.
    Decision decide_uneven(Decision in_rounds, std::uint64_t mean_bytes) const;

    // Whether what is decided is to be tried. Nanoseconds.
    bool tries(std::uint64_t bytes) const;

    // Sizes of one class have the same decision. A few hundred classes in all; where an algorithm was asked
    // for, every size is one.
    std::uint64_t class_of(std::uint64_t bytes) const;

    // Every smaller message is left to the native MPI, for the same reason as decide(0): a caller compares
    // and skips the rest. 2^64-1 where every message is (one host, …).
    std::uint64_t native_below() const;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

// Without keeping anything: Selector(...).decide(bytes).
Decision decide(Collective collective, std::uint64_t bytes, const Topology& topology,
                const Selection& selection);

// On one host, of up to `ranks` ranks that wait as `selection` says, its native MPI has every smaller
// message, unless an algorithm is asked for; 2^64-1 where no row of its table or of the built-in ones speaks
// for one host. Of blocking calls, or of overlapped ones, or of persistent ones; of neighbourhoods where
// `selection` says so.
std::uint64_t smallest_on_one_host(Collective collective, const Selection& selection, std::uint64_t ranks);

// No smaller message is taken from the native MPI, on any communicator, unless an algorithm is asked for. Of
// blocking calls, or of overlapped ones; `table` as above. In bytes, whatever the network is.
std::uint64_t smallest_taken(Collective collective, const std::string& table, bool overlapped = false);

// One line of `thalweg explain`.
struct Candidate {
    Choice choice;
    std::string refused;                   // why it cannot run here, empty when it can
    Picoseconds predicted = 0;             // by the closed forms that decide() uses
    std::optional<Picoseconds> evaluated;  // by playing the schedules, where there are not too many
    std::optional<Claim> claim;  // of the whole group, where counting it takes no more than a moment
    bool chosen = false;
};

struct Explanation {
    Decision decision;
    std::vector<Candidate> candidates;  // cheapest prediction first, refused ones last
    Picoseconds limit = 0;              // what the wire needs whatever the algorithm: wire_limit()
};
// As a call of so many bytes is decided: of a large broadcast, as its pieces are (pieces.h). Candidates are
// priced for the whole.
Explanation explain(Collective collective, std::uint64_t bytes, const Topology& topology,
                    const Selection& selection);

}  // namespace thalweg
