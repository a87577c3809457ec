#include "bench/halo_pairs.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "bench/columns.h"
#include "bench/table.h"

namespace thalweg::bench {
namespace {

// "coop" of "thalweg init spread [transport=shm inside=coop]"; empty where the column names none.
std::string setting_of(const std::string& column, std::string_view name) {
    const std::string wanted = " " + std::string(name) + "=";
    const auto found = column.find(wanted);
    if (found == std::string::npos) return "";
    const auto begin = found + wanted.size();
    return column.substr(begin, column.find_first_of(" ]", begin) - begin);
}

// All samples of a column, of all launches.
struct Pool {
    std::vector<double> seconds;
    std::vector<std::vector<double>> phases;
};

void add(Pool& pool, const Row& row) {
    pool.seconds.insert(pool.seconds.end(), row.seconds.begin(), row.seconds.end());
    if (!row.halo.contains("phases")) return;
    const auto& phases = row.halo.at("phases");
    pool.phases.resize(phases.size());
    for (std::size_t i = 0; i < phases.size(); ++i)
        for (const double each : phases[i].value("seconds", std::vector<double>()))
            pool.phases[i].push_back(each);
}

std::vector<double> medians(const std::vector<std::vector<double>>& all) {
    std::vector<double> found;
    for (const auto& each : all) found.push_back(median(each));
    return found;
}

PairTable table_of(const std::vector<const Row*>& rows) {
    PairTable table;
    const Row& first = *rows[0];
    table.mpi = first.context.value("mpi_name", "");
    table.shape = first.context.value("shape", "");
    table.rate = links_text(first);
    table.what = what_text(first.halo);
    table.changes = first.halo.contains("phases");
    if (table.changes)
        for (const auto& phase : first.halo.at("phases")) table.phase_names.push_back(phase.at("name"));
    std::map<std::string, Pool> pools;
    for (const Row* row : rows) {
        add(pools[row->column], *row);
        table.wrong_words += row->wrong_words;
        table.slowed |= row->halo.value("slowed", false);
    }
    // The choice is neither asked for anything inside nor between.
    const Pool* chosen = nullptr;
    for (const auto& [column, pool] : pools) {
        const bool free = setting_of(column, "inside").empty() && setting_of(column, "between").empty();
        if (free && column.starts_with(halo_paired)) chosen = &pool;
        if (free && column.starts_with(native_default)) table.native_seconds = median(pool.seconds);
    }
    if (chosen == nullptr || chosen->seconds.empty()) return table;
    table.samples = chosen->seconds.size();
    table.seconds = median(chosen->seconds);
    table.phases = medians(chosen->phases);
    for (const auto& [column, pool] : pools) {
        const std::string inside = setting_of(column, "inside"), between = setting_of(column, "between");
        if (inside.empty() || pool.seconds.empty()) continue;
        table.fixed.push_back({inside, between.empty() ? "auto" : between, pool.seconds.size(),
                               median(pool.seconds), ratio_of_medians(chosen->seconds, pool.seconds),
                               medians(pool.phases)});
    }
    std::sort(table.fixed.begin(), table.fixed.end(), [](const FixedPair& a, const FixedPair& b) {
        return std::tie(a.seconds, a.inside, a.between) < std::tie(b.seconds, b.inside, b.between);
    });
    return table;
}

std::string sentence(const PairTable& table) {
    std::map<std::string_view, int> counts;
    for (const FixedPair& pair : table.fixed) ++counts[table.verdict(pair)];
    if (!table.changes)
        return fmt::format("{}: the choice takes {:.2f} times the best fixed pair's time: {}\n", table.what,
                           table.fixed[0].chosen.value, table.verdict(table.fixed[0]));
    std::string text = fmt::format("a run that changes: the choice is ahead of {} of {} fixed pairs",
                                   counts["ahead"], table.fixed.size());
    if (counts["undecided"] != 0) text += fmt::format(", {} undecided", counts["undecided"]);
    if (counts["behind"] != 0) text += fmt::format(", behind {}", counts["behind"]);
    const bool slow = std::count(table.phase_names.begin(), table.phase_names.end(), "slow link") != 0;
    if (slow && !table.slowed) text += "; its link could not be slowed down";
    return text + "\n";
}

}  // namespace

std::string what_text(const nlohmann::json& halo) {
    if (!halo.contains("phases")) return halo_grid(halo).text();
    std::string text;
    for (const auto& phase : halo.at("phases"))
        text += fmt::format("{}{}: {} x {}", text.empty() ? "" : "; ", phase.at("name").get<std::string>(),
                            phase.at("calls").get<int>(), halo_grid(phase).text());
    return text;
}

std::string_view PairTable::verdict(const FixedPair& pair) const {
    const Interval& interval = pair.chosen.interval;
    if (changes) return interval.high < 1 ? "ahead" : interval.low > 1 ? "behind" : "undecided";
    if (interval.high < 1) return "ahead";
    if (pair.chosen.value <= most_behind) return "within 5 %";
    return interval.low > most_behind ? "behind" : "undecided";
}

std::vector<PairTable> compare_pairs(const std::vector<Row>& rows) {
    std::map<std::tuple<std::string, std::string, std::string, bool, std::string>, std::vector<const Row*>>
        groups;
    for (const Row& row : rows)
        if (row.phase == halo_pairs_phase || row.phase == halo_changing_phase)
            groups[{row.context.value("mpi_name", ""), row.context.value("shape", ""), links_text(row),
                    row.phase == halo_changing_phase, what_text(row.halo)}]
                .push_back(&row);
    std::vector<PairTable> tables;
    for (const auto& [key, group] : groups) tables.push_back(table_of(group));
    return tables;
}

std::string format_pairs(const std::vector<PairTable>& tables, bool markdown) {
    std::string text;
    for (const PairTable& table : tables) {
        if (table.fixed.empty()) continue;
        std::vector<std::vector<std::string>> cells{
            {"MPI", "hosts x ranks", "inside", "between", "time", "choice / this", "verdict", "samples"}};
        for (const std::string& name : table.phase_names) cells[0].push_back(name);
        const auto row = [&](const std::string& inside, const std::string& between, double seconds,
                             const std::string& ratio, std::string_view verdict, std::size_t samples,
                             const std::vector<double>& phases) {
            cells.push_back({table.mpi, place_text(table.shape, table.rate), inside, between,
                             time_text(seconds), ratio, std::string(verdict),
                             samples > 0 ? fmt::format("{}", samples) : "-"});
            for (const double each : phases) cells.back().push_back(time_text(each));
            cells.back().resize(cells[0].size(), "-");
        };
        row("chosen", "auto", table.seconds, "-", "-", table.samples, table.phases);
        for (const FixedPair& pair : table.fixed)
            row(pair.inside, pair.between, pair.seconds,
                fmt::format("{:.3f} [{:.3f}, {:.3f}]", pair.chosen.value, pair.chosen.interval.low,
                            pair.chosen.interval.high),
                table.verdict(pair), pair.samples, pair.phases);
        if (table.native_seconds > 0) row("native", "native", table.native_seconds, "-", "-", 0, {});
        text += format_cells(cells, markdown) + "\n" + sentence(table) + "\n";
    }
    return text;
}

}  // namespace thalweg::bench
