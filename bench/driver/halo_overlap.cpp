// Calls of a halo exchange with computation between their two parts.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "bench/statistics.h"
#include "driver/halo.h"

namespace thalweg::bench {
namespace {

// Of one rank's call. Only doubles: it travels as such.
struct Parts {
    double total = 0, computed = 0;
};

struct Hidden {
    std::vector<double> here;  // pure calls of this rank
    std::vector<double> last;  // the latest pure call, by rank
    std::vector<double> pure_mean, total, computed, worst_pure, worst_computed, worst_total;
};

double mean_of(const std::vector<Parts>& all, double Parts::*member) {
    double sum = 0;
    for (const Parts& each : all) sum += each.*member;
    return sum / static_cast<double>(all.size());
}

}  // namespace

void HaloDriver::measure_overlap(const Point& point) {
    ComputeKind kind{};
    if (config_.computes.empty() || !parse_compute(config_.computes[0], kind))
        die("the configuration names no kind of computation");
    Compute compute(kind);
    // All ranks at once, because they share a memory bus; the slowest of the fastest counts for all.
    PMPI_Barrier(session_.control);
    compute.calibrate();
    double least = compute.amount_per_second();
    PMPI_Allreduce(MPI_IN_PLACE, &least, 1, MPI_DOUBLE, MPI_MIN, session_.control);
    compute.set_amount_per_second(least);

    const auto memory =
        std::make_unique<HaloMemory>(grid_of(point.halo, session_.size), session_.rank, session_.host_of);
    memory_ = memory.get();
    bytes_ = halo_bytes(memory->grid(), session_.host_of);
    copied_bytes_per_s_ =
        copied_per_second(static_cast<std::size_t>(bytes_.most_inside + bytes_.most_outside));
    const std::size_t count = point.columns.size();
    std::vector<Series> series(count);
    std::vector<Hidden> hidden(count);
    std::vector<std::unique_ptr<HaloWay>> ways(count);
    for (std::size_t i = 0; i < count; ++i) {
        ways[i] = prepare(config_.columns[point.columns[i]], series[i]);
        if (ways[i] != nullptr && !ways[i]->has_parts()) die("a blocking call hides nothing");
    }
    // What every rank saw of one call; its seconds, those of the last rank, in `seconds`.
    const auto measure = [&](std::size_t i, double amount, bool counts) {
        Parts mine;
        const auto parts = [&] {
            const double began = now();
            int error = ways[i]->start();
            if (amount > 0) mine.computed = compute.run(amount, {});
            if (error == MPI_SUCCESS) error = ways[i]->finish();
            mine.total = now() - began;
            return error;
        };
        call(parts, config_.columns[point.columns[i]], series[i], counts, false);
        std::vector<Parts> all(static_cast<std::size_t>(session_.size));
        PMPI_Allgather(&mine, 2, MPI_DOUBLE, all.data(), 2, MPI_DOUBLE, session_.control);
        return all;
    };
    const bool all_warm = choices_change(config_, point);
    take_turns(point, [&](std::size_t i, bool idle) {
        bool changed = false;
        if (!choose(config_.columns[point.columns[i]], series[i], changed)) return;
        if (changed || idle || all_warm) {
            measure(i, 0, false);
            ++series[i].warm_samples;
        }
        Hidden& seen = hidden[i];
        const auto pure = measure(i, 0, true);
        seen.here.push_back(pure[static_cast<std::size_t>(session_.rank)].total);
        seen.pure_mean.push_back(mean_of(pure, &Parts::total));
        // Each rank for as long as it was in the call itself.
        const auto all = measure(i, compute.amount_for(median(seen.here)), false);
        const auto worst = std::max_element(all.begin(), all.end(),
                                            [](const Parts& a, const Parts& b) { return a.total < b.total; });
        seen.total.push_back(mean_of(all, &Parts::total));
        seen.computed.push_back(mean_of(all, &Parts::computed));
        seen.worst_pure.push_back(pure[static_cast<std::size_t>(worst - all.begin())].total);
        seen.worst_computed.push_back(worst->computed);
        seen.worst_total.push_back(worst->total);
    });
    check_elsewhere(series);
    for (auto& way : ways)
        if (way != nullptr) way->free();
    ways.clear();
    if (session_.rank != 0) return;
    for (std::size_t i = 0; i < count; ++i) {
        nlohmann::json line = line_of(point, config_.columns[point.columns[i]], series[i]);
        line["overlap"] = {{"compute", config_.computes[0]},
                           {"pure_mean", hidden[i].pure_mean},
                           {"total", hidden[i].total},
                           {"computed", hidden[i].computed},
                           {"worst_pure", hidden[i].worst_pure},
                           {"worst_computed", hidden[i].worst_computed},
                           {"worst_total", hidden[i].worst_total}};
        write_row(out_, line.dump());
    }
}

}  // namespace thalweg::bench
