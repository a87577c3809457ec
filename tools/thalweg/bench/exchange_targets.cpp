#include "bench/exchange_targets.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <tuple>
#include <utility>

#include "bench/columns.h"
#include "bench/table.h"

namespace thalweg::bench {
namespace {

constexpr std::uint64_t kib = 1024;
// From this size on the wire's time is what counts; and up to this messages are small.
constexpr std::uint64_t wire_bytes = 32 * kib, small_bytes = 2 * kib;
constexpr double near_limit = 1.10;
constexpr double gain_target = 1.3, intel_gain_target = 1.1, ceiling_share = 0.90;
// What a ceiling takes a call to need at least, in limits: what crosses a wire has to begin and to end, too.
constexpr double attainable = 1.05;
constexpr double aggregation_target = 1.5;
constexpr double fence_target = 0.44, fence_share = 0.80, least_ceiling = 0.10;
constexpr double foresight_share = 0.9;
// Of a TCP segment on Ethernet. Each may be acknowledged by itself, and proof is given within a tenth.
constexpr std::uint64_t segment_bytes = 1448;
constexpr double packets_per_segment = 2 * 1.1;
// Of the packets that the same messages take straight to their ranks. From 1 KiB on the segments alone bound
// nothing: several leave an interface as one packet.
constexpr double packets_of_straight = 0.6;

std::string place_of(const ExchangeLine& line) {
    return line.shape + (line.rate.empty() ? "" : ", " + line.rate);
}
std::string point_text(const ExchangeLine& line) {
    return fmt::format("{}, {}", line.pattern, bytes_text(line.bytes));
}

// Targets that each point reaches or not, place by place, in the order in which they were first met.
class Tally {
  public:
    // `badness`: the larger, the worse.
    void add(std::string_view target, const ExchangeLine& line, bool reached, bool undecided, double badness,
             const std::string& value) {
        const std::string key = fmt::format("{}|{}|{}|{}", target, line.column, line.mpi, place_of(line));
        const auto [at, fresh] = index_.try_emplace(key, targets_.size());
        if (fresh) {
            targets_.push_back({std::string(target), line.column, line.mpi, place_of(line), 0, 0, 0, ""});
            worst_.push_back(0);
        }
        ExchangeTarget& place = targets_[at->second];
        ++place.points;
        place.reached += reached;
        place.undecided += undecided;
        if (!place.worst.empty() && badness <= worst_[at->second]) return;
        worst_[at->second] = badness;
        place.worst = value + " at " + point_text(line);
    }
    std::vector<ExchangeTarget> take() { return std::move(targets_); }

