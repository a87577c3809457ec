// What the rows of the refined mesh's exchange say, for people.
#include <fmt/format.h>

#include <algorithm>

#include "bench/amr.h"
#include "bench/table.h"

namespace thalweg::bench {
namespace {

constexpr const char* heading = R"(
## The exchange of a refined mesh

Blocks that are finer where a sphere's surface passes exchange their faces in three stages, one axis after
the other, one message per neighbouring rank and stage; every five exchanges the mesh and with it all
messages change ([applications](guide/applications.md#a-refined-mesh)). Times are **communication**: of the
rank that takes longest in each exchange, packing and unpacking included, and everything that is made and
given up at a refinement (**made**: communicators, requests and plans); medians of the runs, divided by
their exchanges. Versions take turns in one launch; launches native, with `thalweg run` and native again
(**A/A**) take turns.

**fastest sends**: of the native versions that use MPI_Isend and MPI_Irecv, or persistent requests of these,
with receives posted first, what leaves the host sent first, and the settings that this MPI waits best with,
the one that takes least. Against it stands the faster of MPI_Neighbor_alltoallw and
MPI_Neighbor_alltoallw_init with Thalweg. The **limit** is that of the stages one after the other: what
leaves or enters the host with the most of it at the link's payload rate, and a latency in each, less the
shaper's burst once in an exchange; **at most** is what the limit leaves to save. Thalweg is to take **28 %
less**, the paper's figure for miniAMR, or, where that leaves less room, at most 1.10 times the limit. Every
run ends with every cell and every cell of the halos checked.
)";

std::string percent(double part) { return fmt::format("{:.1f} %", 100 * part); }

std::string ratio_text(const Ratio& ratio) {
    if (ratio.value <= 0) return "-";
    return fmt::format("{:.2f} [{:.2f}, {:.2f}]", ratio.value, ratio.interval.low, ratio.interval.high);
}

std::string over_limit(const AmrLine& line, double seconds) {
    return line.limit_seconds > 0 && seconds > 0 ? fmt::format("{:.2f}", seconds / line.limit_seconds) : "-";
}

std::string exchange_text(const AmrLine& line, const std::vector<double>& runs) {
    return runs.empty() ? "-" : time_text(line.per_exchange(median(runs)));
}

std::string target_text(const AmrOutcome& of) {
    if (of.of_sends.value <= 0) return "-";
    if (of.saved >= AmrOutcome::saved_target) return "yes, less";
    return of.meets() ? "yes, near the limit" : "no";
}

std::string bytes_of(double bytes) { return bytes_text(static_cast<std::uint64_t>(bytes)); }

}  // namespace

std::string amr_faces_text(const AmrLine& line) { return bytes_text(line.face_bytes()); }

std::string format_amr_figures(const std::vector<AmrLine>& lines, bool markdown) {
    std::vector<std::vector<std::string>> cells{
        {"faces", "MPI", "hosts x ranks", "meshes", "messages", "mean", "largest", "link bytes", "limit",
         "fastest sends", "time/limit", "A/A", "Thalweg", "time/limit", "less", "at most",
         "Thalweg / fastest sends [95 %]", "28 % less", "wrong"}};
    for (const auto& line : lines) {
        const AmrVersion* const sends = fastest_sends(line);
        const AmrVersion* const ours = fastest_of_ours(line);
        if (sends == nullptr || ours == nullptr) continue;
        const double native = median(sends->native);
        const AmrOutcome of = outcome(line, *ours);
        cells.push_back(
            {amr_faces_text(line), line.mpi, line.shape, fmt::format("{}", line.meshes),
             fmt::format("{:.1f}", line.messages), bytes_of(line.message_bytes), bytes_of(line.largest_bytes),
             bytes_of(line.link_bytes),
             line.limit_seconds > 0 ? time_text(line.per_exchange(line.limit_seconds)) : "-",
             fmt::format("{} {}", sends->name, time_text(line.per_exchange(native))),
             over_limit(line, native),
             sends->again.empty() || native <= 0 ? "-" : fmt::format("{:.2f}", median(sends->again) / native),
             fmt::format("{} {}", ours->name, time_text(line.per_exchange(of.seconds))),
             over_limit(line, of.seconds), percent(of.saved), percent(of.most), ratio_text(of.of_sends),
             target_text(of), fmt::format("{}", line.wrong)});
    }
    return cells.size() > 1 ? format_cells(cells, markdown) : "";
}

std::string format_amr_versions(const std::vector<AmrLine>& lines, bool markdown) {
    std::vector<std::vector<std::string>> cells{{"faces", "MPI", "hosts x ranks", "version", "runs", "native",
                                                 "made", "time/limit", "Thalweg", "made", "time/limit",
                                                 "Thalweg / native [95 %]", "Thalweg / fastest sends [95 %]",
                                                 "less", "28 % less"}};
    for (const auto& line : lines)
        for (const auto& version : line.versions) {
            const bool both = !version.native.empty() && !version.ours.empty();
            const bool asked = version.name == "neighbor" || version.name == "init";
            const AmrOutcome of = outcome(line, version);
            cells.push_back({amr_faces_text(line), line.mpi, line.shape, version.name,
                             fmt::format("{}", std::max(version.native.size(), version.ours.size())),
                             exchange_text(line, version.native), exchange_text(line, version.native_made),
                             over_limit(line, median(version.native)), exchange_text(line, version.ours),
                             exchange_text(line, version.ours_made), over_limit(line, of.seconds),
                             both ? ratio_text(ratio_of_medians(version.ours, version.native)) : "-",
                             ratio_text(of.of_sends), of.of_sends.value > 0 ? percent(of.saved) : "-",
                             asked ? target_text(of) : "-"});
        }
    return cells.size() > 1 ? format_cells(cells, markdown) : "";
}

std::string amr_section(const std::vector<Row>& rows, const std::string& provenance) {
    const auto lines = summarize_amr(rows);
    if (lines.empty()) return "";
    return heading + ("\n" + provenance) + format_amr_figures(lines, true) + "\n" +
           format_amr_versions(lines, true);
}

}  // namespace thalweg::bench
