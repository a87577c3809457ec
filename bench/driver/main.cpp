// The bench driver: one MPI program for all collectives, launched by `thalweg bench`. Interleaves the columns
// of each point sample by sample, checks every byte of every call, and writes one JSON line per point and
// column.
//
// Time of one call: all ranks sleep until an agreed instant of a clock they share (ranks of one machine: the
// lab, or one host), and the time is that of the last rank to return. Without a shared clock a barrier takes
// the place of the instant and each rank counts from its own start.
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "bench/race.h"
#include "bench/statistics.h"
#include "driver/cases.h"
#include "driver/config.h"
#include "driver/exchange.h"
#include "driver/halo.h"
#include "driver/link_counters.h"
#include "driver/nonblocking.h"
#include "driver/ours.h"
#include "driver/overlap.h"
#include "driver/series.h"
#include "driver/session.h"
#include "driver/small.h"
#include "model/trial.h"

namespace thalweg::bench {
namespace {

constexpr int back_to_back_every = 3;  // samples
constexpr int set_up_calls = 8;
constexpr std::size_t set_up_bytes = 128u << 10;

struct Series {
    std::vector<double> seconds, back_to_back;
    LinkCounters busiest;  // of the host with the most bytes in one direction, all timed calls added up
    std::uint64_t sent_by_all = 0;  // bytes that all hosts together sent
    long counted_calls = 0;
    std::uint64_t wrong_words = 0, late_samples = 0;
    Ran ran;
    std::string stopped;  // why it dropped out of a race
};

class Driver {
  public:
    Driver(Config config, Session& session, std::ostream* out);
    ~Driver();
    Driver(const Driver&) = delete;
    Driver& operator=(const Driver&) = delete;
    int run();

  private:
    double measure(const Column& column, MPI_Comm comm, std::size_t bytes, int calls, Series* series);
    void set_up(const Column& column);
    void settle(const Column& column, MPI_Comm comm, std::size_t bytes);
    void take_sample(const Column& column, MPI_Comm comm, const Point& point, int sample, Series& series);
    void measure_point(const Point& point);
    void drop_slow(const Point& point, std::vector<Series>& series) const;
    void measure_small_point(const Point& point);
    void write(const Point& point, const Column& column, const Series& series);
    // `column` is one of the configuration's.
    std::size_t index_of(const Column& column) const {
        return static_cast<std::size_t>(&column - config_.columns.data());
    }

