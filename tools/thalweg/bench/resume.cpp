#include "bench/resume.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <sstream>
#include <string_view>

#include "base/options.h"
#include "bench/columns.h"
#include "bench/recorded.h"
#include "bench/statistics.h"

namespace thalweg::bench {
namespace {

// Where files lie and what is told of a run: nothing that is measured depends on it.
bool steers(std::string_view variable) {
    for (const char* other : {"THALWEG_LOG", "THALWEG_REPORT", "THALWEG_HOME", "THALWEG_MPI_LIBRARY"})
        if (variable == other) return false;
    return find_option(variable) != nullptr;
}

// The variables that a row's own column sets: "THALWEG_AGENT=sleep THALWEG_INSIDE=coop".
std::set<std::string> set_by_column(const Row& row) {
    std::set<std::string> names;
    std::istringstream words(row.context.value("environment", ""));
    for (std::string word; words >> word;) names.insert(word.substr(0, word.find('=')));
    return names;
}

}  // namespace

nlohmann::json steering_settings() {
    nlohmann::json settings = nlohmann::json::object();
    for (const Option& option : options()) {
        const std::string variable(option.variable);
        const char* const set = std::getenv(variable.c_str());
        if (set != nullptr && steers(variable)) settings[variable] = recorded_value(set);
    }
    return settings;
}

bool measured_here(const Row& row, const Shape& shape, const nlohmann::json& settings) {
    if (row.context.value("mpi_name", "") != shape.mpi || row.context.value("shape", "") != shape.text() ||
        row.context.value("rate", "") != (shape.hosts > 0 ? shape.rate : "") ||
        row.context.value("rails", 1) != shape.rails)
        return false;
    const std::set<std::string> own = set_by_column(row);
    nlohmann::json then = nlohmann::json::object(), now = settings;
    if (row.context.contains("settings"))
        for (const auto& [name, value] : row.context["settings"].items())
            if (steers(name)) then[name] = value;
    for (const std::string& name : own) then.erase(name), now.erase(name);
    return then == now;
}

Done::Done(const std::vector<Row>& rows, const std::string& collective, const Shape& shape,
           const nlohmann::json& settings) {
    for (const auto& row : rows) {
        if (row.collective != collective || !measured_here(row, shape, settings)) continue;
        seen_.insert({row.phase, row.column, row.bytes});
        if (row.phase == "decide" && (row.column == native_default || row.column == native_again)) {
            Natives& natives = natives_[row.bytes];
            if (row.launch > natives.compared_at) natives.native.clear(), natives.again.clear();
            natives.compared_at = std::max(natives.compared_at, row.launch);
            if (row.launch == natives.compared_at)
                (row.column == native_default ? natives.native : natives.again) = row.seconds;
        }
        if (!is_native(row.column) || row.column == native_again || row.seconds.empty()) continue;
        Natives& natives = natives_[row.bytes];
        const double seconds = median(row.seconds);
        if (row.phase == "screen") natives.screened.push_back({row.column, row.launch, seconds});
        if (row.phase != "decide") continue;
        natives.decided_at = std::max(natives.decided_at, row.launch);
        if (natives.best_decided <= 0 || seconds < natives.best_decided) natives.best_decided = seconds;
    }
}

bool Done::has(const std::string& phase, const std::string& column, std::uint64_t bytes) const {
    return seen_.count({phase, column, bytes}) != 0;
}

bool Done::decided(std::uint64_t bytes) const {
    if (!has("decide", std::string(automatic), bytes)) return false;
    const auto found = natives_.find(bytes);
    if (found == natives_.end()) return true;
    const Natives& natives = found->second;
    return std::none_of(natives.screened.begin(), natives.screened.end(), [&](const auto& each) {
        return each.launch > natives.decided_at && each.seconds < natives.best_decided &&
               !has("decide", each.column, bytes);
    });
}

bool Done::wants_more_pairs(std::uint64_t bytes, std::size_t enough) const {
    const auto found = natives_.find(bytes);
    if (found == natives_.end() || found->second.again.empty() || found->second.native.size() >= enough)
        return false;
    return !resolves_three_percent(ratio_of_medians(found->second.again, found->second.native));
}

std::vector<ColumnPlan> Done::missing(const std::string& phase, const std::vector<ColumnPlan>& columns,
                                      std::uint64_t bytes) const {
    std::vector<ColumnPlan> missing;
    std::copy_if(columns.begin(), columns.end(), std::back_inserter(missing),
                 [&](const ColumnPlan& column) { return !has(phase, column.name, bytes); });
    return missing;
}

}  // namespace thalweg::bench
