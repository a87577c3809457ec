// The bench driver: one MPI program for all collectives, launched by `thalweg bench`. Interleaves the columns
// of each point sample by sample, checks every byte of every call, and writes one JSON line per point and
// column.
//
// Time of one call: all ranks sleep until an agreed instant of a clock they share (ranks of one machine: the
// lab, or one host), and the time is that of the last rank to return. Without a shared clock a barrier takes
// the place of the instant and each rank counts from its own start.
#include <mpi.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "bench/race.h"
#include "bench/statistics.h"
#include "driver/cases.h"
#include "driver/config.h"
#include "driver/link_counters.h"
#include "driver/native_controls.h"
#include "driver/ours.h"
#include "driver/small.h"

namespace thalweg::bench {
namespace {

constexpr double start_margin_seconds =
    2e-3;                              // from "agreed" to the instant: enough for the agreement to travel
constexpr int back_to_back_every = 3;  // samples
constexpr int set_up_calls = 8;
constexpr std::size_t set_up_bytes = 128u << 10;
constexpr double wake_up_seconds = 3e-4;  // what a sleeper may oversleep; spun where each rank has a core
constexpr double late_seconds = 5e-4;     // a rank that starts later than this spoils its sample

double now() { return 1e-9 * static_cast<double>(now_ns()); }

void sleep_until(double instant) {
    timespec t;
    t.tv_sec = static_cast<time_t>(instant);
    t.tv_nsec = static_cast<long>((instant - static_cast<double>(t.tv_sec)) * 1e9);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, nullptr) != 0) {
    }
}

struct Series {
    std::vector<double> seconds, back_to_back;
    LinkCounters busiest;  // of the host with the most bytes in one direction, all timed calls added up
    std::uint64_t sent_by_all = 0;  // bytes that all hosts together sent
    long counted_calls = 0;
    std::uint64_t wrong_words = 0, late_samples = 0;
    std::string algorithm, reason;
    std::string stopped;  // why it dropped out of a race
};

class Driver {
  public:
    Driver(Config config, std::ostream* out);
    int run();

  private:
    double measure(const Column& column, MPI_Comm comm, std::size_t bytes, int calls, Series* series);
    bool select(const Column& column);
    void set_up(const Column& column);
    void measure_point(const Point& point);
    void drop_slow(const Point& point, std::vector<Series>& series) const;
    void measure_small_point(const Point& point);
    void write(const Point& point, const Column& column, const Series& series);

    Config config_;
    const Case* case_;
    std::ostream* out_;
    Ours ours_;
    NativeControls controls_;
    LinkReader links_;
    int rank_ = 0, size_ = 1, local_rank_ = 0, hosts_ = 1;
    bool shared_clock_ = false, spins_ = false;
    MPI_Comm control_ = MPI_COMM_NULL;    // the driver's own traffic
    MPI_Comm ours_comm_ = MPI_COMM_NULL;  // of all columns of ours
    // By column: a native one has its own, because some libraries choose when a communicator is made.
    std::vector<MPI_Comm> comms_;
    std::optional<std::string> selected_;  // the option of ours in effect
    std::vector<unsigned char> memory_;
    std::uint64_t seed_ = 1;
    std::uint64_t wrong_total_ = 0;
};

bool same_clock(MPI_Comm comm) {
    unsigned char boot[36] = {}, root[36];
    if (FILE* file = std::fopen("/proc/sys/kernel/random/boot_id", "r")) {
        if (std::fread(boot, 1, sizeof boot, file) != sizeof boot) boot[0] = 0;
        std::fclose(file);
    }
    std::copy(boot, boot + sizeof boot, root);
    PMPI_Bcast(root, sizeof root, MPI_BYTE, 0, comm);
    int same = boot[0] != 0 && std::equal(boot, boot + sizeof boot, root), all = 0;
    PMPI_Allreduce(&same, &all, 1, MPI_INT, MPI_MIN, comm);
    return all != 0;
}

