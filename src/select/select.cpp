#include "select/select.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <mutex>
#include <unordered_map>

#include "base/text.h"
#include "model/cost.h"
#include "select/candidates.h"
#include "select/pieces.h"
#include "select/table.h"

namespace thalweg {
namespace {

constexpr std::uint64_t never = std::numeric_limits<std::uint64_t>::max();
constexpr std::string_view by_model = "cost model: ";  // so begins the reason of its decisions

// Where no table speaks, smaller messages are the native library's: they are bound by its latency, which no
// schedule of ours can undercut. Overlapped ones hide their latency, as long as they are worth waking
// somebody.
std::uint64_t small_bytes(Collective collective, bool overlapped) {
    switch (collective) {
        case Collective::bcast:
            return overlapped ? 4 << 10 : 64 << 10;
        case Collective::allgather:  // bytes of one rank's block
            return overlapped ? 1 << 10 : 16 << 10;
        case Collective::allreduce:
            return overlapped ? 4 << 10 : 64 << 10;
        case Collective::barrier:
            return overlapped ? 0 : never;
        case Collective::alltoallv:  // bytes of a pair; see small()
            return overlapped ? 1 << 10 : 16 << 10;
    }
    return never;
}

// Where the calls tell what is faster, smaller ones may: 4 hosts of 1 and 2 ranks at 500 Mbit/s, of which no
// table speaks, took 0.32 to 0.97 ms for broadcasts of 16 and 32 KiB in chains of 8 KiB, their libraries'
// defaults 0.45 to 2.2; allgathers of 4 KiB by leaders 1.0 and the defaults 1.2 under MPICH and Intel MPI.
std::uint64_t small_tried_bytes(Collective collective) {
    switch (collective) {
        case Collective::bcast:
            return 16 << 10;
        case Collective::allgather:
            return 4 << 10;
        default:
            return never;
    }
}

std::string time_text(Picoseconds time) {
    constexpr Picoseconds microsecond = 1'000'000, millisecond = 1000 * microsecond,
                          second = 1000 * millisecond;
    const Picoseconds unit = time >= second ? second : time >= millisecond ? millisecond : microsecond;
    const Picoseconds hundredth = unit / 100;
    const std::uint64_t hundredths = time / hundredth + (time % hundredth >= hundredth / 2);
    const std::string digits = std::to_string(hundredths % 100);
    return std::to_string(hundredths / 100) + (digits.size() < 2 ? ".0" : ".") + digits +
           (unit == second        ? " s"
            : unit == millisecond ? " ms"
                                  : " us");
}

// Up to four significant bits, so that a program whose sizes vary meets few different choices: an eighth of
// the size moves the best chunk by less than the model knows. Powers of two stay.
std::uint64_t rounded(std::uint64_t bytes) {
    if (bytes < 16 || bytes > never / 2) return bytes;
    const std::uint64_t grain = std::uint64_t{1} << (std::bit_width(bytes - 1) - 4);
    return (bytes + grain - 1) / grain * grain;
}

bool means(const TuningRow& row, const Selection& selection) {
    if (selection.persistent) return selection.neighbours ? row.neighbour_plans : row.persistent;
    if (selection.neighbours) return selection.overlapped ? row.neighbours : row.neighbour_calls;
    return selection.overlapped ? row.overlapped : row.blocking;
}

}  // namespace

struct Selector::Impl {
    Collective collective;
    Topology topology;
    Selection selection;
    std::vector<TuningRow> rows;  // that fit this communicator; the first that has the size decides
    std::uint64_t native_below = 0;
    bool any_tried = false;           // of the rows
    std::vector<TuningRow> uneven{};  // that fit it, too, and speak of messages that differ
    // By class of sizes, what the model was asked for. Under the mutex.
    mutable std::mutex mutex{};
    mutable std::unordered_map<std::uint64_t, Decision> known{};

    // Between single ranks nothing is gained from small messages that travel together: under MPICH 5.0.2 and
    // Open MPI 5.0.11 planned alltoalls between 4 hosts took 1.2 to 2.0 times as long as the native call up
    // to 4 KiB per pair, and 1.1 and 0.6 at 8 KiB; under MPICH 1.05 times up to 4 KiB where nobody is woken
    // for them (engine/driven.h).
    std::uint64_t small() const {
        const std::uint64_t usual =
            std::min(small_bytes(collective, selection.overlapped),
                     tries_model() || opens() ? small_tried_bytes(collective) : never);
        const bool alone = collective == Collective::alltoallv && topology.max_ranks_per_node() <= 1;
        return alone ? std::max<std::uint64_t>(usual, 8 << 10) : usual;
    }

    Problem problem(std::uint64_t bytes) const {
        Problem problem;
        problem.size = topology.size();
        problem.bytes = bytes;
        return problem;
    }