    Config config_;
    const Case* case_;
    Session& session_;
    std::ostream* out_;
    MPI_Comm ours_comm_ = MPI_COMM_NULL;  // of all columns of ours
    // By column: a native one has its own, because some libraries choose when a communicator is made.
    std::vector<MPI_Comm> comms_;
    std::vector<unsigned char> memory_;
    std::uint64_t seed_ = 1;
    std::uint64_t wrong_total_ = 0;
    std::vector<std::uint64_t> untold_;  // by column: wrong words of calls without a sample, for its next row
};

Driver::Driver(Config config, Session& session, std::ostream* out)
    : config_(std::move(config)), case_(find_case(config_.collective)), session_(session), out_(out) {
    if (case_ == nullptr) die("there is no case named " + config_.collective);
    untold_.resize(config_.columns.size());
    PMPI_Comm_dup(MPI_COMM_WORLD, &ours_comm_);
    for (const auto& column : config_.columns) {
        MPI_Comm comm = ours_comm_;
        session_.select(column, config_.collective);
        if (column.native) PMPI_Comm_dup(MPI_COMM_WORLD, &comm);
        comms_.push_back(comm);
        if (!column.native) set_up(column);
    }
}

Driver::~Driver() {
    for (std::size_t i = 0; i < comms_.size(); ++i)
        if (config_.columns[i].native) PMPI_Comm_free(&comms_[i]);
    MPI_Comm_free(&ours_comm_);
}

// A communicator is set up for schedules once it has carried enough; that is not what a column measures.
void Driver::set_up(const Column& column) {
    for (int i = 0; i < set_up_calls; ++i) measure(column, ours_comm_, set_up_bytes, 1, nullptr);
}

// Where both ways of a broadcast are tried in turns, as many calls as that takes: a column measures what
// follows from them. What a trial leaves to the library may be seen by some ranks, and by others not.
void Driver::settle(const Column& column, MPI_Comm comm, std::size_t bytes) {
    if (column.native || session_.hosts > 1) return;
    constexpr int calls = static_cast<int>(TrialTurns::latest_set_up) + 1 + trial_calls + 1;
    session_.select(column, config_.collective);
    for (int i = 0; i < calls; ++i) {
        measure(column, comm, bytes, 1, nullptr);
        Ran ran;
        session_.ours.tell(ran);
        const bool in_turns = ran.reason.find("in turns") != std::string::npos;
        int settled = ran.reason.empty() || ran.reason.find(Ours::unseen) != std::string::npos ||
                      (!ran.algorithm.empty() && !in_turns);  // it was asked for
        PMPI_Allreduce(MPI_IN_PLACE, &settled, 1, MPI_INT, MPI_MAX, session_.control);
        if (settled != 0) return;
    }
}

// `calls` back-to-back calls on as many buffers; seconds per call. series: where to add counters and checks,
// or null for warm-up.
double Driver::measure(const Column& column, MPI_Comm comm, std::size_t bytes, int calls, Series* series) {
    const std::size_t each = case_->memory(bytes, session_.size);
    memory_.resize(std::max(memory_.size(), each * static_cast<std::size_t>(calls)));
    const auto buffers = [&](int i) {
        return Buffers{memory_.data() + static_cast<std::size_t>(i) * each, bytes};
    };
    for (int i = 0; i < calls; ++i)
        case_->prepare(buffers(i), session_.rank, session_.size, config_.root,
                       seed_ + static_cast<std::uint64_t>(i));
    session_.meet();
    const LinkCounters before = session_.links.read();
    const Session::Timed timed = session_.time([&] {
        int error = MPI_SUCCESS;
        for (int i = 0; i < calls && error == MPI_SUCCESS; ++i)
            error = case_->call(buffers(i), config_.root, comm, column.native);
        return error;
    });
    const LinkCounters crossed = session_.links.read() - before;
    std::uint64_t wrong = 0, wrong_all = 0;
    for (int i = 0; i < calls; ++i)
        wrong += case_->check(buffers(i), session_.rank, session_.size, config_.root,
                              seed_ + static_cast<std::uint64_t>(i));
    PMPI_Allreduce(&wrong, &wrong_all, 1, MPI_UINT64_T, MPI_SUM, session_.control);
    seed_ += static_cast<std::uint64_t>(calls);
    wrong_total_ += wrong_all;
    if (series == nullptr) {
        untold_[index_of(column)] += wrong_all;
    } else {
        std::uint64_t counters[4] = {crossed.tx_bytes, crossed.rx_bytes, crossed.tx_packets,
                                     crossed.rx_packets};
        std::uint64_t highest[4], sent = session_.local_rank == 0 ? crossed.tx_bytes : 0, sent_by_all = 0;
        PMPI_Allreduce(counters, highest, 4, MPI_UINT64_T, MPI_MAX, session_.control);
        PMPI_Allreduce(&sent, &sent_by_all, 1, MPI_UINT64_T, MPI_SUM, session_.control);
        series->busiest += {highest[0], highest[1], highest[2], highest[3]};
        series->sent_by_all += sent_by_all;
        series->counted_calls += calls;
        series->wrong_words += wrong_all;
        series->late_samples += timed.late;
    }
    return timed.seconds / calls;
}

// Every rank comes to the same result: the seconds are the largest of all ranks', and so equal on all.
void Driver::drop_slow(const Point& point, std::vector<Series>& series) const {
    double best = point.best_seconds;
    for (const Series& each : series)
        if (!each.seconds.empty() && (best <= 0 || median(each.seconds) < best)) best = median(each.seconds);
    for (std::size_t i = 0; i < series.size(); ++i)
        if (!config_.columns[point.columns[i]].always && series[i].stopped.empty())
            series[i].stopped = race_stop(point.bytes, series[i].seconds, best);
}

void Driver::take_sample(const Column& column, MPI_Comm comm, const Point& point, int sample,
                         Series& series) {
    series.seconds.push_back(measure(column, comm, point.bytes, 1, &series));
    if (!column.native) session_.ours.tell(series.ran);
    // Far fewer of these are needed: what differs from single calls differs by much.
    if (point.back_to_back > 0 && sample % back_to_back_every == 0)
        series.back_to_back.push_back(measure(column, comm, point.bytes, point.back_to_back, &series));
}

void Driver::measure_point(const Point& point) {
    const int calls = std::max(1, point.back_to_back);
    memory_.resize(case_->memory(point.bytes, session_.size) * static_cast<std::size_t>(calls));
    const std::size_t warm_up_bytes =
        point.warm_up_bytes > 0 ? std::min(point.warm_up_bytes, point.bytes) : point.bytes;
    std::vector<Series> series(point.columns.size());
    for (const std::size_t index : point.columns) settle(config_.columns[index], comms_[index], point.bytes);
    const int warm_ups = static_cast<int>(config_.warm_up_calls);
    const bool all_warm = choices_change(config_, point);
    int sample = -warm_ups;
    const auto call = [&](std::size_t i, bool idle) {
        if (!series[i].stopped.empty()) return;
        const std::size_t index = point.columns[i];
        const Column& column = config_.columns[index];
        const bool changed = session_.select(column, config_.collective);
        if (sample < 0 || changed || ((idle || all_warm) && !point.race))
            measure(column, comms_[index], warm_up_bytes, 1, nullptr);
        if (sample >= 0) take_sample(column, comms_[index], point, sample, series[i]);
    };
    const auto round_done = [&](int rounds) {
        sample = rounds - warm_ups;
        if (point.race && sample < point.samples) drop_slow(point, series);
        if (session_.rank == 0)
            std::fprintf(stderr, "\rbench: %10zu bytes, sample %d of %d, %zu columns   ", point.bytes,
                         std::max(0, sample), point.samples, series.size());
    };
    take_turns(session_, series.size(), warm_ups + point.samples, point.bytes, call, round_done);
    if (session_.rank == 0) {
        std::fprintf(stderr, "\n");
        for (std::size_t i = 0; i < series.size(); ++i)
            write(point, config_.columns[point.columns[i]], series[i]);
    }
}

void Driver::measure_small_point(const Point& point) {
    if (!session_.shared_clock || session_.hosts > 1) die("small calls are measured on one host");
    std::vector<SmallColumn> columns;
    for (const std::size_t index : point.columns) {
        const Column& column = config_.columns[index];
        columns.push_back(
            {column.native, [this, &column] { session_.select(column, config_.collective); }, {}});
    }
    measure_small(*case_, point.bytes, point.small_calls, ours_comm_, session_.control, session_.ours,
                  columns);
    for (std::size_t i = 0; i < columns.size(); ++i) {
        wrong_total_ += columns[i].result.wrong_words;
        columns[i].result.wrong_words += std::exchange(untold_[point.columns[i]], 0);
        if (session_.rank == 0) {
            nlohmann::json line = to_json(columns[i].result);
            line["kind"] = "point";
            line["collective"] = config_.collective;
            line["bytes"] = point.bytes;
            line["column"] = config_.columns[point.columns[i]].name;
            write_row(*out_, line.dump());
        }
    }
}

void Driver::write(const Point& point, const Column& column, const Series& series) {
    nlohmann::json line;
    line["kind"] = "point";
    line["collective"] = config_.collective;
    line["bytes"] = point.bytes;
    line["column"] = column.name;
    if (!case_->element.empty()) line["element"] = case_->element;
    line["seconds"] = series.seconds;
    line["back_to_back_seconds"] = series.back_to_back;
    line["back_to_back_calls"] = point.back_to_back;
    line["wrong_words"] = series.wrong_words + std::exchange(untold_[index_of(column)], 0);
    line["late_samples"] = series.late_samples;
    add_to(line, series.ran);
    if (!series.stopped.empty()) line["stopped"] = series.stopped;
    if (session_.links.present()) {
        const double calls = static_cast<double>(series.counted_calls);
        line["all_tx_bytes"] = static_cast<double>(series.sent_by_all) / calls;
        line["tx_bytes"] = static_cast<double>(series.busiest.tx_bytes) / calls;
        line["tx_packets"] = static_cast<double>(series.busiest.tx_packets) / calls;
    }
    write_row(*out_, line.dump());
}

int Driver::run() {
    for (const auto& point : config_.points) {
        if (point.small_calls > 0) {
            measure_small_point(point);
        } else {
            measure_point(point);
        }
    }
    return session_.status_of(wrong_total_);
}

}  // namespace
}  // namespace thalweg::bench

int main(int argc, char** argv) {
    using namespace thalweg::bench;
    MPI_Init(&argc, &argv);
    int rank = 0;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc != 3) die("usage: thalweg-bench CONFIG.json RESULTS.jsonl");
    Config config;
    std::string why;
    if (!read_config(argv[1], config, why)) die(why);
    std::ofstream out;
    if (rank == 0) {
        out.open(argv[2], std::ios::app);
        if (!out) die(std::string("the results file ") + argv[2] + " cannot be written");
    }
    int status = 0;
    {
        Session session;
        if (session.rank == 0) session.describe(out);
        session.leave_out_unknown(config);
        if (config.collective == exchange_collective) {
            status = ExchangeDriver(config, session, out).run();
        } else if (config.collective == halo_collective) {
            status = HaloDriver(config, session, out).run();
        } else if (find_nonblocking_case(config.collective) != nullptr) {
            status = OverlapDriver(config, session, out).run();
        } else {
            status = Driver(std::move(config), session, &out).run();
        }
    }
    MPI_Finalize();
    return status;
}
