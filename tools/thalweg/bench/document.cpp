#include "bench/document.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "bench/amr.h"
#include "bench/apps_table.h"
#include "bench/broadcast_targets.h"
#include "bench/columns.h"
#include "bench/exchange_page.h"
#include "bench/glance.h"
#include "bench/halo_table.h"
#include "bench/overlap_table.h"
#include "bench/rings.h"
#include "bench/small.h"
#include "bench/table.h"
#include "bench/waiters.h"

namespace thalweg::bench {
namespace {

constexpr const char* begin = R"(# Measurements

Made by `thalweg bench document` from the result files in `bench/results`; do not edit. `scripts/lab-tables` measures.
The lab is an emulated cluster in slow motion on one machine ([lab.md](lab.md)): every host has one link of the rate
given, in each direction. Times are medians; the time of a call is that of the last rank to return. Every byte of every
call was checked.
)";

constexpr const char* legend = R"(
## How to read the tables

**limit** is the time the wire needs at least: the bytes beyond the shaper's burst at the measured payload
rate of a plain TCP stream, plus one latency. **native** is the MPI's default, **best native**, of the default
and the two fastest of everything that MPI can be told to use, the one beside which Thalweg's ratio is the
greatest (or surely above 1, where the greatest is too uncertain), measured in turns with Thalweg in one
launch (one that only the environment of a launch asks for, in turns with Thalweg in that environment: where
it makes both slow, its time is no rival's, but the ratio counts). **speed-up** is native / Thalweg.
**algorithm x waiting** splits it where the native default's algorithm exists as a schedule of
ours: that schedule on our engine / Thalweg's choice, times native / that schedule. What the default ran is
told by its traffic: a native algorithm and a schedule of ours whose bytes on the busiest link and on all
links agree with the default's within 4 %, and of several the native that is nearest in time (the schedule
alone where no control asks for what the default runs, Open MPI's HAN); *no twin*: none was measured. **back
to back** is a call's share of some in a row that no barrier parts: Thalweg's median, and in brackets how
many times as long native takes; **p99** the same of single calls, of few of them (30, or 10 from 4 MiB on)
about the slowest. **A/A** is native against itself: what this machine can resolve. *Not slower*: the ratio
of medians is at most 1.03, or its 95 % interval includes 1.00 and ends at or below 1.10; *slower*: the
interval lies above 1.00; *undecided*: anything else. **link bytes**: the kernel's interface counters
against what the schedule says must cross. **late**: in so many of Thalweg's samples a rank began more than
half a millisecond after the agreed instant, which counts as part of its time; `-` without a lab, where
calls are shorter than that. *screened*: only the first look was taken, with few samples.
)";

constexpr const char* blocking_text = R"(
## Blocking allgather and allreduce

`MPI_Allgather` by the bytes of one rank's block, `MPI_Allreduce` by those of the vector: sums of 64-bit integers, which
have no order to keep; of doubles Thalweg takes by default only those of 1 MiB and more
([decision 55](decisions/0055-sums-keep-their-bits.md)). Measured and decided as broadcasts are; the limit counts the
blocks that must enter a host, or twice the vector's share that must leave it.
)";

constexpr const char* small_calls = R"(
## Short calls on one host

What Thalweg adds to calls that it mostly leaves to the MPI. Native, native again (**A/A**) and Thalweg take turns in
blocks of 1000 calls of one launch, on one communicator; the root goes round, so that no rank runs ahead. A call's time
is from the root's entry to the last rank's return, by a clock that both ranks share; what two readings of that clock
take is part of it, on all sides, and its steps are the resolution (**clock**: both). Medians and p99 of all calls; the
interval is that of the difference over 50 equal parts of the run. **allowed** is 3 % of native or 150 ns, whichever is
larger. Every call carries its number, which is checked; the first and last call of each block are checked byte by byte.
)";

constexpr const char* overlap_text = R"(
## Nonblocking collectives