Driver::Driver(Config config, std::ostream* out)
    : config_(std::move(config)), case_(find_case(config_.collective)), out_(out) {
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    PMPI_Comm_size(MPI_COMM_WORLD, &size_);
    if (case_ == nullptr) die("there is no case named " + config_.collective);
    PMPI_Comm_dup(MPI_COMM_WORLD, &control_);
    MPI_Comm node = MPI_COMM_NULL;
    PMPI_Comm_split_type(control_, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    PMPI_Comm_rank(node, &local_rank_);
    PMPI_Comm_free(&node);
    int leader = local_rank_ == 0;
    PMPI_Allreduce(&leader, &hosts_, 1, MPI_INT, MPI_SUM, control_);
    shared_clock_ = same_clock(control_);
    // All ranks of a shared clock run on this machine, whatever hosts they stand for.
    spins_ = size_ <= sysconf(_SC_NPROCESSORS_ONLN);
    PMPI_Comm_dup(MPI_COMM_WORLD, &ours_comm_);
    for (const auto& column : config_.columns) {
        MPI_Comm comm = ours_comm_;
        select(column);
        if (column.native) PMPI_Comm_dup(MPI_COMM_WORLD, &comm);
        comms_.push_back(comm);
        if (!column.native) set_up(column);
    }
}

// A communicator is set up for schedules once it has carried enough; that is not what a column measures.
void Driver::set_up(const Column& column) {
    memory_.resize(set_up_bytes);
    for (int i = 0; i < set_up_calls; ++i) measure(column, ours_comm_, set_up_bytes, 1, nullptr);
}

// True when our setting changed: the next call of ours decides and plans anew, which is not its usual cost.
bool Driver::select(const Column& column) {
    std::string why;
    if (!controls_.apply(column.controls, why)) die(why);
    if (column.native || (selected_ && *selected_ == column.option)) return false;
    if (ours_.set_option == nullptr) die("column " + column.name + " needs `thalweg run` around the driver");
    std::string option = "THALWEG_" + config_.collective;
    for (auto& c : option) c = static_cast<char>(std::toupper(c));
    if (ours_.set_option(option.c_str(), column.option.c_str()) != THALWEG_OK)
        die("Thalweg refused " + option + "=" + column.option);
    selected_ = column.option;
    return true;
}

// `calls` back-to-back calls on as many buffers; seconds per call. series: where to add counters and checks,
// or null for warm-up.
double Driver::measure(const Column& column, MPI_Comm comm, std::size_t bytes, int calls, Series* series) {
    for (int i = 0; i < calls; ++i)
        case_->prepare({memory_.data() + static_cast<std::size_t>(i) * bytes, bytes}, rank_, size_,
                       config_.root, seed_ + static_cast<std::uint64_t>(i));
    PMPI_Barrier(control_);
    const LinkCounters before = links_.read();
    PMPI_Barrier(control_);
    double instant = now() + start_margin_seconds;
    PMPI_Bcast(&instant, 1, MPI_DOUBLE, 0, control_);
    if (shared_clock_) {
        sleep_until(instant - (spins_ ? wake_up_seconds : 0));
        // A core that wakes up late would count as part of a short call.
        while (spins_ && now() < instant) {
        }
    } else {
        PMPI_Barrier(control_);
    }
    const double begin = now();
    for (int i = 0; i < calls; ++i) {
        const Buffers buffers{memory_.data() + static_cast<std::size_t>(i) * bytes, bytes};
        if (case_->call(buffers, config_.root, comm, column.native) != MPI_SUCCESS) die("the call failed");
    }
    const double end = now();
    double mine[2] = {end - (shared_clock_ ? instant : begin), shared_clock_ ? begin - instant : 0.0},
           most[2];
    PMPI_Allreduce(mine, most, 2, MPI_DOUBLE, MPI_MAX, control_);
    const LinkCounters crossed = links_.read() - before;
    std::uint64_t wrong = 0, wrong_all = 0;
    for (int i = 0; i < calls; ++i)
        wrong += case_->check({memory_.data() + static_cast<std::size_t>(i) * bytes, bytes}, rank_, size_,
                              config_.root, seed_ + static_cast<std::uint64_t>(i));
    PMPI_Allreduce(&wrong, &wrong_all, 1, MPI_UINT64_T, MPI_SUM, control_);
    seed_ += static_cast<std::uint64_t>(calls);
    wrong_total_ += wrong_all;
    if (series != nullptr) {
        std::uint64_t counters[4] = {crossed.tx_bytes, crossed.rx_bytes, crossed.tx_packets,
                                     crossed.rx_packets};
        std::uint64_t highest[4], sent = local_rank_ == 0 ? crossed.tx_bytes : 0, sent_by_all = 0;
        PMPI_Allreduce(counters, highest, 4, MPI_UINT64_T, MPI_MAX, control_);
        PMPI_Allreduce(&sent, &sent_by_all, 1, MPI_UINT64_T, MPI_SUM, control_);
        series->busiest += {highest[0], highest[1], highest[2], highest[3]};
        series->sent_by_all += sent_by_all;
        series->counted_calls += calls;
        series->wrong_words += wrong_all;
        series->late_samples += most[1] > late_seconds;
    }
    return most[0] / calls;
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

void Driver::measure_point(const Point& point) {
    const int calls = std::max(1, point.back_to_back);
    memory_.resize(std::max<std::size_t>(1, point.bytes * static_cast<std::size_t>(calls)));
    const std::size_t warm_up_bytes =
        point.warm_up_bytes > 0 ? std::min(point.warm_up_bytes, point.bytes) : point.bytes;
    std::vector<Series> series(point.columns.size());
    std::mt19937 order_seed(static_cast<unsigned>(point.bytes));  // the same order on all ranks
    std::vector<std::size_t> order(point.columns.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    for (int sample = -static_cast<int>(config_.warm_up_calls); sample < point.samples; ++sample) {
        if (point.race) drop_slow(point, series);
        for (const std::size_t i : order) {
            if (!series[i].stopped.empty()) continue;
            const std::size_t index = point.columns[i];
            const Column& column = config_.columns[index];
            const bool changed = select(column);
            Series* into = sample < 0 ? nullptr : &series[i];
            if (into == nullptr || changed) measure(column, comms_[index], warm_up_bytes, 1, nullptr);
            if (into == nullptr) continue;
            const double seconds = measure(column, comms_[index], point.bytes, 1, into);
            into->seconds.push_back(seconds);
            if (!column.native && ours_.last_call != nullptr) {
                thalweg_last_call last;
                if (ours_.last_call(&last) != THALWEG_NOT_FOUND) {
                    into->algorithm = last.algorithm;
                    into->reason = last.reason;
                }
            }
            // Far fewer of these are needed: what differs from single calls differs by much.
            if (point.back_to_back > 0 && sample % back_to_back_every == 0)
                into->back_to_back.push_back(measure(column, comms_[index], point.bytes, calls, into));
        }
        std::shuffle(order.begin(), order.end(), order_seed);
        if (rank_ == 0)
            std::fprintf(stderr, "\rbench: %10zu bytes, sample %d of %d, %zu columns   ", point.bytes,
                         std::max(0, sample + 1), point.samples, order.size());
    }
    if (rank_ == 0) {
        std::fprintf(stderr, "\n");
        for (std::size_t i = 0; i < series.size(); ++i)
            write(point, config_.columns[point.columns[i]], series[i]);
    }
}

void Driver::measure_small_point(const Point& point) {
    if (!shared_clock_ || hosts_ > 1) die("small calls are measured on one host");
    std::vector<SmallColumn> columns;
    for (const std::size_t index : point.columns) {
        const Column& column = config_.columns[index];
        columns.push_back({column.native, [this, &column] { select(column); }, {}});
    }
    measure_small(*case_, point.bytes, point.small_calls, ours_comm_, control_, ours_, columns);
    for (std::size_t i = 0; i < columns.size(); ++i) {
        wrong_total_ += columns[i].result.wrong_words;
        if (rank_ == 0) {
            nlohmann::json line = to_json(columns[i].result);
            line["kind"] = "point";
            line["collective"] = config_.collective;
            line["bytes"] = point.bytes;
            line["column"] = config_.columns[point.columns[i]].name;
            *out_ << line.dump() << std::endl;
        }
    }
}

void Driver::write(const Point& point, const Column& column, const Series& series) {
    nlohmann::json line;
    line["kind"] = "point";
    line["collective"] = config_.collective;
    line["bytes"] = point.bytes;
    line["column"] = column.name;
    line["seconds"] = series.seconds;
    line["back_to_back_seconds"] = series.back_to_back;
    line["back_to_back_calls"] = point.back_to_back;
    line["wrong_words"] = series.wrong_words;
    line["late_samples"] = series.late_samples;
    line["algorithm"] = series.algorithm;
    line["reason"] = series.reason;
    if (!series.stopped.empty()) line["stopped"] = series.stopped;
    if (links_.present()) {
        const double calls = static_cast<double>(series.counted_calls);
        line["all_hosts_tx_bytes"] = static_cast<double>(series.sent_by_all) / calls;
        line["busiest_host_per_call"] = {
            {"tx_bytes", static_cast<double>(series.busiest.tx_bytes) / calls},
            {"rx_bytes", static_cast<double>(series.busiest.rx_bytes) / calls},
            {"tx_packets", static_cast<double>(series.busiest.tx_packets) / calls},
            {"rx_packets", static_cast<double>(series.busiest.rx_packets) / calls}};
    }
    *out_ << line.dump() << std::endl;
}

int Driver::run() {
    if (rank_ == 0) {
        char version[MPI_MAX_LIBRARY_VERSION_STRING];
        int length = 0;
        PMPI_Get_library_version(version, &length);
        nlohmann::json line;
        line["kind"] = "launch";
        line["mpi"] = std::string(version).substr(0, std::string(version).find('\n'));
        line["ranks"] = size_;
        line["hosts"] = hosts_;
        line["shared_clock"] = shared_clock_;
        line["link_counters"] = links_.present();
        // What the lab measured about itself, and every setting of ours that was in effect.
        for (char** entry = environ; *entry != nullptr; ++entry) {
            const std::string text = *entry;
            if (!text.starts_with("THALWEG")) continue;
            const std::string value = text.substr(text.find('=') + 1);
            // Of a file only its name: where it lies says nothing to others.
            line["settings"][text.substr(0, text.find('='))] =
                value.starts_with('/') ? value.substr(value.rfind('/') + 1) : value;
        }
        *out_ << line.dump() << std::endl;
    }
    for (const auto& point : config_.points) {
        if (point.small_calls > 0) {
            measure_small_point(point);
        } else {
            measure_point(point);
        }
    }
    for (std::size_t i = 0; i < comms_.size(); ++i)
        if (config_.columns[i].native) PMPI_Comm_free(&comms_[i]);
    MPI_Comm_free(&ours_comm_);
    PMPI_Comm_free(&control_);
    if (wrong_total_ != 0 && rank_ == 0)
        std::fprintf(stderr, "thalweg bench: %llu wrong words were received\n",
                     static_cast<unsigned long long>(wrong_total_));
    return wrong_total_ == 0 ? 0 : 1;
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
        Driver driver(std::move(config), &out);
        status = driver.run();
    }
    MPI_Finalize();
    return status;
}
