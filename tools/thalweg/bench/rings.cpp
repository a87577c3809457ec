#include "bench/rings.h"

#include <fmt/format.h>

#include <map>

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
    std::map<std::pair<int, std::uint64_t>, Pair> pairs;
    for (const auto& row : rows) {
        if (row.phase != rings_phase) continue;
        Pair& pair = pairs[{row.context.value("ranks", 0), row.bytes}];
        if (row.column == closed_ring) pair.closed = &row;
        if (row.column == closed_ring_again) pair.again = &row;
        if (row.column == trimmed_ring) pair.trimmed = &row;
    }
    std::vector<std::vector<std::string>> cells{{"ranks", "rate", "bytes", "closed", "trimmed", "time saved",
                                                 "time saved, back to back", "ratio [95 %]", "A/A", "late",
                                                 "messages saved", "link bytes saved (kernel)",
                                                 "bytes saved (schedule)"}};
    for (const auto& [key, pair] : pairs) {
        if (pair.closed == nullptr || pair.trimmed == nullptr) continue;
        const auto [ranks, bytes] = key;
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
            {fmt::format("{}", ranks), pair.closed->context.value("rate", ""), bytes_text(bytes),
             time_text(closed), time_text(trimmed), saved(trimmed, closed),
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
    }
    return cells.size() > 1 ? format_cells(cells, markdown) : "";
}

}  // namespace thalweg::bench