What of a nonblocking collective hides behind computation, and what that costs ([measuring](guide/measuring.md)).
`MPI_Iallreduce` sums 64-bit integers (*int64*), which have no order to keep: **sums of doubles are declined by
default**, because their bits depend on the order, and are the MPI's own then; `THALWEG_SETUP=early` or
`THALWEG_FLOAT_ORDER=free` has them taken ([decision 55](decisions/0055-sums-keep-their-bits.md)). With those what is
told of *iallreduce* holds for doubles.
Where each rank has a core the ranks compute; elsewhere they sleep outside MPI for as long. All columns of a launch
take turns. **pure** is start and wait with nothing between; **OSU** and **IMB** are the share of it that hides behind
a computation that takes as long, by either benchmark's definition; **visible** is what is left, on the rank where most
is. **With equal work**: from the start to the end of the wait of the last rank, with the same work for all columns, as
long as the reference needs; **of native** compares that. **Crossed meanwhile** is the share of the link's bytes that
the kernel saw cross during that work.

*native* starts, computes and waits; *native MPI_Test* also tests every 0.2 ms of computation; *native blocking* calls
the blocking collective and then computes, *native blocking NAME* is one of its algorithms, pure only; *native
asynchronous* has the library's own progress switched on, in a launch of its own; so have *thalweg agent=...*, other
values of `THALWEG_AGENT`. The reference *sockets* moves the same bytes by blocking socket calls in two sleeping threads
per rank: what the kernel takes, no library can avoid.

**Dilation** is the time of the computation over that beside the reference, the median over pairs with its 95 %
interval; **against no traffic** is the same over the computation alone (arithmetic-bound, memory-bound). CPU time,
wake-ups and delays are the kernel's account per call (`/proc/self/task`), the largest of any rank for the threads, the
mean of the ranks for what the computing threads waited and how often they lost their core; **softirq** is that of the
whole machine. A progress thread that spins slows the reference of its launch as much as everything else: what it costs
shows in the other threads' CPU time and in the time with equal work, not in dilation. Every byte of every call was
checked.
)";

constexpr const char* saved_text = R"(
### Computation and communication together

From the start to the end of the last wait, with equal work, against the native blocking call and then that
work, in one launch. Offloaded allgathers took up to 68 % less in the paper (medium messages, several ranks
per host). What can be saved is **at most** the shorter of both: where the blocking call reaches the line-rate
limit and the work takes as long, 50 %; for 68 % it has to take 2.1 times the limit.

)";

constexpr const char* rails_text = R"(
### Several links per host

Pure time of the automatic choice with one link per host and with several of the same rate, in labs of their own; what
is cut up over two links shall be at least 1.8 times as fast. The limit is that of all links together.

)";

constexpr const char* ports_text = R"(
### One port against several on the same links

Pure times of one launch: the ring in which every rank sends a block to its neighbour (**one port**, *ring*), and the
one in which it sends it to as many next ranks at once as it has links (**several ports**, *kport_ring*), both of whole
blocks; beside them what is chosen. The limit is that of all links. Thalweg cuts a message between hosts up over the
links where each gets 64 KiB of it and more, whichever ring sends it. So what makes two links about twice as fast as
one, in the table above, are messages that are cut up, the pieces of the ring that is chosen, and not ports: what these
gain on the same links stands under **times as fast**, and below 1 they lose.

)";

constexpr const char* waiters_text = R"(
## How a waiting thread wakes

From the moment a thread rings to the moment the sleeper runs again (`thalweg bench waiters`); **ringing** is what the
ring costs the thread that rings, **CPU while asleep** the share of a core that the way of waiting takes.

)";

std::string join(const std::set<std::string>& values) {
    std::string text;
    for (const auto& value : values) text += (text.empty() ? "" : ", ") + value;
    return text.empty() ? "-" : text;
}

