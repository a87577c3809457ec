#include "bench/rings.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "algorithms/algorithm.h"
#include "bench/statistics.h"
#include "bench/table.h"

namespace thalweg::bench {
namespace {

struct Pair {
    const Row* closed = nullptr;
    const Row* again = nullptr;  // null in rows of before
    const Row* trimmed = nullptr;
};

// Messages of the whole broadcast, the binomial scatter before the ring included.
std::uint64_t messages(const char* algorithm, int ranks, std::uint64_t bytes) {
    const Algorithm* found = find_algorithm(Collective::bcast, algorithm);
    const Choice choice = standard_choice(*found);
    return found->claim({0, ranks, 0, bytes}, Topology::single_node(ranks), choice).messages;
}

std::string saved(double part, double whole) {
    return whole > 0 ? fmt::format("{:.1f} %", 100 * (1 - part / whole)) : "-";
}

}  // namespace

std::string format_rings(const std::vector<Row>& rows, bool markdown) {
    // By MPI, ranks, links and size; of each the launches, and of those the newest that is whole.
    std::map<std::tuple<std::string, int, std::string, std::uint64_t>, std::map<std::uint64_t, Pair>> points;
    std::set<std::string> libraries;
    for (const auto& row : rows) {
        if (row.phase != rings_phase) continue;
        const std::string mpi = row.context.value("mpi_name", "");
        libraries.insert(mpi);
        Pair& pair = points[{mpi, row.context.value("ranks", 0), links_text(row), row.bytes}][row.launch];
        if (row.column == closed_ring) pair.closed = &row;
        if (row.column == closed_ring_again) pair.again = &row;
        if (row.column == trimmed_ring) pair.trimmed = &row;
    }
    std::vector<std::vector<std::string>> cells{{"ranks", "rate", "bytes", "closed", "trimmed", "time saved",
                                                 "time saved, back to back", "ratio [95 %]", "A/A", "late",
                                                 "messages saved", "link bytes saved (kernel)",
                                                 "bytes saved (schedule)"}};
    for (const auto& [key, launches] : points) {
        const auto whole = std::find_if(launches.rbegin(), launches.rend(), [](const auto& launch) {
            return launch.second.closed != nullptr && launch.second.trimmed != nullptr;
        });
        if (whole == launches.rend()) continue;
        const Pair& pair = whole->second;
        const auto& [mpi, ranks, links, bytes] = key;
        const Ratio ratio = ratio_of_medians(pair.trimmed->seconds, pair.closed->seconds);
        const double closed = median(pair.closed->seconds), trimmed = median(pair.trimmed->seconds);
        const std::uint64_t all = messages("scatter_ring", ranks, bytes);
        const std::uint64_t left = messages("scatter_ring_trimmed", ranks, bytes);
        const auto claimed = [ranks = ranks, bytes = bytes](const char* name) {
            const Algorithm* found = find_algorithm(Collective::bcast, name);
            return static_cast<double>(
                found->claim({0, ranks, 0, bytes}, Topology::single_node(ranks), standard_choice(*found))
                    .bytes);
        };
        cells.push_back(
            {fmt::format("{}", ranks), links, bytes_text(bytes), time_text(closed), time_text(trimmed),
             saved(trimmed, closed),
             saved(median(pair.trimmed->back_to_back), median(pair.closed->back_to_back)),
             fmt::format("{:.2f} [{:.2f}, {:.2f}]", ratio.value, ratio.interval.low, ratio.interval.high),
             pair.again == nullptr
                 ? "-"
                 : fmt::format("{:.2f}", ratio_of_medians(pair.again->seconds, pair.closed->seconds).value),
             fmt::format("{} of {}", pair.trimmed->late_samples,
                         pair.trimmed->seconds.size() + pair.trimmed->back_to_back.size()),
             fmt::format("{} of {}", all - left, all),
             pair.closed->all_tx_bytes > 0 ? saved(pair.trimmed->all_tx_bytes, pair.closed->all_tx_bytes)
                                           : "-",
             saved(claimed("scatter_ring_trimmed"), claimed("scatter_ring"))});
        if (libraries.size() > 1) cells.back().insert(cells.back().begin(), mpi);
    }
    if (libraries.size() > 1) cells[0].insert(cells[0].begin(), "MPI");
    return cells.size() > 1 ? format_cells(cells, markdown) : "";
}

}  // namespace thalweg::bench
