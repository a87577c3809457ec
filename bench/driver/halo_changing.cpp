// A run whose mix changes: grids, faces, a rank that comes late, a link that slows down.
#include <time.h>

#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "driver/halo.h"

namespace thalweg::bench {
namespace {

// A stretch of the run. In the configuration {"name", "calls", "late_seconds", "slower", and a grid}.
struct Phase {
    std::string name;
    int calls = 1;
    double late_seconds = 0;  // by which a rank, another one in each call, comes late
    double slower = 1;        // the link of the first host, outwards
    std::unique_ptr<HaloMemory> memory;
    std::vector<std::vector<double>> seconds;  // of all calls of a sample: [column][sample]
};

void sleep_for(double seconds) {
    timespec span;
    span.tv_sec = static_cast<time_t>(seconds);
    span.tv_nsec = static_cast<long>((seconds - static_cast<double>(span.tv_sec)) * 1e9);
    nanosleep(&span, nullptr);
}

// As the lab shaped it, but for the rate. False: this is no lab, or the system refuses.
bool shape_rails(double times) {
    const char *rate = std::getenv("THALWEG_LAB_NOMINAL_BITS_PER_S"),
               *burst = std::getenv("THALWEG_LAB_BURST_BYTES"), *rails = std::getenv("THALWEG_LAB_RAILS");
    if (rate == nullptr || burst == nullptr || rails == nullptr) return false;
    for (long rail = 0; rail < std::strtol(rails, nullptr, 10); ++rail) {
        char command[256];
        std::snprintf(command, sizeof command,
                      "PATH=$PATH:/usr/sbin:/sbin tc qdisc change dev rail%ld root tbf rate %.0fbit "
                      "burst %sb limit 67108864 >/dev/null 2>&1",
                      rail, std::strtod(rate, nullptr) / times, burst);
        if (std::system(command) != 0) return false;
    }
    return true;
}

}  // namespace

// The link of the first host, outwards. False, on all ranks: it stays as it is.
bool HaloDriver::slow_down(double times) {
    int good = 1;
    PMPI_Barrier(session_.control);
    if (session_.host_of[static_cast<std::size_t>(session_.rank)] == 0 && session_.local_rank == 0)
        good = shape_rails(times);
    PMPI_Allreduce(MPI_IN_PLACE, &good, 1, MPI_INT, MPI_MIN, session_.control);
    return good != 0;
}

// Columns that differ by what is asked for inside hosts alone share communicators and plans.
void HaloDriver::measure_changing(const Point& point) {
    const std::size_t count = point.columns.size();
    std::vector<Phase> phases;
    std::vector<Series> series(count);
    for (const auto& entry : point.halo.at("phases")) {
        Phase phase;
        phase.name = entry.at("name");
        phase.calls = entry.at("calls");
        phase.late_seconds = entry.value("late_seconds", 0.0);
        phase.slower = entry.value("slower", 1.0);
        phase.memory =
            std::make_unique<HaloMemory>(grid_of(entry, session_.size), session_.rank, session_.host_of);
        phase.seconds.resize(count);
        phases.push_back(std::move(phase));
    }
    if (phases.empty()) die("a run that changes needs phases");
    const auto key_of = [&](std::size_t column, std::size_t phase) {
        const Column& what = config_.columns[point.columns[column]];
        return what.variant + ' ' + what.option + ' ' + std::to_string(phase);
    };
    std::map<std::string, std::unique_ptr<HaloWay>> ways;
    for (std::size_t at = 0; at < phases.size(); ++at) {
        memory_ = phases[at].memory.get();
        for (std::size_t i = 0; i < count; ++i)
            if (auto& way = ways[key_of(i, at)]; way == nullptr)
                way = prepare(config_.columns[point.columns[i]], series[i]);
    }
    bool slowed = true;  // where it was to be
    take_turns(point, [&](std::size_t i, bool) {
        const Column& column = config_.columns[point.columns[i]];
        bool changed = false;
        if (!choose(column, series[i], changed)) return;
        double all = 0;
        for (std::size_t at = 0; at < phases.size(); ++at) {
            Phase& phase = phases[at];
            HaloWay* const way = ways[key_of(i, at)].get();
            if (way == nullptr) {
                series[i].stopped = "it cannot be had in phase " + phase.name;
                return;
            }
            memory_ = phase.memory.get();
            if (phase.slower != 1) slowed &= slow_down(phase.slower);
            double spent = 0;
            for (int round = 0; round < phase.calls; ++round) {
                const bool late = phase.late_seconds > 0 && round % session_.size == session_.rank;
                spent += call(
                    [&] {
                        if (late) sleep_for(phase.late_seconds);
                        return way->call();
                    },
                    column, series[i], false, false);
            }
            if (phase.slower != 1 && slowed && !slow_down(1)) die("the link stays slow");
            phase.seconds[i].push_back(spent);
            all += spent;
        }
        series[i].seconds.push_back(all);
    });
    for (Phase& phase : phases) {
        memory_ = phase.memory.get();
        check_elsewhere(series);
    }
    for (auto& [key, way] : ways)
        if (way != nullptr) way->free();
    ways.clear();
    if (session_.rank != 0) return;
    for (std::size_t i = 0; i < count; ++i) {
        nlohmann::json line =
            row_of(config_.collective, 0, config_.columns[point.columns[i]], series[i], false);
        line["halo"] = point.halo;
        line["halo"]["slowed"] = slowed;
        for (std::size_t at = 0; at < phases.size(); ++at)
            line["halo"]["phases"][at]["seconds"] = phases[at].seconds[i];
        write_row(out_, line.dump());
    }
}

}  // namespace thalweg::bench