// Where these rows come from, in one paragraph.
std::string provenance(const std::vector<Row>& rows) {
    std::set<std::string> commits, libraries, waiting, days, carried, machines;
    std::size_t silent = 0;   // rows of before their drivers said
    std::size_t nowhere = 0;  // rows of before they named a machine
    for (const auto& row : rows) {
        commits.insert(row.context.value("commit", ""));
        libraries.insert(row.context.value("mpi", ""));
        days.insert(row.context.value("date", "").substr(0, 10));
        if (const std::string machine = row.context.value("machine", ""); !machine.empty())
            machines.insert(machine);
        else
            ++nowhere;
        const auto settings = row.context.find("settings");
        if (settings != row.context.end()) waiting.insert(settings->value("THALWEG_LAB_WAITING", ""));
        if (row.context.contains("transport"))
            carried.insert(
                fmt::format("{} ({})", row.context.value("transport", ""), row.context.value("waiting", "")));
        else
            ++silent;
    }
    const std::string others =
        silent == 0 ? "" : fmt::format("; {} of {} rows do not say", silent, rows.size());
    std::string on;  // figures of one machine are not those of another
    for (const std::string& machine : machines) on += (on.empty() ? " Measured on " : "; on ") + machine;
    if (!on.empty() && nowhere != 0) on += fmt::format("; {} of {} rows do not say", nowhere, rows.size());
    if (!on.empty()) on += '.';
    waiting.erase("");
    return fmt::format(
        "{}; commit {}; {}.{} How the native library waits: {}.{}\n\n", join(libraries), join(commits),
        join(days), on, waiting.empty() ? "as it does by itself" : join(waiting),
        carried.empty() ? "" : fmt::format(" Thalweg's calls went over {}{}.", join(carried), others));
}

std::string summary(const std::vector<Summary>& lines) {
    std::map<std::string, std::vector<const Summary*>> by_mpi;
    for (const auto& line : lines) by_mpi[line.mpi].push_back(&line);
    std::vector<std::vector<std::string>> cells{{"MPI", "points", "native / Thalweg", "algorithm",
                                                 "not slower", "undecided", "slower", "screened only",
                                                 "worst A/A"}};
    for (const auto& [mpi, points] : by_mpi) {
        std::vector<double> gains, algorithms, split;  // the last: the gain where it is split
        int counts[3] = {}, screened = 0;
        double noise = 1;
        for (const Summary* line : points) {
            if (line->against_default.value > 0) gains.push_back(1 / line->against_default.value);
            if (line->twin_seconds > 0) {
                algorithms.push_back(line->twin_seconds / line->ours_seconds);
                split.push_back(line->native_seconds / line->ours_seconds);
            }
            if (line->screened_only) {
                ++screened;
            } else {
                ++counts[static_cast<int>(line->decision)];
            }
            if (line->noise > 0) noise = std::max({noise, line->noise, 1 / line->noise});
        }
        cells.push_back({mpi, fmt::format("{}", points.size()), fmt::format("{:.2f}", geometric_mean(gains)),
                         algorithms.empty()
                             ? "-"
                             : fmt::format("{:.2f} of {:.2f} ({} points)", geometric_mean(algorithms),
                                           geometric_mean(split), algorithms.size()),
                         fmt::format("{}", counts[static_cast<int>(Verdict::not_slower)]),
                         fmt::format("{}", counts[static_cast<int>(Verdict::undecided)]),
                         fmt::format("{}", counts[static_cast<int>(Verdict::slower)]),
                         fmt::format("{}", screened), fmt::format("{:.2f}", noise)});
    }
    return format_cells(cells, true);
}