  private:
    std::map<std::string, std::size_t> index_;
    std::vector<ExchangeTarget> targets_;
    std::vector<double> worst_;
};

bool is_choice(const ExchangeLine& line) {
    return (line.column == automatic || line.column == automatic_plan) && line.samples > 0;
}

void add_points(Tally& tally, const std::vector<ExchangeLine>& lines) {
    for (const ExchangeLine& line : lines)
        if (is_choice(line) && line.bytes >= wire_bytes && line.of_limit() > 0)
            tally.add("<= 1.10 x limit, from 32 KiB", line, line.of_limit() <= near_limit, false,
                      line.of_limit(), fmt::format("{:.2f}", line.of_limit()));
    for (const ExchangeLine& line : lines) {
        if (!is_choice(line) || line.of_best.value <= 0) continue;
        const Verdict decision = verdict(line.of_best);
        tally.add("not slower than the best of MPI_Alltoallv and MPI_Alltoallv_init", line,
                  decision == Verdict::not_slower, decision == Verdict::undecided, line.of_best.value,
                  fmt::format("{:.2f} [{:.2f}, {:.2f}] of {}", line.of_best.value, line.of_best.interval.low,
                              line.of_best.interval.high, line.best_native));
    }
}

// Leaders of hosts, and the same messages straight to their ranks, as natives send them, on the same engine.
void add_small(Tally& tally, const std::vector<ExchangeLine>& lines) {
    const std::string by_leaders = std::string(automatic_plan) + " node_leader";
    const std::string straight = std::string(automatic_plan) + " spread";
    for (const ExchangeLine& line : lines) {
        int hosts = 0, ppn = 0;
        if (line.column != by_leaders || line.samples == 0 || line.bytes > small_bytes ||
            std::sscanf(line.shape.c_str(), "%dx%d", &hosts, &ppn) != 2 || hosts < 2 || ppn < 2)
            continue;
        const auto twin = std::find_if(lines.begin(), lines.end(), [&](const ExchangeLine& each) {
            return each.column == straight && each.launch == line.launch && each.pattern == line.pattern &&
                   each.bytes == line.bytes && each.mpi == line.mpi && each.samples > 0;
        });
        if (twin != lines.end() && line.pattern == "dense") {
            const double gain = twin->seconds / line.seconds;
            tally.add("aggregation >= 1.5 x, by the algorithm alone, up to 2 KiB", line,
                      gain >= aggregation_target, false, -gain, fmt::format("{:.2f}", gain));
        }
        if (line.pattern != "dense" || line.tx_packets < 0) continue;
        const int needed = packets_by_hosts(hosts, ppn, line.bytes);
        double of_most = line.tx_packets / (packets_per_segment * needed);
        std::string value = fmt::format("{:.1f} for {} segments", line.tx_packets, needed);
        if (twin != lines.end() && twin->tx_packets >= 0) {
            of_most = std::max(of_most, line.tx_packets / (packets_of_straight * twin->tx_packets));
            value += fmt::format(" ({:.1f} straight)", twin->tx_packets);
        }
        tally.add("one message per pair of hosts, by packets of the busiest host", line, of_most <= 1, false,
                  of_most, value);
    }
}

ExchangeTarget over_all(std::string target, std::string column, std::string mpi, bool reached,
                        std::string value) {
    return {std::move(target), std::move(column), std::move(mpi), "", 1, reached, 0, std::move(value)};
}

// The geometric mean over patterns, sizes and shapes, and the ceiling over those where a link limits: were
// each at 1.05 times its limit. Where nine tenths of that are less than the target, they are the target. Of
// gains that are split, the algorithm's share has to reach it too: waiting is no merit of a plan.
class Gains {
  public:
    void add(double gain, double of_limit) {
        all_.push_back(gain);
        if (of_limit <= 0) return;
        limited_.push_back(gain);
        most_.push_back(gain * of_limit / attainable);
    }
    bool reaches(double target) const {
        if (all_.empty()) return true;
        const double most = ceiling_share * geometric_mean(most_);
        if (!most_.empty() && most < target) return geometric_mean(limited_) >= most;
        return geometric_mean(all_) >= target;
    }
    std::string text() const {
        if (most_.empty()) return fmt::format("{:.2f} of {} points", geometric_mean(all_), all_.size());
        return fmt::format("{:.2f} of {} points ({:.2f} of the {} where a link limits; ceiling {:.2f})",
                           geometric_mean(all_), all_.size(), geometric_mean(limited_), limited_.size(),
                           geometric_mean(most_));
    }
    bool empty() const { return all_.empty(); }

