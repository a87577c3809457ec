#include "bench/document.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "bench/columns.h"
#include "bench/rings.h"
#include "bench/table.h"

namespace thalweg::bench {
namespace {

constexpr const char* heading = R"(# Measurements

Made by `thalweg bench document` from the result files in `bench/results`; do not edit. `scripts/lab-tables` measures.

The lab is an emulated cluster in slow motion on one machine ([lab.md](lab.md)): every host has one link of the rate
given, in each direction. **limit** is the time the wire needs at least: the bytes beyond the shaper's burst at the
measured payload rate of a plain TCP stream, plus one latency. **native** is the MPI's default, **best native** the
fastest of everything that MPI can be told to use, measured in turns with Thalweg in one launch. **speed-up** is
native / Thalweg. **algorithm x waiting** splits it where the native default's algorithm exists as a schedule of ours:
that schedule on our engine / Thalweg's choice, times native / that schedule. **A/A** is native against itself: what
this machine can resolve. *Not slower*: the ratio of medians is at most 1.03, or its 95 % interval includes 1.00 and
ends at or below 1.10. **link bytes**: the kernel's interface counters against what the schedule says must cross.
Times are medians; the time of a call is that of the last rank to return. Every byte of every call was checked.
)";

std::string join(const std::set<std::string>& values) {
    std::string text;
    for (const auto& value : values) text += (text.empty() ? "" : ", ") + value;
    return text.empty() ? "-" : text;
}

// Where these rows come from, in one paragraph.
std::string provenance(const std::vector<Row>& rows) {
    std::set<std::string> commits, libraries, waiting, days;
    for (const auto& row : rows) {
        commits.insert(row.context.value("commit", ""));
        libraries.insert(row.context.value("mpi", ""));
        days.insert(row.context.value("date", "").substr(0, 10));
        const auto settings = row.context.find("settings");
        if (settings != row.context.end()) waiting.insert(settings->value("THALWEG_LAB_WAITING", ""));
    }
    waiting.erase("");
    return fmt::format("{}; commit {}; {}. How the native library waits: {}.\n\n", join(libraries),
                       join(commits), join(days), join(waiting));
}

std::string summary(const std::vector<Summary>& lines) {
    std::map<std::string, std::vector<const Summary*>> by_mpi;
    for (const auto& line : lines) by_mpi[line.mpi].push_back(&line);
    std::vector<std::vector<std::string>> cells{{"MPI", "points", "native / Thalweg", "algorithm",
                                                 "not slower", "undecided", "slower", "screened only",
                                                 "worst A/A"}};
    for (const auto& [mpi, points] : by_mpi) {
        std::vector<double> gains, algorithms;
        int counts[3] = {}, screened = 0;
        double noise = 1;
        for (const Summary* line : points) {
            if (line->against_default.value > 0) gains.push_back(1 / line->against_default.value);
            if (line->twin_seconds > 0) algorithms.push_back(line->twin_seconds / line->ours_seconds);
            if (line->screened_only) {
                ++screened;
            } else {
                ++counts[static_cast<int>(line->decision)];
            }
            if (line->noise > 0) noise = std::max({noise, line->noise, 1 / line->noise});
        }
        cells.push_back({mpi, fmt::format("{}", points.size()), fmt::format("{:.2f}", geometric_mean(gains)),
                         algorithms.empty() ? "-" : fmt::format("{:.2f}", geometric_mean(algorithms)),
                         fmt::format("{}", counts[static_cast<int>(Verdict::not_slower)]),
                         fmt::format("{}", counts[static_cast<int>(Verdict::undecided)]),
                         fmt::format("{}", counts[static_cast<int>(Verdict::slower)]),
                         fmt::format("{}", screened), fmt::format("{:.2f}", noise)});
    }
    return format_cells(cells, true);
}

}  // namespace

std::string document(const std::vector<Row>& rows) {
    std::string text = heading;
    std::map<std::string, std::vector<Row>> tables;
    std::vector<Row> rings;
    std::uint64_t wrong = 0;
    for (const auto& row : rows) {
        wrong += row.wrong_words;
        if (row.phase == rings_phase) {
            rings.push_back(row);
        } else {
            tables[row.context.value("mpi_name", "")].push_back(row);
        }
    }
    std::vector<Summary> all;
    std::string details;
    for (const auto& [mpi, own] : tables) {
        const auto lines = summarize(own);
        all.insert(all.end(), lines.begin(), lines.end());
        details += fmt::format("\n## {}\n\n{}{}", mpi, provenance(own), format_table(lines, true));
    }
    if (!all.empty())
        text += fmt::format(
                    "\n## Summary\n\nGeometric means over the points of all shapes. Wrong words received: "
                    "{}.\n\n{}",
                    wrong, summary(all)) +
                details;
    if (const std::string table = format_rings(rings, true); !table.empty())
        text +=
            "\n## The trimmed ring against the closed ring\n\n"
            "Both as schedules on our engine, one rank per host, interleaved. The paper reports 2 % to 54 % "
            "on a "
            "Cray XC40 (arXiv 1603.06809, abstract). A ring without contention gains nothing from the trim, "
            "because the rank that must receive every block still does; what is gained here comes from links "
            "and cores that carry less.\n\n" +
            provenance(rings) + table;
    return text;
}

}  // namespace thalweg::bench
