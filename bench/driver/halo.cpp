#include "driver/halo.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "bench/statistics.h"

namespace thalweg::bench {
namespace {

constexpr int copy_rounds = 5;
constexpr double copy_seconds = 0.2;               // of one round
constexpr std::size_t copied_at_once = 64u << 10;  // between two looks at the clock, about
constexpr std::size_t usual_cache_bytes = 32u << 20;
// Cells that no message touches are checked once for all columns together, of smaller arrays also for each.
constexpr std::size_t checked_each_bytes = 8u << 20;

// A native library may be wrong where a dimension of one or two ranks goes round.
bool excused(const Column& column, const HaloGrid& grid) {
    return column.variant.starts_with("native") && grid.periodic &&
           *std::min_element(grid.ranks.begin(), grid.ranks.end()) <= 2;
}

}  // namespace

HaloGrid grid_of(const nlohmann::json& json, int ranks) {
    HaloGrid grid;
    grid.ranks = json.at("grid").get<std::vector<int>>();
    grid.cells = json.at("cells").get<std::vector<int>>();
    grid.corners = json.value("corners", false);
    grid.periodic = json.value("periodic", false);
    grid.upwind = json.value("upwind", false);
    if (const std::string why = refuse(grid); !why.empty()) die(why);
    if (grid.size() != ranks)
        die("a grid of " + extents_text(grid.ranks) + " is not for " + std::to_string(ranks) + " ranks");
    return grid;
}

HaloDriver::HaloDriver(const Config& config, Session& session, std::ostream& out)
    : config_(config), session_(session), out_(out) {}

// Seconds of the last rank. counts: the call is one of the series' samples; everywhere: every cell is
// checked, not only faces and halo.
double HaloDriver::call(const std::function<int()>& what, const Column& column, Series& series, bool counts,
                        bool everywhere) {
    ++seed_;
    memory_->fill(seed_);
    session_.meet();
    const LinkCounters before = session_.links.read();
    const auto [seconds, late] = session_.time(what);
    const LinkCounters crossed = session_.links.read() - before;
    std::uint64_t wrong = everywhere ? memory_->count_wrong_anywhere(seed_) : memory_->count_wrong(seed_);
    std::uint64_t wrong_all = 0;
    PMPI_Allreduce(&wrong, &wrong_all, 1, MPI_UINT64_T, MPI_SUM, session_.control);
    series.wrong_words += wrong_all;
    if (wrong_all != 0) memory_->reset();
    if (!excused(column, memory_->grid())) wrong_ += wrong_all;
    if (!counts) return seconds;
    double most[2] = {static_cast<double>(crossed.tx_bytes), static_cast<double>(crossed.tx_packets)};
    PMPI_Allreduce(MPI_IN_PLACE, most, 2, MPI_DOUBLE, MPI_MAX, session_.control);
    series.seconds.push_back(seconds);
    series.late_samples += late;
    series.tx_bytes += most[0];
    series.tx_packets += most[1];
    return seconds;
}

// False: this column cannot be had here, and its series says why. changed: the next call of ours decides and
// plans anew, once.
bool HaloDriver::choose(const Column& column, Series& series, bool& changed) {
    changed = false;
    return series.stopped.empty() && session_.offer(column, "alltoallv", changed, series.stopped);
}

void HaloDriver::remember(const Column& column, Series& series) const {
    if (!column.native) session_.ours.tell(series.ran);
}

// What all ranks together copy from memory to memory while all of them do nothing else, `bytes` each time:
// the best of a few rounds, because a limit is what cannot be undercut. For a given time, not a given number
// of copies: who has done his share and waits would take cores from the others.
//
// Memory is as warm as it can be in an exchange, and not warmer. There every byte is touched again only after
// those of all ranks were, so here each core goes through the bytes of as many ranks as it serves. What the
// last cache cannot hold comes from memory in an exchange, and every copy is of other bytes.
double HaloDriver::copied_per_second(std::size_t bytes) {
    const long told = sysconf(_SC_LEVEL3_CACHE_SIZE);
    const std::size_t cache = told > 0 ? static_cast<std::size_t>(told) : usual_cache_bytes;
    const std::size_t block = std::max<std::size_t>(bytes, 1);
    const std::size_t ranks = static_cast<std::size_t>(session_.size);
    const std::size_t cores =
        std::max<std::size_t>(1, static_cast<std::size_t>(sysconf(_SC_NPROCESSORS_ONLN)));
    const std::size_t blocks = 2 * block * ranks <= cache ? (ranks + cores - 1) / cores : 1 + cache / block;
    std::vector<unsigned char> from(block * blocks, 1), to(from.size(), 2);
    const std::size_t times = 1 + copied_at_once / block;
    std::size_t next = 0;
    double best = 0;
    for (int round = 0; round < copy_rounds; ++round) {
        const double instant = session_.agree_on_start();
        session_.await(instant);
        const double until = (session_.shared_clock ? instant : now()) + copy_seconds;
        double copied = 0;
        while (now() < until) {
            for (std::size_t i = 0; i < times; ++i) {
                std::memcpy(to.data() + next * block, from.data() + next * block, block);
                // The compiler must not see that nobody reads it.
                asm volatile("" : : "r"(from.data()), "r"(to.data()) : "memory");
                next = (next + 1) % blocks;
            }
            copied += static_cast<double>(times * block);
        }
        PMPI_Allreduce(MPI_IN_PLACE, &copied, 1, MPI_DOUBLE, MPI_SUM, session_.control);
        best = std::max(best, copied / copy_seconds);
    }
    return best;
}

// Null: this column cannot be had here. A communicator is set up for schedules in the first blocking
// collective after its first nonblocking one.
std::unique_ptr<HaloWay> HaloDriver::prepare(const Column& column, Series& series) {
    bool changed = false;
    if (!choose(column, series, changed)) return nullptr;
    auto way = make_halo_way(column.variant, *memory_, session_.control, series.stopped);
    if (way == nullptr) return nullptr;
    if (session_.rank == 0)
        std::fprintf(stderr, "\rbench: %s, preparing %-40s", memory_->grid().text().c_str(),
                     column.name.c_str());
    series.make_seconds.push_back(session_.time([&way] { return way->make(); }).seconds);
    if (!column.native) {
        for (int calls = 0; calls < way->calls_until_met(); ++calls)
            call([&way] { return way->call(); }, column, series, false, false);
        if (way->meet() != MPI_SUCCESS) die("the barrier of column " + column.name + " failed");
    }
    const int warm_up_calls = way->warm_up_calls();
    for (int round = 0; round < warm_up_calls; ++round)
        call([&way] { return way->call(); }, column, series, false,
             round + 1 == warm_up_calls && memory_->bytes() <= checked_each_bytes);
    remember(column, series);
    return way;
}

void HaloDriver::take_turns(const Point& point, const std::function<void(std::size_t, bool)>& sample) {
    bench::take_turns(session_, point.columns.size(), point.samples, point.bytes, sample, [&](int done) {
        if (session_.rank == 0)
            std::fprintf(stderr, "\rbench: %s, sample %d of %d, %zu columns   ",
                         memory_->grid().text().c_str(), done, point.samples, point.columns.size());
    });
    if (session_.rank == 0) std::fprintf(stderr, "\n");
}

// Behind the timed calls: what any call has done to cells that no message was to touch is there until then.
void HaloDriver::check_elsewhere(std::vector<Series>& series) {
    std::uint64_t wrong = memory_->count_wrong_elsewhere();
    PMPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_UINT64_T, MPI_SUM, session_.control);
    for (Series& each : series) each.wrong_words += wrong;
    wrong_ += wrong;
}

