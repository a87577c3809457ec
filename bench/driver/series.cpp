#include "driver/series.h"

#include <nlohmann/json.hpp>

namespace thalweg::bench {

nlohmann::json row_of(const std::string& collective, std::uint64_t bytes, const Column& column,
                      const MeasuredSeries& series, bool links) {
    nlohmann::json row{{"kind", "point"},
                       {"collective", collective},
                       {"bytes", bytes},
                       {"column", column.name},
                       {"seconds", series.seconds},
                       {"back_to_back_seconds", nlohmann::json::array()},
                       {"wrong_words", series.wrong_words},
                       {"late_samples", series.late_samples},
                       {"algorithm", series.algorithm},
                       {"reason", series.reason}};
    if (!series.stopped.empty()) row["stopped"] = series.stopped;
    if (links && !series.seconds.empty()) {
        const auto calls = static_cast<double>(series.seconds.size());
        row["busiest_host_per_call"] = {{"tx_bytes", series.tx_bytes / calls},
                                        {"tx_packets", series.tx_packets / calls}};
    }
    return row;
}

}  // namespace thalweg::bench
