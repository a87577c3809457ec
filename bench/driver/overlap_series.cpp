#include "driver/overlap_series.h"

#include <algorithm>
#include <cmath>

#include "driver/series.h"
#include "driver/session.h"

namespace thalweg::bench {
namespace {

nlohmann::json rounded(const std::vector<double>& values) {
    nlohmann::json array = nlohmann::json::array();
    for (const double value : values) array.push_back(std::round(value * 1e8) / 1e8);
    return array;
}

}  // namespace

void OverlapSeries::note(const std::vector<OverlapCall>& calls) {
    double late = 0;
    for (const OverlapCall& call : calls) {
        wrong_words += static_cast<std::uint64_t>(call.wrong);
        late = std::max(late, call.late);
    }
    late_samples += late > Session::late_seconds;
}

nlohmann::json OverlapSeries::to_json(const std::string& compute, double equal_seconds) const {
    const double samples =
        equal.empty() ? 1 : static_cast<double>(std::max<std::size_t>(1, equal.begin()->second.total.size()));
    nlohmann::json kinds = nlohmann::json::object();
    for (const auto& [kind, part] : equal) {
        kinds[kind] = {{"seconds", equal_seconds},         {"total", rounded(part.total)},
                       {"compute", rounded(part.compute)}, {"delay_seconds", part.delay / samples},
                       {"lost", part.lost / samples},      {"softirq_seconds", part.softirq / samples}};
        if (part.crossed > 0) kinds[kind]["crossed_meanwhile"] = part.crossed_in_compute / part.crossed;
    }
    nlohmann::json row{{"seconds", rounded(pure)},
                       {"back_to_back_seconds", nlohmann::json::array()},
                       {"wrong_words", wrong_words},
                       {"late_samples", late_samples},
                       {"overlap",
                        {{"compute", compute},
                         {"pure_mean", rounded(pure_mean)},
                         {"pure_from_instant", rounded(pure_from_instant)},
                         {"total", rounded(own_total)},
                         {"computed", rounded(own_compute)},
                         {"visible", rounded(own_visible)},
                         {"worst_pure", rounded(worst_pure)},
                         {"worst_computed", rounded(worst_compute)},
                         {"worst_total", rounded(worst_total)},
                         {"tests", tests / samples},
                         {"agent_cpu_seconds", agent_cpu / samples},
                         {"agent_wake_ups", agent_wakes / samples},
                         {"other_cpu_seconds", other_cpu / samples},
                         {"other_wake_ups", other_wakes / samples},
                         {"equal", kinds}}}};
    add_to(row, ran);
    return row;
}

}  // namespace thalweg::bench
