#include "driver/series.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>

namespace thalweg::bench {

void add_to(nlohmann::json& row, const Ran& ran) {
    row["algorithm"] = ran.algorithm;
    row["reason"] = ran.reason;
    if (!ran.transport.empty()) row["transport"] = ran.transport;
    if (!ran.waiting.empty()) row["waiting"] = ran.waiting;
}

void take_turns(const Session& session, std::size_t columns, int samples, std::uint64_t seed,
                const std::function<void(std::size_t, bool)>& sample,
                const std::function<void(int)>& progress) {
    std::mt19937 shuffler(static_cast<unsigned>(seed));
    std::vector<std::size_t> order(columns);
    std::vector<double> latest(columns, 0);
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (int round = 0; round < samples; ++round) {
        std::shuffle(order.begin(), order.end(), shuffler);
        for (const std::size_t i : order) {
            sample(i, was_idle(session, latest[i]));
            latest[i] = session.latest_start();
        }
        progress(round + 1);
    }
}

nlohmann::json row_of(const std::string& collective, std::uint64_t bytes, const Column& column,
                      const MeasuredSeries& series, bool links) {
    nlohmann::json row{{"kind", "point"},
                       {"collective", collective},
                       {"bytes", bytes},
                       {"column", column.name},
                       {"seconds", series.seconds},
                       {"back_to_back_seconds", nlohmann::json::array()},
                       {"wrong_words", series.wrong_words},
                       {"late_samples", series.late_samples}};
    add_to(row, series.ran);
    if (!series.stopped.empty()) row["stopped"] = series.stopped;
    if (links && !series.seconds.empty()) {
        const auto calls = static_cast<double>(series.seconds.size());
        row["tx_bytes"] = series.tx_bytes / calls;
        row["tx_packets"] = series.tx_packets / calls;
    }
    return row;
}

}  // namespace thalweg::bench