    void prune(const TuningTable& table) {
        if (table.collective != collective || !speaks_for(table, selection.machine.inter)) return;
        for (const TuningRow& row : table.rows) {
            if (!speaks_of(row, selection.family, selection.library) || !fits(row, topology)) continue;
            if (row.uneven) uneven.push_back(row);
            const bool meant = means(row, selection) && meant_for(row, selection.sleeps);
            if (meant && (!row.choice || refuse(*row.choice, problem(row.bytes.low), topology).empty()))
                rows.push_back(row);
        }
    }

    Decision decide(std::uint64_t bytes) const {
        if (topology.size() <= 1) return {std::nullopt, "one rank"};
        if (selection.forced) {
            const std::string_view refused = refuse(*selection.forced, problem(bytes), topology);
            if (refused.empty()) return {selection.forced, "asked for"};
            return {std::nullopt, "asked for, but " + std::string(refused)};
        }
        if (bytes == 0 && collective != Collective::barrier) return {std::nullopt, "no bytes"};
        for (const TuningRow& row : rows)
            if (row.bytes.has(bytes))
                return {row.choice,
                        row.tried ? "tuning table, in turns with the MPI library" : "tuning table", row.tried,
                        row.over_library, row.only_in_memory};
        if (topology.nodes() <= 1) return {std::nullopt, "one host"};
        if (topology.size() == 2 && !selection.overlapped) return {std::nullopt, "two ranks"};
        if (bytes < small()) return {std::nullopt, "small message"};
        const Candidate best =
            robust_candidate(collective, problem(rounded(bytes)), topology, selection.machine).candidate;
        return {best.choice, std::string(by_model) + time_text(best.predicted), tries_model(), tries_model()};
    }

    // The same, asked of the model once: as a communicator of a thousand hosts that is made again and again
    // would have it search anew.
    Decision decide_once(std::uint64_t bytes) const {
        constexpr std::size_t most_known = 1024;  // more than there are classes
        if (selection.forced) return decide(bytes);
        const std::uint64_t same = class_of(bytes);
        {
            const std::lock_guard lock(mutex);
            if (const auto found = known.find(same); found != known.end()) return found->second;
        }
        Decision made = decide(bytes);
        const std::lock_guard lock(mutex);
        if (known.size() >= most_known) known.clear();
        known.emplace(same, made);
        return made;
    }

    // A program whose calls are all of medium size has a network, too.
    bool opens() const { return selection.unknown && !selection.overlapped; }

    bool tries_model() const {
        // Alltoalls are tried whatever speaks for them, and no barrier that blocks is taken.
        return selection.tries_model && !selection.overlapped && collective != Collective::alltoallv &&
               collective != Collective::barrier;
    }

    bool tries(std::uint64_t bytes) const {
        if ((!any_tried && !tries_model()) || selection.forced || topology.size() <= 1) return false;
        for (const TuningRow& row : rows)
            if (row.bytes.has(bytes)) return row.tried;
        return tries_model() && topology.nodes() > 1 && topology.size() > 2 && bytes >= small();
    }

    // The steps of decide(), each with a number of its own; rows and rounded sizes likewise.
    std::uint64_t class_of(std::uint64_t bytes) const {
        if (topology.size() <= 1) return 0;
        if (selection.forced) return bytes;
        if (bytes == 0 && collective != Collective::barrier) return 0;
        for (std::size_t i = 0; i < rows.size(); ++i)
            if (rows[i].bytes.has(bytes)) return i + 1;
        const std::uint64_t after_rows = rows.size() + 1;
        if (topology.nodes() <= 1 || (topology.size() == 2 && !selection.overlapped)) return after_rows;
        if (bytes < small()) return after_rows + 1;
        return after_rows + 2 + rounded(bytes);
    }

