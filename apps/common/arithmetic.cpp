#include "common/arithmetic.h"

#include <algorithm>
#include <numeric>

namespace thalweg::apps {
namespace {

const Series* find(const std::vector<Series>& all, std::string_view version) {
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const Series& series) { return series.version == version; });
    return found == all.end() || found->samples.empty() ? nullptr : &*found;
}

double median_at(const std::vector<Sample>& samples, std::vector<double> Sample::*member, std::size_t stage) {
    std::vector<double> values;
    for (const auto& sample : samples)
        values.push_back(stage < (sample.*member).size() ? (sample.*member)[stage] : 0.0);
    return median(std::move(values));
}

std::vector<double> medians(const Series& series, std::vector<double> Sample::*member) {
    std::vector<double> values;
    if (series.samples.empty()) return values;
    for (std::size_t stage = 0; stage < (series.samples.front().*member).size(); ++stage)
        values.push_back(median_at(series.samples, member, stage));
    return values;
}

}  // namespace

double median(std::vector<double> values) {
    if (values.empty()) return 0;
    std::sort(values.begin(), values.end());
    const std::size_t middle = values.size() / 2;
    return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

double Series::median_of(double Sample::*member) const {
    std::vector<double> values;
    for (const auto& sample : samples) values.push_back(sample.*member);
    return median(std::move(values));
}

double Series::median_gather(std::size_t stage) const { return median_at(samples, &Sample::gathers, stage); }

double Series::median_window(std::size_t stage) const { return median_at(samples, &Sample::windows, stage); }

double hideable_seconds(const std::vector<double>& gathers, const std::vector<double>& windows) {
    if (gathers.empty() || windows.empty()) return 0;
    const double whole = std::accumulate(gathers.begin(), gathers.end(), 0.0);
    double seconds = 0;
    for (std::size_t stage = 0; stage < windows.size(); ++stage) {
        const double gather =
            gathers.size() == windows.size() ? gathers[stage] : whole / static_cast<double>(windows.size());
        seconds += std::min(gather, windows[stage]);
    }
    return seconds;
}

Comparison compare(const Series& series, const std::vector<Series>& all) {
    Comparison result;
    if (series.samples.empty()) return result;
    // The work is the same in all versions; beside traffic it may take longer, which must not raise a
    // ceiling.
    const Series* const waited = find(all, "waited");
    const std::vector<double> windows = medians(waited != nullptr ? *waited : series, &Sample::windows);
    const double total = series.median_of(&Sample::total);
    if (const Series* blocking = find(all, "blocking")) {
        result.possible = true;
        result.blocking_total = blocking->median_of(&Sample::total);
        result.saved = result.blocking_total - total;
        result.ceiling = hideable_seconds(medians(*blocking, &Sample::gathers), windows);
    }
    if (waited != nullptr) {
        result.hideable = hideable_seconds(medians(*waited, &Sample::gathers), windows);
        result.hidden = waited->median_of(&Sample::total) - total;
        result.measured_hiding = result.hideable > 0;
    }
    return result;
}

}  // namespace thalweg::apps
