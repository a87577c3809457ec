#include "bench/exchange_page.h"

#include <fmt/format.h>

#include <map>

#include "bench/columns.h"
#include "bench/exchange_targets.h"
#include "bench/payback.h"
#include "bench/table.h"

namespace thalweg::bench {
namespace {

// Packets are counted, rather than bytes, in exchanges of which so much crosses a link.
constexpr double fewest_packets_bytes = 64 << 10;

// Below it a ceiling is not told apart from noise.
constexpr double least_ceiling = 0.10;

std::string interval_text(const BreakEven& pays) {
    if (pays.calls == never && pays.low == never) return "never";
    return fmt::format("{} [{}, {}]", calls_text(pays.calls), calls_text(pays.low), calls_text(pays.high));
}

std::string best_text(const ExchangeLine& line) {
    if (!line.pays_best()) return "-";
    return interval_text(line.against_best) +
           (line.best_native == native_default ? "" : fmt::format(" ({})", line.best_native));
}

// What native / Thalweg is made of.
std::string factors_text(const ExchangeLine& line) {
    if (line.column != automatic_plan || line.ran.starts_with("native")) return "-";
    return line.waiting > 0 ? fmt::format("{:.2f} x {:.2f}", line.algorithm(), line.waiting) : "no twin";
}

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

constexpr const char* exchange_text = R"(
## Alltoallv, planned

What a plan saves in each call, what it costs once, and after how many calls it has paid for itself
([measuring](guide/measuring.md)). All columns of a point take turns; the receive buffers are poisoned before every
call, the data are different in every call, and every byte was checked.

**N\*** = (making and freeing the plan) / (a call without it - a call with it), not rounded, of medians, with its 95 %
bootstrap interval; *never*: a call with the plan is not faster. It is given against MPI_Alltoallv; against the **best
native** call that took turns with it, which may be MPI_Start and MPI_Wait of MPI_Alltoallv_init (said behind it; what
that plan costs is left out); and against the baseline of arXiv 2604.05099, which makes a window in every call. `-`:
that call did not take turns with it. Where it is small enough for the first call to pay:
[below](#when-a-plan-pays-at-once).

**Predicted**: N\* against MPI_Alltoallv before the plan is made, from what a program has seen by then: the native
call's time (here that of the A/A column, which takes no part in the measured N\*), its time at the smallest size
without what those bytes take on the link, and the link's rate (`forecast_plan` in src/model/exchange.h; `thalweg
explain alltoallv` says the same of `--once-us` and `--small-us`). The verdict beside it: *both never*, *within a
factor of 2*, or *NOT*. A point whose measured gain has zero in its 95 % interval is *undecided*, and is not counted.

**algorithm x waiting** splits native / Thalweg of the plan that is chosen, where it is ours: by the plan that sends the
same messages as the native default (all at once by MPICH's and Open MPI's sources, *spread*; between fewer than four
ranks in turns by Open MPI's, *pairwise*; Intel's are not public: *no twin*). **waiting** is native / that plan in the
launch that has both, **algorithm** the rest. A claim about an algorithm uses the first factor only.

**packets**: what left the busiest host in a call, acknowledgements too, by the kernel's interface counters, less what
leaves it around a call that does nothing; of exchanges of which at most 64 KiB cross a link. What the kernel hands to
the interface in one piece counts once.

)";

constexpr const char* targets_text = R"(
### Targets of planned exchanges

Of repeated calls (*thalweg*) and of plans (*thalweg init*) as they are chosen, over all patterns. *Not slower*: the
ratio of medians is at most 1.03, or its 95 % interval includes 1.00 and ends at or below 1.10. The **ceiling** is 1 -
limit / native, where a link limits; where a mean gain is split, the algorithm's share has to reach the target as well.
**Aggregation**: what goes from one host to another is one message (*node_leader*), beside the same messages straight to
their ranks on the same engine (*spread*), which is what the natives do.

)";

constexpr const char* gains_text = R"(
### What the chosen plans gain

MPI_Alltoallv / MPI_Start and MPI_Wait of *thalweg init*, geometric means over all points; **algorithm** and **waiting**
over those whose plan is ours and has a twin, beside the gain of the same points.

)";

constexpr const char* foresight_section = R"(
### Predicted N\* beside the measured one

How many plans, over all shapes, patterns and sizes, by MPI and column; each stands with both figures and its verdict in
the tables of its MPI. **agree**: *both never* or *within a factor of 2*, of those that are decided.

)";

constexpr const char* payback_text = R"(
### When a plan pays at once

Immediate payoff: N\* is at most 1.1, so that the first call has paid for the plan; the tenth is what measurements of
one call resolve. **pays at once**: where that begins and where it ends, neighbouring sizes as one range; **surely**:
the same of the end of N\*'s 95 % interval. The plan of arXiv 2604.05099, which reports pay-off at once from 32 KiB on,
is *rma_fence_barrier* against *window per call*. The pictures show N\* against the bytes of a pair where all pairs are
alike, by MPI and shape, and the level of 1.1; what never pays stands at the upper edge.

)";

constexpr const char* window_text = R"(
### Fences: a plan against a window made in every call

The comparison of arXiv 2604.05099, whose abstract reports up to 44 % less time and pay-off at once from 32 KiB on
another machine. **Set-up** is what the baseline does in every call and a plan does once: exchanging displacements,
agreeing whether a window is needed, freeing the old one and making a new one. A library may put some of that off
until the new window is first used: *window kept* is the same call over a window that is made once, and what it saves
has that in it. The **ceiling** is the larger of the two shares: the most that planning the window can save; what is
saved of it is told where it exceeds 10 %. A plan can save more, because it also puts the own block by a copy, begins
with another rank on every rank, and meets less often: *rma_fence_barrier* meets before its first fence as the
paper's code does, *rma_fence* leaves that out, because MPI promises that nothing reaches a window before its rank's
fence. **At once**: N\* is at most 1.1.

)";

}  // namespace

std::string format_exchange(const std::vector<ExchangeLine>& lines, bool markdown) {
    if (lines.empty()) return "";
    std::vector<std::vector<std::string>> cells{
        {"pattern", "hosts x ranks", "bytes", "column", "time", "time/limit", "of native",
         "algorithm x waiting", "plan", "N* (native)", "predicted", "verdict", "N* (best native)",
         "N* (window per call)", "link bytes", "packets", "samples", "ran"}};
    for (const auto& line : lines) {
        std::vector<std::string> row{line.pattern, place_text(line.shape, line.rate), bytes_text(line.bytes),
                                     line.column};
        if (!line.stopped.empty()) {
            row.resize(cells[0].size() - 1, "-");
            row.push_back(line.stopped);
            cells.push_back(row);
            continue;
        }
        const bool crosses = line.link_bytes > 0 && line.tx_bytes > 0;
        for (std::string& text : std::vector<std::string>{
                 time_text(line.seconds), line.of_limit() > 0 ? fmt::format("{:.2f}", line.of_limit()) : "-",
                 line.of_native.value > 0 ? fmt::format("{:.2f}", line.of_native.value) : "-",
                 factors_text(line), line.is_plan() ? time_text(line.init_seconds) : "-",
                 line.pays_native() ? interval_text(line.against_native) : "-",
                 line.foresight != Foresight::unknown ? calls_text(line.predicted_calls) : "-",
                 name_of(line.foresight), best_text(line),
                 line.pays_window() ? interval_text(line.against_window) : "-",
                 crosses ? fmt::format("{:.2f} x", line.tx_bytes / line.link_bytes) : "-",
                 crosses && line.link_bytes <= fewest_packets_bytes && line.tx_packets >= 0
                     ? fmt::format("{:.1f}", line.tx_packets)
                     : "-",
                 fmt::format("{}", line.samples), line.ran})
            row.push_back(std::move(text));
        cells.push_back(std::move(row));
    }
    return format_cells(cells, markdown);
}

std::string format_windows(const std::vector<WindowLine>& lines, bool markdown) {
    if (lines.empty()) return "";
    std::vector<std::vector<std::string>> cells{
        {"MPI", "hosts x ranks", "pattern", "bytes", "plan", "window per call", "of it set-up",
         "Start + Wait", "reduction", "set-up's share", "a kept window saves", "of ceiling", "N*", "at once",
         "window kept", "MPI_Alltoallv"}};
    for (const auto& line : lines)
        cells.push_back({line.mpi, place_text(line.shape, line.rate), line.pattern, bytes_text(line.bytes),
                         line.plan, time_text(line.once_seconds), time_text(line.set_up_seconds),
                         time_text(line.plan_seconds), percent(line.reduction), percent(line.set_up),
                         percent(line.kept_saves),
                         line.ceiling() > least_ceiling ? percent(line.of_ceiling()) : "-",
                         interval_text(line.pays), line.pays.calls <= immediate_payoff ? "yes" : "no",
                         time_text(line.kept_seconds), time_text(line.native_seconds)});
    return format_cells(cells, markdown);
}

std::string format_plan_gains(const std::vector<ExchangeLine>& lines, bool markdown) {
    struct Gains {
        std::vector<double> all, split, algorithm, waiting;
        std::size_t left = 0;
    };
    std::map<std::string, Gains> by_mpi;
    for (const ExchangeLine& line : lines) {
        if (line.column != automatic_plan || line.of_native.value <= 0) continue;
        Gains& gains = by_mpi[line.mpi];
        gains.all.push_back(1 / line.of_native.value);
        gains.left += line.ran.starts_with("native");
        if (line.waiting <= 0) continue;
        gains.split.push_back(1 / line.of_native.value);
        gains.algorithm.push_back(line.algorithm());
        gains.waiting.push_back(line.waiting);
    }
    if (by_mpi.empty()) return "";
    std::vector<std::vector<std::string>> cells{{"MPI", "points", "left to the MPI", "native / Thalweg",
                                                 "with a twin", "native / Thalweg there", "algorithm",
                                                 "waiting"}};
    const auto mean = [](const std::vector<double>& values) {
        return values.empty() ? "-" : fmt::format("{:.2f}", geometric_mean(values));
    };
    for (const auto& [mpi, gains] : by_mpi)
        cells.push_back({mpi, fmt::format("{}", gains.all.size()), fmt::format("{}", gains.left),
                         mean(gains.all), fmt::format("{}", gains.split.size()), mean(gains.split),
                         mean(gains.algorithm), mean(gains.waiting)});
    return format_cells(cells, markdown);
}

std::string foresight_text(const std::vector<ExchangeLine>& lines) {
    const ForesightCount count = count_foresight(lines);
    if (count.decided() == 0) return fmt::format("Predicted N*: {} plans undecided.", count.undecided);
    const double share = static_cast<double>(count.agree()) / static_cast<double>(count.decided());
    return fmt::format(
        "Predicted N* agrees with the measured one for {} of {} plans ({}): both are never for {}, within a "
        "factor of 2 for {}. {} are undecided.",
        count.agree(), count.decided(), percent(share), count.both_never, count.within_two, count.undecided);
}

std::string format_foresight(const std::vector<ExchangeLine>& lines, bool markdown) {
    std::vector<std::vector<std::string>> cells{
        {"MPI", "column", "both never", "within a factor of 2", "not", "agree", "undecided"}};
    const auto add = [&cells](const std::string& mpi, const std::string& column,
                              const std::vector<ExchangeLine>& own) {
        const ForesightCount count = count_foresight(own);
        if (count.empty()) return;
        cells.push_back({mpi, column, fmt::format("{}", count.both_never),
                         fmt::format("{}", count.within_two), fmt::format("{}", count.differ),
                         fmt::format("{} of {}", count.agree(), count.decided()),
                         fmt::format("{}", count.undecided)});
    };
    std::map<std::string, std::map<std::string, std::vector<ExchangeLine>>> by_mpi;
    for (const ExchangeLine& line : lines) by_mpi[line.mpi][line.column].push_back(line);
    for (const auto& [mpi, columns] : by_mpi) {
        for (const auto& [column, own] : columns) add(mpi, column, own);
        add(mpi, "all", lines_of(lines, mpi));
    }
    return cells.size() == 1 ? "" : format_cells(cells, markdown);
}

namespace {

// What the table and the pictures of pay-off say; empty where no plan was compared with anything.
std::string payback_section(const std::vector<ExchangeLine>& lines, const std::string& name,
                            std::vector<Picture>& pictures) {
    const std::vector<Payback> all = paybacks(lines);
    if (all.empty()) return "";
    std::string text = payback_text, mpi;
    for (const Payback& each : all) {
        if (each.mpi == mpi) continue;
        mpi = each.mpi;
        Picture picture{fmt::format("pictures/{}-payback-{}.svg", name, mpi), draw_payback(all, mpi)};
        if (picture.text.empty()) continue;
        text += fmt::format("![N* against the bytes of a pair, {}]({})\n\n", mpi, picture.path);
        pictures.push_back(std::move(picture));
    }
    return text + format_payback(all, true);
}

}  // namespace

std::string exchange_section(const std::vector<Row>& rows, std::string (*provenance)(const std::vector<Row>&),
                             const std::string& name, std::vector<Picture>& pictures) {
    std::map<std::string, std::vector<Row>> by_mpi;
    std::uint64_t wrong = 0;
    for (const Row& row : rows) {
        if (row.phase != exchange_phase) continue;
        by_mpi[row.context.value("mpi_name", "")].push_back(row);
        wrong += row.wrong_words;
    }
    if (by_mpi.empty()) return "";
    const std::vector<ExchangeLine> lines = summarize_exchange(rows);
    const std::vector<WindowLine> windows = compare_windows(rows);
    std::string text = exchange_text;
    text += fmt::format("Wrong words received: {}. {}\n", wrong, foresight_text(lines));
    if (const std::string table = format_exchange_targets(judge_exchange(lines, windows), true);
        !table.empty())
        text += targets_text + table;
    if (const std::string table = format_plan_gains(lines, true); !table.empty()) text += gains_text + table;
    if (const std::string table = format_foresight(lines, true); !table.empty())
        text += foresight_section + table;
    text += payback_section(lines, name, pictures);
    if (const std::string table = format_windows(windows, true); !table.empty()) text += window_text + table;
    for (const auto& [mpi, own] : by_mpi)
        text += fmt::format("\n### {}, alltoallv\n\n{}{}", mpi, provenance(own),
                            format_exchange(lines_of(lines, mpi), true));
    return text;
}

}  // namespace thalweg::bench