// Everything about nonblocking collectives; empty where there are no rows.
std::string overlap_section(const std::map<std::string, std::vector<Row>>& by_mpi) {
    std::vector<OverlapLine> all;
    std::string tables;
    for (const auto& [mpi, own] : by_mpi) {
        const auto lines = summarize_overlap(own);
        all.insert(all.end(), lines.begin(), lines.end());
        tables += fmt::format("\n### {}, overlap\n\n{}", mpi, provenance(own));
        if (const auto remark = asynchronous_remark(mpi); !remark.empty())
            tables += fmt::format("*{}* is {}.\n\n", native_async, remark);
        tables += format_hidden(lines, true) + "\n" + format_cost(lines, true);
    }
    if (all.empty()) return "";
    std::uint64_t wrong = 0;
    for (const auto& line : all) wrong += line.wrong_words;
    if (const std::string saved = format_saved(all, true); !saved.empty())
        tables += fmt::format("{}{}", saved_text, saved);
    if (const std::string rails = format_rails(all, true); !rails.empty())
        tables += fmt::format("{}{}", rails_text, rails);
    if (const std::string ports = format_ports(all, true); !ports.empty())
        tables += fmt::format("{}{}", ports_text, ports);
    return fmt::format(
               "{}\n### Targets\n\nOf the automatic choice; **sockets there** is what the reference reaches "
               "at the same point, **below 30 samples** how many of the points were measured in fewer "
               "turns than a verdict wants. Overlap counts only where the pure time reaches its own targets, "
               "and with "
               "equal work the call is not longer than native's: else it *does not count*. Wrong words "
               "received: {}.\n\n{}",
               overlap_text, wrong, format_targets(judge(all), true)) +
           tables;
}

// The tables of all MPIs under headings of this depth, and what stands above them; empty where there are no
// points.
struct Section {
    std::string summary, tables;
    std::vector<BroadcastTarget> targets;  // of broadcasts between hosts
};
Section section(const std::map<std::string, std::vector<Row>>& by_mpi, std::string_view depth) {
    Section made;
    std::vector<Summary> all;
    for (const auto& [mpi, own] : by_mpi) {
        const auto lines = summarize(own);
        if (lines.empty()) continue;
        all.insert(all.end(), lines.begin(), lines.end());
        made.tables += fmt::format("\n{} {}\n\n{}{}", depth, mpi, provenance(own), format_table(lines, true));
        if (const std::string quicker = quicker_elsewhere_text(lines); !quicker.empty())
            made.tables += "\n" + quicker;
    }
    if (!all.empty()) made.summary = summary(all), made.targets = judge_broadcasts(all);
    return made;
}

// A table for each collective under each MPI; empty where there are no rows.
std::string blocking_section(const std::map<std::string, std::vector<Row>>& by_mpi) {
    std::vector<Summary> all;
    std::string tables;
    std::uint64_t wrong = 0;
    for (const auto& [mpi, own] : by_mpi) {
        tables += fmt::format("\n### {}, blocking\n\n{}", mpi, provenance(own));
        for (const auto& row : own) wrong += row.wrong_words;
        for (const std::string_view collective : {"allgather", "allreduce"}) {
            std::vector<Summary> lines = summarize(own);
            std::erase_if(lines, [&](const Summary& line) { return line.collective != collective; });
            if (lines.empty()) continue;
            all.insert(all.end(), lines.begin(), lines.end());
            tables += fmt::format("MPI_A{}:\n\n{}\n", collective.substr(1), format_table(lines, true));
            if (const std::string quicker = quicker_elsewhere_text(lines); !quicker.empty())
                tables += quicker + "\n";
        }
        if (tables.ends_with("\n\n")) tables.pop_back();
    }
    if (all.empty()) return "";
    std::string targets = format_broadcast_targets(judge_blocking(all), true);
    if (!targets.empty()) targets = "\nWhat the automatic choice is to reach:\n\n" + targets;
    return fmt::format("{}\nWrong words received: {}.\n\n{}{}{}", blocking_text, wrong, summary(all), targets,
                       tables);
}

}  // namespace