    // Decisions change only at the edges of rows and where messages stop being small.
    std::uint64_t find_native_below() const {
        std::vector<std::uint64_t> edges = {0, 1, small()};
        for (const TuningRow& row : rows) {
            edges.push_back(row.bytes.low);
            if (row.bytes.high != never) edges.push_back(row.bytes.high + 1);
        }
        std::sort(edges.begin(), edges.end());
        for (std::uint64_t edge : edges)
            if (decide(edge).choice) return edge;
        return never;
    }
};

Status check_table(std::string_view json, std::string& why) {
    std::vector<TuningTable> tables;
    return parse_tables(json, tables, why);
}

Selector::Selector(Collective collective, const Topology& topology, const Selection& selection)
    : impl_(new Impl{collective, topology, selection, {}, 0, false}) {
    for (const TuningTable& table : tables_in(selection.table)) impl_->prune(table);
    for (const TuningTable& table : built_in_tuning()) impl_->prune(table);
    impl_->native_below = impl_->find_native_below();
    for (const TuningRow& row : impl_->rows) impl_->any_tried |= row.tried;
}
Selector::~Selector() = default;
Selector::Selector(Selector&&) noexcept = default;
Selector& Selector::operator=(Selector&&) noexcept = default;

Decision Selector::decide(std::uint64_t bytes) const { return impl_->decide_once(bytes); }
Decision Selector::decide_uneven(Decision in_rounds, std::uint64_t mean_bytes) const {
    const auto& rows = impl_->uneven;
    const auto row = std::find_if(rows.begin(), rows.end(),
                                  [mean_bytes](const TuningRow& one) { return one.bytes.has(mean_bytes); });
    if (row == rows.end()) return in_rounds;
    if (!row->choice) return {std::nullopt, "messages of uneven sizes"};
    in_rounds.choice = row->choice;
    return in_rounds;
}
bool Selector::tries(std::uint64_t bytes) const { return impl_->tries(bytes); }
std::uint64_t Selector::class_of(std::uint64_t bytes) const { return impl_->class_of(bytes); }
std::uint64_t Selector::native_below() const { return impl_->native_below; }

Decision decide(Collective collective, std::uint64_t bytes, const Topology& topology,
                const Selection& selection) {
    return Selector(collective, topology, selection).decide(bytes);
}

namespace {

// The fewest bytes of any row that chooses an algorithm and is meant: of which `least(row, built_in)` bytes
// are asked for, `never` where it is not.
template <typename Least>
std::uint64_t smallest_row(Collective collective, const std::string& table, const Least& least) {
    std::uint64_t smallest = never;
    const auto look_at = [&](const TuningTable& read, bool built_in) {
        if (read.collective != collective) return;
        for (const TuningRow& row : read.rows)
            if (row.choice) smallest = std::min(smallest, least(row, built_in));
    };
    for (const TuningTable& read : tables_in(table)) look_at(read, false);
    for (const TuningTable& read : built_in_tuning()) look_at(read, true);
    return smallest;
}

// What a built-in row says of fewer ranks than a job has on its host concerns some of its communicators, and
// those that are smaller than this would have all others looked at.
constexpr std::uint64_t least_of_few = 256 << 10;

}  // namespace

std::uint64_t smallest_on_one_host(Collective collective, const Selection& selection, std::uint64_t ranks) {
    return smallest_row(
        collective, selection.table, [&selection, ranks](const TuningRow& row, bool built_in) {
            const bool meant = row.hosts.has(1) && row.ppn.low <= ranks &&
                               speaks_of(row, selection.family, selection.library) && means(row, selection) &&
                               (selection.overlapped || meant_for(row, selection.sleeps));
            if (!meant) return never;
            return built_in && row.ppn.high < ranks ? std::max(row.bytes.low, least_of_few) : row.bytes.low;
        });
}

std::uint64_t smallest_taken(Collective collective, const std::string& table, bool overlapped) {
    return std::min({small_bytes(collective, overlapped), overlapped ? never : small_tried_bytes(collective),
                     smallest_row(collective, table, [overlapped](const TuningRow& row, bool) {
                         return (overlapped ? row.overlapped : row.blocking) ? row.bytes.low : never;
                     })});
}

Explanation explain(Collective collective, std::uint64_t bytes, const Topology& topology,
                    const Selection& selection) {
    Explanation explanation;
    const Pieces pieces = collective == Collective::bcast ? pieces_of(bytes) : Pieces{bytes, 1};
    // Between hosts blocking alltoalls run as nonblocking ones do, and are tried whatever speaks for them.
    const bool exchanges =
        collective == Collective::alltoallv && topology.nodes() > 1 && !selection.overlapped;
    Selection decided = selection;
    decided.overlapped |= exchanges;
    explanation.decision = decide(collective, pieces.bytes, topology, decided);
    std::string& reason = explanation.decision.reason;
    Problem problem;
    problem.size = topology.size();
    if (reason.starts_with(by_model)) {
        problem.bytes = rounded(pieces.bytes);
        if (const auto cheapest = robust_candidate(collective, problem, topology, selection.machine).cheapest)
            reason += ", which stands a late rank better than the cheapest predicted, " + to_text(*cheapest);
    }
    const bool by_turns = reason.starts_with(by_model) && explanation.decision.tried;
    if (pieces.count > 1 && explanation.decision.choice)
        reason +=
            ", for each of " + std::to_string(pieces.count) + " pieces of up to " + bytes_text(pieces.bytes);
    if (by_turns || (exchanges && explanation.decision.choice && !selection.forced))
        reason += std::string("; calls ") +
                  (collective == Collective::allreduce ? "that do not round " : "") +
                  "take turns with the MPI library's own until it is known which is faster";
    problem.bytes = bytes;
    explanation.limit = wire_limit(collective, bytes, topology, selection.machine);
    explanation.candidates =
        all_candidates(collective, problem, topology, selection.machine, explanation.decision.choice);
    for (Candidate& candidate : explanation.candidates)
        candidate.chosen = explanation.decision.choice && candidate.choice == *explanation.decision.choice;
    return explanation;
}

}  // namespace thalweg