void HaloDriver::measure_point(const Point& point) {
    const HaloGrid grid = grid_of(point.halo, session_.size);
    const auto memory = std::make_unique<HaloMemory>(grid, session_.rank, session_.host_of);
    memory_ = memory.get();
    bytes_ = halo_bytes(grid, session_.host_of);
    copied_bytes_per_s_ =
        copied_per_second(static_cast<std::size_t>(bytes_.most_inside + bytes_.most_outside));
    const std::size_t count = point.columns.size();
    std::vector<Series> series(count);
    std::vector<std::unique_ptr<HaloWay>> ways(count);
    for (std::size_t i = 0; i < count; ++i) ways[i] = prepare(config_.columns[point.columns[i]], series[i]);
    const bool all_warm = choices_change(config_, point);
    take_turns(point, [&](std::size_t i, bool idle) {
        const Column& column = config_.columns[point.columns[i]];
        const auto way_call = [&] { return ways[i]->call(); };
        bool changed = false;
        if (!choose(column, series[i], changed)) return;
        if (changed || idle || all_warm) {
            call(way_call, column, series[i], false, false);
            ++series[i].warm_samples;
        }
        call(way_call, column, series[i], true, false);
    });
    check_elsewhere(series);
    for (std::size_t i = 0; i < count; ++i)
        if (ways[i] != nullptr) ways[i]->free();
    ways.clear();
    if (session_.rank != 0) return;
    for (std::size_t i = 0; i < count; ++i)
        write_row(out_, line_of(point, config_.columns[point.columns[i]], series[i]).dump());
}

nlohmann::json HaloDriver::line_of(const Point& point, const Column& column, const Series& series) const {
    nlohmann::json line =
        row_of(config_.collective, bytes_.largest, column, series, session_.links.present());
    line["halo"] = point.halo;
    line["halo"].update({{"link_bytes", bytes_.link},
                         {"wire_bytes", bytes_.wire},
                         {"inside_bytes", bytes_.inside},
                         {"packed_bytes", bytes_.packed},
                         {"copied_bytes_per_s", copied_bytes_per_s_},
                         {"copiers", session_.size},
                         {"cores", sysconf(_SC_NPROCESSORS_ONLN)},
                         {"make_seconds", series.make_seconds},
                         {"warm_samples", series.warm_samples}});
    return line;
}

int HaloDriver::run() {
    for (const auto& point : config_.points) {
        if (config_.phase == changing_phase)
            measure_changing(point);
        else if (config_.phase == overlap_phase)
            measure_overlap(point);
        else
            measure_point(point);
    }
    return session_.status_of(wrong_);
}

}  // namespace thalweg::bench