std::string document(const std::vector<Row>& rows, const std::string& about, const std::string& name,
                     std::vector<Picture>* pictures) {
    std::map<std::string, std::vector<Row>> in_lab, on_one_host, small_of, overlap_of, blocking_of;
    std::vector<Row> rings, waiters, apps, refined, exchanges, halos;
    std::uint64_t wrong = 0;
    for (const auto& row : rows) {
        const bool gathers_or_sums = row.collective == "allgather" || row.collective == "allreduce";
        if (row.phase != overlap_phase && row.phase != apps_phase && row.phase != amr_phase &&
            row.phase != exchange_phase && !is_halo(row) && !gathers_or_sums)
            wrong += row.wrong_words;
        const std::string mpi = row.context.value("mpi_name", "");
        if (row.phase == rings_phase) {
            rings.push_back(row);
        } else if (row.phase == overlap_phase) {
            overlap_of[mpi].push_back(row);
        } else if (row.phase == waiters_phase) {
            waiters.push_back(row);
        } else if (row.phase == apps_phase) {
            apps.push_back(row);
        } else if (row.phase == amr_phase) {
            refined.push_back(row);
        } else if (row.phase == exchange_phase) {
            exchanges.push_back(row);
        } else if (is_halo(row)) {
            halos.push_back(row);
        } else if (row.phase == small_phase) {
            small_of[mpi].push_back(row);
        } else if (gathers_or_sums) {
            blocking_of[mpi].push_back(row);
        } else {
            (row.context.value("rate", "").empty() ? on_one_host : in_lab)[mpi].push_back(row);
        }
    }
    std::string text = begin + (about.empty() ? "" : "\n" + about);
    if (const std::string received = wrong_words_text(rows); !received.empty())
        text += "\n**Not every byte was right:**\n\n```text\n" + received + "```\n";
    if (const std::string below = below_limit_text(rows); !below.empty()) text += "\n" + below;
    text += glance_section(rows) + legend;
    if (const Section lab = section(in_lab, "##"); !lab.summary.empty())
        text +=
            fmt::format(
                "\n## Broadcast between hosts\n\nGeometric means over the points of all shapes; "
                "**algorithm**: its share "
                "of the "
                "gain at the points that have a twin. Wrong words received: {}.\n\n{}",
                wrong, lab.summary) +
            "\n### Targets\n\nOf the automatic choice. Where the mean gain is split the algorithm's share "
            "has to reach the target as well; what has no twin may owe all of its gain to waiting: *if "
            "the others had none*.\n\n" +
            format_broadcast_targets(lab.targets, true) + lab.tables;
    if (const std::string table = format_rings(rings, true); !table.empty())
        text +=
            "\n## The trimmed ring against the closed ring\n\n"
            "Both as schedules on our engine, one rank per host, interleaved. The paper reports 2 % to 54 % "
            "on a "
            "Cray XC40 (arXiv 1603.06809, abstract). A ring without contention gains nothing from the trim, "
            "because the rank that must receive every block still does; what is gained here comes from links "
            "and cores that carry less. It can lose time though it sends less: a rank that kept many blocks "
            "from the scatter hands all of them to its neighbour at once, before the blocks that the ranks "
            "behind that one wait for ([simulation](simulation.md#the-trimmed-ring-arxiv-160306809)). Back "
            "to back "
            "that costs nothing, because the next call's blocks fill the gap, and what is not sent is saved. "
            "**A/A** "
            "is the closed ring against itself; **late** counts the trimmed ring's samples in which a rank "
            "began more "
            "than half a millisecond after the others: ranks that share cores wake one after the other.\n\n" +
            provenance(rings) + table;
    text += blocking_section(blocking_of);
    text += overlap_section(overlap_of);
    std::vector<Picture> drawn;
    text += exchange_section(exchanges, provenance, name, drawn);
    if (pictures != nullptr) *pictures = std::move(drawn);
    text += halo_section(halos, provenance);
    if (!waiters.empty())
        text += waiters_text + waiters_source(waiters) + ".\n\n" + format_waiters(waiters, true);
    text += apps_section(apps, provenance(apps)) + amr_section(refined, provenance(refined));
    if (const Section one = section(on_one_host, "###"); !one.summary.empty())
        text +=
            "\n## One host\n\n"
            "Without the lab: ranks that share memory, each with a core of its own. No link is crossed, so "
            "there is no limit. *native* under **ran** means that Thalweg leaves the calls "
            "to the MPI: on one host its wrapper jumps to the native function without looking at them.\n\n" +
            one.summary + one.tables;
    if (!small_of.empty()) text += small_calls;
    for (const auto& [mpi, own] : small_of)
        if (const std::string table = format_small(own, true); !table.empty())
            text += fmt::format("\n### {}, short calls\n\n{}{}", mpi, provenance(own), table);
    return text;
}

}  // namespace thalweg::bench
