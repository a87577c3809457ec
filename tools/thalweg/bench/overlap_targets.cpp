// What nonblocking collectives shall reach, and whether the rows of the automatic choice do.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "bench/columns.h"
#include "bench/overlap_table.h"
#include "bench/table.h"

namespace thalweg::bench {
namespace {

constexpr std::uint64_t kib = 1024, mib = 1024 * kib;

// Where nearly everything shall hide, and where most of it shall.
bool is_long(const OverlapLine& line) {
    return line.limit_seconds > 0 && (line.bytes >= 256 * kib || line.limit_seconds >= 20e-3);
}
bool is_medium(const OverlapLine& line) {
    return !is_long(line) && line.bytes >= 16 * kib && line.limit_seconds >= 3e-3;
}
// Long enough for a computation beside it to tell something.
bool on_the_wire(const OverlapLine& line) { return line.limit_seconds >= 1e-3; }
bool is(const OverlapLine& line, std::string_view collective, std::uint64_t from_bytes) {
    return line.collective == collective && line.bytes >= from_bytes && line.limit_seconds > 0;
}

// What a target is of: what hides, how long calls take, or neither.
enum class Of : std::uint8_t { other, overlap, time };

struct Target {
    std::string_view text;
    bool (*concerns)(const OverlapLine&);
    double (*value)(const OverlapLine&);
    double bound;
    bool at_least;  // else at most
    std::string (*show)(double);
    bool comparable = false;  // the reference has this value too
    // Where the value alone does not decide.
    bool (*excused)(const OverlapLine&) = nullptr;
    Of of = Of::other;
};

std::string as_percent(double value) { return fmt::format("{:.1f} %", value); }
std::string as_ratio(double value) { return fmt::format("{:.3f}", value); }
std::string as_limit(double value) { return fmt::format("{:.2f} x limit", value); }

// The sockets' thread does what the agent does, and nothing else: what no agent can do without.
double agent_share(const OverlapLine& line) {
    const double seconds = line.column == socket_reference ? line.other_cpu_seconds : line.agent_cpu_seconds;
    return line.pure_seconds > 0 ? 100 * seconds / line.pure_seconds : 0;
}

const std::vector<Target>& targets() {
    using Line = const OverlapLine&;
    static const std::vector<Target> all{
        {"OSU overlap >= 95 %, from 256 KiB or a limit of 20 ms", is_long, [](Line l) { return l.osu; }, 95,
         true, as_percent, true, nullptr, Of::overlap},
        {"IMB overlap >= 90 %, from 256 KiB or a limit of 20 ms", is_long, [](Line l) { return l.imb; }, 90,
         true, as_percent, true, nullptr, Of::overlap},
        {"agent CPU <= 5 % of the pure time, from 256 KiB or a limit of 20 ms", is_long, agent_share, 5,
         false, as_percent, true},
        {"OSU overlap >= 85 %, from 16 KiB with a limit of 3 ms", is_medium, [](Line l) { return l.osu; }, 85,
         true, as_percent, true, nullptr, Of::overlap},
        {"visible time <= 0.5 ms, from 16 KiB with a limit of 3 ms", is_medium,
         [](Line l) { return l.visible_seconds; }, 0.5e-3, false, time_text, true},
        {"compute dilation <= 1.03, arithmetic-bound",
         [](Line l) { return on_the_wire(l) && l.dilation_arithmetic.value > 0; },
         [](Line l) { return l.dilation_arithmetic.value; }, 1.03, false, as_ratio},
        {"compute dilation <= 1.05, memory-bound",
         [](Line l) { return on_the_wire(l) && l.dilation_memory.value > 0; },
         [](Line l) { return l.dilation_memory.value; }, 1.05, false, as_ratio},
        {"allgather <= 1.10 x limit, from 256 KiB", [](Line l) { return is(l, "iallgather", 256 * kib); },
         [](Line l) { return l.of_limit(); }, 1.10, false, as_limit, true, nullptr, Of::time},
        {"broadcast <= 1.30 x limit, from 256 KiB", [](Line l) { return is(l, "ibcast", 256 * kib); },
         [](Line l) { return l.of_limit(); }, 1.30, false, as_limit, true, nullptr, Of::time},
        {"broadcast <= 1.10 x limit, from 1 MiB", [](Line l) { return is(l, "ibcast", mib); },
         [](Line l) { return l.of_limit(); }, 1.10, false, as_limit, true, nullptr, Of::time},
        {"allreduce <= 1.25 x limit, from 1 MiB", [](Line l) { return is(l, "iallreduce", mib); },
         [](Line l) { return l.of_limit(); }, 1.25, false, as_limit, true, nullptr, Of::time},
        {"pure time not slower than the native blocking call, from 16 KiB",
         [](Line l) { return l.bytes >= 16 * kib && l.of_blocking.value > 0; },
         [](Line l) { return l.of_blocking.value; }, 1.03, false, as_ratio, false,
         [](Line l) { return verdict(l.of_blocking) == Verdict::not_slower; }, Of::time},
        {"communication with equal work not longer than native's",
         [](Line l) { return on_the_wire(l) && l.of_native.value > 0; },
         [](Line l) { return l.of_native.value; }, 1.03, false, as_ratio, false,
         [](Line l) { return verdict(l.of_native) == Verdict::not_slower; }, Of::time},
    };
    return all;
}

const OverlapLine* reference_of(const OverlapLine& line, const std::vector<OverlapLine>& lines) {
    for (const OverlapLine& each : lines)
        if (each.column == socket_reference && each.collective == line.collective && each.mpi == line.mpi &&
            each.shape == line.shape && each.rate == line.rate && each.rails == line.rails &&
            each.bytes == line.bytes)
            return &each;
    return nullptr;
}

bool has_value(const Target& target, const OverlapLine& line) {
    const double value = target.value(line);
    return (target.at_least ? value >= target.bound : value <= target.bound) ||
           (target.excused != nullptr && target.excused(line));
}

// A slow call hides easily: what does counts only where the pure time reaches its own targets, and the call
// with equal work that of not being longer than native's.
bool hiding_counts(const OverlapLine& line) {
    return std::all_of(targets().begin(), targets().end(), [&](const Target& each) {
        return each.of != Of::time || !each.concerns(line) || has_value(each, line);
    });
}

bool reaches(const Target& target, const OverlapLine& line) {
    return has_value(target, line) && (target.of != Of::overlap || hiding_counts(line));
}

std::string_view remark_on(const Target& target, const OverlapLine& line) {
    if (has_value(target, line) && !reaches(target, line)) return " (does not count)";
    return line.algorithm.starts_with("native") ? " (left to the MPI)" : "";
}

}  // namespace

std::vector<TargetLine> judge(const std::vector<OverlapLine>& lines) {
    using Place = std::tuple<std::string, std::string, std::string>;
    std::vector<TargetLine> judged;
    for (const Target& target : targets()) {
        std::map<Place, TargetLine> by_place;
        std::map<Place, const OverlapLine*> worst;
        // What was missed is worse than what was not.
        const auto is_worse = [&target](const OverlapLine& a, const OverlapLine& b) {
            if (reaches(target, a) != reaches(target, b)) return reaches(target, b);
            return target.at_least ? target.value(a) < target.value(b) : target.value(a) > target.value(b);
        };
        for (const OverlapLine& line : lines) {
            if (line.column != automatic || !line.stopped.empty() || !target.concerns(line)) continue;
            const Place key(line.collective, line.mpi, line.place());
            TargetLine& place = by_place[key];
            place.target = target.text;
            place.collective = line.operation();
            place.mpi = line.mpi;
            place.place = line.place();
            ++place.points;
            place.reached += reaches(target, line);
            place.short_of_samples += line.samples < wanted_samples;
            const OverlapLine*& known = worst[key];
            if (known == nullptr || is_worse(line, *known)) known = &line;
        }
        for (auto& [key, place] : by_place) {
            const OverlapLine& line = *worst[key];
            place.worst = fmt::format("{} at {}{}", target.show(target.value(line)), bytes_text(line.bytes),
                                      remark_on(target, line));
            const OverlapLine* const reference = reference_of(line, lines);
            if (target.comparable && reference != nullptr)
                place.reference = target.show(target.value(*reference));
            judged.push_back(std::move(place));
        }
    }
    return judged;
}

std::string format_targets(const std::vector<TargetLine>& lines, bool markdown) {
    if (lines.empty()) return "";
    std::vector<std::vector<std::string>> cells{
        {"target", "collective", "MPI", "hosts x ranks, rate", "verdict", "points",
         fmt::format("below {} samples", wanted_samples), "worst", "sockets there"}};
    for (const auto& line : lines)
        cells.push_back(
            {line.target, line.collective, line.mpi, line.place,
             line.reached == line.points ? "reached" : "not reached",
             fmt::format("{} of {}", line.reached, line.points),
             line.short_of_samples == 0 ? "-" : fmt::format("{} of {}", line.short_of_samples, line.points),
             line.worst, line.reference.empty() ? "-" : line.reference});
    return format_cells(cells, markdown);
}

}  // namespace thalweg::bench
