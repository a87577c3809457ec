#include "bench/broadcast_targets.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string_view>

namespace thalweg::bench {
namespace {

constexpr std::uint64_t kib = 1024, mib = 1024 * kib;
constexpr std::uint64_t from_bytes = 64 * kib, to_bytes = 16 * mib;  // what is judged at all
constexpr double mean_gain = 2.0;

// Time over the limit, of calls of `from` to `to` bytes.
struct NearLimit {
    const char* target;
    std::string_view collective;
    std::uint64_t from, to;
    double most;
};
constexpr NearLimit of_broadcasts[] = {{"<= 1.10 x limit, from 4 MiB", "bcast", 4 * mib, to_bytes, 1.10},
                                       {"<= 1.20 x limit, 1 MiB", "bcast", mib, mib, 1.20},
                                       {"<= 1.5 x limit, 256 KiB", "bcast", 256 * kib, 256 * kib, 1.5}};
// As the nonblocking ones (overlap_targets.cpp).
constexpr std::uint64_t any_size = std::numeric_limits<std::uint64_t>::max();
constexpr NearLimit of_blocking[] = {
    {"allgather <= 1.10 x limit, from 256 KiB", "allgather", 256 * kib, any_size, 1.10},
    {"allreduce <= 1.25 x limit, from 1 MiB", "allreduce", mib, any_size, 1.25}};

using ByMpi = std::map<std::string, std::vector<Summary>>;

// Counts points of one target, remembering the worst and what carried them.
class Counted {
  public:
    Counted(std::string target, const std::string& mpi) { made_.target = std::move(target), made_.mpi = mpi; }
    // `badness`: the larger, the worse.
    void add(const Summary& line, bool reached, double badness, const std::string& value) {
        ++made_.points;
        made_.reached += reached && !line.screened_only;
        carried_.insert(line.transport.empty() ? "not said" : line.transport);
        if (!made_.worst.empty() && badness <= worst_) return;
        worst_ = badness;
        made_.worst = fmt::format("{} at {}, {}", value, line.shape, bytes_text(line.bytes));
    }
    BroadcastTarget take() {
        made_.carried = fmt::format("{}", fmt::join(carried_, ", "));
        return std::move(made_);
    }

  private:
    BroadcastTarget made_;
    std::set<std::string> carried_;
    double worst_ = 0;
};

// One target under each MPI.
void judge_limit(const NearLimit& target, const ByMpi& by_mpi, std::vector<BroadcastTarget>& judged) {
    for (const auto& [mpi, own] : by_mpi) {
        Counted counted(target.target, mpi);
        for (const Summary& line : own) {
            if (line.collective != target.collective || line.bytes < target.from || line.bytes > target.to ||
                line.limit_seconds <= 0)
                continue;
            const double of_limit = line.ours_seconds / line.limit_seconds;
            counted.add(
                line, of_limit <= target.most, of_limit,
                fmt::format("{:.2f}{}", of_limit, line.algorithm == "native" ? " (left to the MPI)" : ""));
        }
        judged.push_back(counted.take());
    }
}

void drop_empty(std::vector<BroadcastTarget>& judged) {
    std::erase_if(judged, [](const BroadcastTarget& each) { return each.points == 0; });
}

BroadcastTarget mean_of(const std::string& mpi, const std::vector<Summary>& lines) {
    std::vector<double> gains, algorithms, split, at_least;  // the last: 1 where nothing tells what it is
    std::set<std::string> carried;
    for (const Summary& line : lines) {
        if (line.against_default.value <= 0) continue;
        gains.push_back(1 / line.against_default.value);
        carried.insert(line.transport.empty() ? "not said" : line.transport);
        const double algorithm = line.twin_seconds > 0 ? line.twin_seconds / line.ours_seconds : 1;
        at_least.push_back(algorithm);
        if (line.twin_seconds <= 0) continue;
        algorithms.push_back(algorithm);
        split.push_back(line.native_seconds / line.ours_seconds);
    }
    BroadcastTarget made;
    made.target = "native / Thalweg >= 2, geometric mean";
    made.mpi = mpi;
    made.points = gains.empty() ? 0 : 1;
    const double mean = geometric_mean(gains);
    // Waiting is no merit of an algorithm: where the gain is split its share has to be large enough, too.
    made.reached = mean >= mean_gain && (algorithms.empty() || geometric_mean(algorithms) >= mean_gain);
    made.worst = fmt::format("{:.2f} of {} points", mean, gains.size());
    if (!algorithms.empty())
        made.worst += fmt::format("; by the algorithm {:.2f} of {:.2f} at {}", geometric_mean(algorithms),
                                  geometric_mean(split), algorithms.size());
    if (!algorithms.empty() && algorithms.size() < gains.size())
        made.worst += fmt::format(", {:.2f} if the others had none", geometric_mean(at_least));
    made.carried = fmt::format("{}", fmt::join(carried, ", "));
    return made;
}

}  // namespace

std::vector<BroadcastTarget> judge_broadcasts(const std::vector<Summary>& lines) {
    ByMpi by_mpi;
    for (const Summary& line : lines)
        if (line.bytes >= from_bytes && line.bytes <= to_bytes) by_mpi[line.mpi].push_back(line);
    std::vector<BroadcastTarget> all;
    for (const NearLimit& each : of_broadcasts) judge_limit(each, by_mpi, all);
    for (const auto& [mpi, own] : by_mpi) {
        Counted counted("not slower than the best native", mpi);
        for (const Summary& line : own)
            counted.add(line, line.decision == Verdict::not_slower, line.against_best.value,
                        fmt::format("{:.3f} [{:.3f}, {:.3f}] of {}", line.against_best.value,
                                    line.against_best.interval.low, line.against_best.interval.high,
                                    line.best_native));
        all.push_back(counted.take());
    }
    for (const auto& [mpi, own] : by_mpi) all.push_back(mean_of(mpi, own));
    drop_empty(all);
    return all;
}

std::vector<BroadcastTarget> judge_blocking(const std::vector<Summary>& lines) {
    ByMpi by_mpi;
    for (const Summary& line : lines) by_mpi[line.mpi].push_back(line);
    std::vector<BroadcastTarget> all;
    for (const NearLimit& each : of_blocking) judge_limit(each, by_mpi, all);
    drop_empty(all);
    return all;
}

std::string format_broadcast_targets(const std::vector<BroadcastTarget>& targets, bool markdown) {
    if (targets.empty()) return "";
    std::vector<std::vector<std::string>> cells{
        {"target", "MPI", "verdict", "points", "worst", "carried by"}};
    for (const BroadcastTarget& each : targets)
        cells.push_back({each.target, each.mpi, each.met() ? "reached" : "not reached",
                         fmt::format("{} of {}", each.reached, each.points), each.worst, each.carried});
    return format_cells(cells, markdown);
}

}  // namespace thalweg::bench