  private:
    std::vector<double> all_, limited_, most_;
};

void add_means(std::vector<ExchangeTarget>& all, const std::vector<ExchangeLine>& lines) {
    struct Both {
        Gains total, algorithm;
    };
    std::map<std::pair<std::string, std::string>, Both> by_mpi;
    for (const ExchangeLine& line : lines) {
        if (!is_choice(line) || line.of_native.value <= 0) continue;
        Both& gains = by_mpi[{line.mpi, line.column}];
        gains.total.add(1 / line.of_native.value, line.of_limit());
        if (line.waiting > 0) gains.algorithm.add(line.algorithm(), line.of_limit());
    }
    for (const auto& [key, gains] : by_mpi) {
        const auto& [mpi, column] = key;
        const double bound = mpi == "impi" ? intel_gain_target : gain_target;
        all.push_back(
            over_all(fmt::format("native / Thalweg >= {:.1f}, or 90 % of its ceiling", bound), column, mpi,
                     gains.total.reaches(bound) && gains.algorithm.reaches(bound),
                     gains.total.text() +
                         (gains.algorithm.empty() ? "" : ", by the algorithm " + gains.algorithm.text())));
    }
}

void add_foresight(std::vector<ExchangeTarget>& all, const std::vector<ExchangeLine>& lines) {
    std::map<std::string, std::vector<ExchangeLine>> by_mpi;
    for (const ExchangeLine& line : lines)
        if (line.foresight != Foresight::unknown) by_mpi[line.mpi].push_back(line);
    for (const auto& [mpi, own] : by_mpi) {
        const ForesightCount count = count_foresight(own);
        const auto agree = static_cast<double>(count.agree()), decided = static_cast<double>(count.decided());
        all.push_back(over_all(
            "predicted N* agrees, 9 of 10", "plans", mpi, decided > 0 && agree >= foresight_share * decided,
            fmt::format("{} of {}; {} undecided", count.agree(), count.decided(), count.undecided)));
    }
}

void add_fences(std::vector<ExchangeTarget>& all, const std::vector<WindowLine>& lines) {
    struct Found {
        const WindowLine* most = nullptr;
        int parted = 0, reached = 0;
        std::vector<std::uint64_t> at_once;
    };
    std::map<std::tuple<std::string, std::string, std::string>, Found> places;
    for (const WindowLine& line : lines) {
        if (line.pattern != "dense") continue;
        Found& found = places[{line.mpi, line.shape, line.plan}];
        if (found.most == nullptr || line.reduction > found.most->reduction) found.most = &line;
        if (line.ceiling() > least_ceiling) {
            ++found.parted;
            found.reached += line.of_ceiling() >= fence_share;
        }
        if (line.pays.calls <= immediate_payoff) found.at_once.push_back(line.bytes);
    }
    for (auto& [key, found] : places) {
        const auto& [mpi, shape, plan] = key;
        const auto largest =
            fmt::format("{:.1f} % at {}", 100 * found.most->reduction, bytes_text(found.most->bytes));
        if (mpi == "openmpi" && shape == "4x1")
            all.push_back({"a plan over fences saves >= 44 %", plan, mpi, shape, 1,
                           found.most->reduction >= fence_target, 0, largest});
        if (found.parted > 0)
            all.push_back({"80 % of the ceiling, where that exceeds 10 %", plan, mpi, shape, found.parted,
                           found.reached, 0, "most saved: " + largest});
        std::sort(found.at_once.begin(), found.at_once.end());
        std::string sizes;
        for (const std::uint64_t bytes : found.at_once)
            sizes += (sizes.empty() ? "" : ", ") + bytes_text(bytes);
        all.push_back(
            {"pays at once (no target)", plan, mpi, shape, 0, 0, 0, sizes.empty() ? "never" : sizes});
    }
}

}  // namespace

int packets_by_hosts(int hosts, int ppn, std::uint64_t bytes) {
    const std::uint64_t message = bytes * static_cast<std::uint64_t>(ppn * ppn);
    return (hosts - 1) * static_cast<int>((message + segment_bytes - 1) / segment_bytes);
}

std::vector<ExchangeTarget> judge_exchange(const std::vector<ExchangeLine>& lines,
                                           const std::vector<WindowLine>& windows) {
    Tally tally;
    add_points(tally, lines);
    add_small(tally, lines);
    std::vector<ExchangeTarget> all = tally.take();
    add_means(all, lines);
    add_foresight(all, lines);
    add_fences(all, windows);
    return all;
}

std::string format_exchange_targets(const std::vector<ExchangeTarget>& targets, bool markdown) {
    if (targets.empty()) return "";
    std::vector<std::vector<std::string>> cells{
        {"target", "column", "MPI", "hosts x ranks, rate", "verdict", "points", "undecided", "worst"}};
    for (const ExchangeTarget& each : targets)
        cells.push_back({each.target, each.column, each.mpi, each.place.empty() ? "all" : each.place,
                         each.points == 0 ? "-"
                         : each.met()     ? "reached"
                                          : "not reached",
                         each.points == 0 ? "-" : fmt::format("{} of {}", each.reached, each.points),
                         fmt::format("{}", each.undecided), each.worst});
    return format_cells(cells, markdown);
}

}  // namespace thalweg::bench
