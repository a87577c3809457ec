#include "driver/exchange.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>

#include "bench/statistics.h"
#include "driver/pattern.h"
#include "transport/mpi/host.h"

namespace thalweg::bench {
namespace {

constexpr int set_up_calls = 2;  // a communicator is set up after its first nonblocking collective
constexpr int plan_every = 2;    // samples: making one is measured in every other sample
constexpr unsigned char poison = 0xa5;

// The column whose calls are ours in the program's own form, repeated or planned.
bool is_ours(const Column& column) { return !column.native; }

}  // namespace

ExchangeDriver::ExchangeDriver(const Config& config, Session& session, std::ostream& out)
    : config_(config), session_(session), out_(out) {
    if (find_host() == nullptr) die("the MPI library was not found");
    complete_host();
    const int own_host = session_.host_of[static_cast<std::size_t>(session_.rank)];
    for (const int host : session_.host_of) memory_.near.push_back(host == own_host);
    for (const Column& column : config_.columns) {
        ExchangeGround ground;
        if (is_ours(column)) {
            MPI_Comm_dup(MPI_COMM_WORLD, &ground.comm);
        } else {
            PMPI_Comm_dup(MPI_COMM_WORLD, &ground.comm);
        }
        pools_.push_back(std::make_unique<WindowPool>(*host(), ground.comm));
        ground.pool = pools_.back().get();
        ground.memory = &memory_;
        grounds_.push_back(ground);
    }
}

ExchangeDriver::~ExchangeDriver() {
    for (std::size_t i = 0; i < grounds_.size(); ++i) {
        pools_[i]->drain();
        if (is_ours(config_.columns[i])) {
            MPI_Comm_free(&grounds_[i].comm);
        } else {
            PMPI_Comm_free(&grounds_[i].comm);
        }
    }
}

void ExchangeDriver::lay_out(const Point& point) {
    const auto size = static_cast<std::size_t>(session_.size), me = static_cast<std::size_t>(session_.rank);
    const std::vector<std::uint64_t>& matrix = point.matrix;
    if (matrix.size() != size * size) die("a point's matrix does not fit the number of ranks");
    const auto lay = [size](std::vector<int>& bytes, std::vector<int>& at, auto&& entry) {
        bytes.clear();
        at.clear();
        std::uint64_t end = 0;
        for (std::size_t peer = 0; peer < size; ++peer) {
            at.push_back(static_cast<int>(end));
            bytes.push_back(static_cast<int>(entry(peer)));
            end += entry(peer);
            if (end > std::numeric_limits<int>::max()) die("a point needs more than 2 GiB on one rank");
        }
        return static_cast<std::size_t>(end);
    };
    memory_.in.resize(
        lay(memory_.send_bytes, memory_.send_at, [&](std::size_t to) { return matrix[me * size + to]; }));
    memory_.out.resize(lay(memory_.receive_bytes, memory_.receive_at,
                           [&](std::size_t from) { return matrix[from * size + me]; }));
    link_bytes_ = 0;
    neighbours_ = 0;
    for (std::size_t host = 0; host < size; ++host) {
        double leaves = 0, enters = 0;
        for (std::size_t from = 0; from < size; ++from)
            for (std::size_t to = 0; to < size; ++to) {
                if (session_.host_of[from] == session_.host_of[to]) continue;
                const auto bytes = static_cast<double>(matrix[from * size + to]);
                if (session_.host_of[from] == static_cast<int>(host)) leaves += bytes;
                if (session_.host_of[to] == static_cast<int>(host)) enters += bytes;
            }
        link_bytes_ = std::max({link_bytes_, leaves, enters});
        int peers = 0;
        for (std::size_t to = 0; to < size; ++to) peers += to != host && matrix[host * size + to] != 0;
        neighbours_ = std::max(neighbours_, peers);
    }
}

void ExchangeDriver::prepare() {
    ++seed_;
    const auto size = static_cast<std::uint64_t>(session_.size);
    std::fill(memory_.out.begin(), memory_.out.end(), poison);
    for (std::size_t to = 0; to < memory_.send_at.size(); ++to)
        fill_pattern(memory_.in.data() + memory_.send_at[to],
                     static_cast<std::size_t>(memory_.send_bytes[to]),
                     (seed_ * size + static_cast<std::uint64_t>(session_.rank)) * size + to);
}

std::uint64_t ExchangeDriver::count_wrong_words() const {
    const auto size = static_cast<std::uint64_t>(session_.size);
    std::uint64_t wrong = 0;
    for (std::size_t from = 0; from < memory_.receive_at.size(); ++from)
        wrong += count_wrong(memory_.out.data() + memory_.receive_at[from],
                             static_cast<std::size_t>(memory_.receive_bytes[from]),
                             (seed_ * size + from) * size + static_cast<std::uint64_t>(session_.rank));
    return wrong;
}

// counts: the call is one of the series' samples.
void ExchangeDriver::call(ExchangeWay& way, Series* series, bool counts) {
    prepare();
    session_.meet();
    const LinkCounters before = session_.links.read();
    const Session::Timed timed = session_.time([&way] { return way.call(); });
    const LinkCounters crossed = session_.links.read() - before;
    std::uint64_t wrong = count_wrong_words(), wrong_all = 0;
    PMPI_Allreduce(&wrong, &wrong_all, 1, MPI_UINT64_T, MPI_SUM, session_.control);
    wrong_total_ += wrong_all;
    if (series != nullptr) series->wrong_words += wrong_all;
    if (!counts) return;
    double most[3] = {way.set_up_seconds, static_cast<double>(crossed.tx_bytes),
                      static_cast<double>(crossed.tx_packets)};
    PMPI_Allreduce(MPI_IN_PLACE, most, 3, MPI_DOUBLE, MPI_MAX, session_.control);
    series->seconds.push_back(timed.seconds);
    series->late_samples += timed.late;
    if (most[0] >= 0) series->set_up_seconds.push_back(most[0]);
    series->tx_bytes += most[1];
    series->tx_packets += most[2];
}

// Of a repeated call nothing but its own mark tells whether it was ours: what other columns called before
// goes by first.
void ExchangeDriver::call_timed(const Column& column, ExchangeWay& way, Series& series) {
    const bool tells = is_ours(column) && !way.persistent();
    Ran before;
    if (tells) session_.ours.tell(before);
    call(way, &series, true);
    if (!tells) return;
    session_.ours.tell(series.ran);
    series.taken_calls = std::max(series.taken_calls, 0) + !series.ran.algorithm.empty();
}

double ExchangeDriver::measure_idle_packets() {
    constexpr int rounds = 16;
    double sum = 0;
    for (int round = 0; round < rounds; ++round) {
        session_.meet();
        const LinkCounters before = session_.links.read();
        session_.time([] { return MPI_SUCCESS; });
        double most = static_cast<double>((session_.links.read() - before).tx_packets);
        PMPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_DOUBLE, MPI_MAX, session_.control);
        sum += most;
    }
    return sum / rounds;
}

// False: this column cannot be had here, and its series says why. changed: the next repeated call of ours
// decides and plans anew, once.
bool ExchangeDriver::choose(const Column& column, Series& series, bool& changed) {
    changed = false;
    return series.stopped.empty() && session_.offer(column, exchange_collective, changed, series.stopped);
}

// What a plan costs: making it, and freeing it. It is called once between, as a plan that is never used might
// put its work off.
void ExchangeDriver::measure_plan(std::size_t index, Series& series) {
    std::string why;
    const auto way = make_exchange_way(config_.columns[index].variant, grounds_[index], why);
    session_.meet();
    series.init_seconds.push_back(session_.time([&way] { return way->make(); }).seconds);
    if (is_ours(config_.columns[index])) session_.ours.tell(series.ran);
    call(*way, &series, false);
    series.free_seconds.push_back(session_.time([&way] { return way->free(); }).seconds);
}

void ExchangeDriver::measure_point(const Point& point) {
    lay_out(point);
    idle_packets_ = measure_idle_packets();
    const std::size_t count = point.columns.size();
    std::vector<Series> series(count);
    std::vector<std::unique_ptr<ExchangeWay>> ways(count);
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t index = point.columns[i];
        const Column& column = config_.columns[index];
        bool changed = false;
        if (!choose(column, series[i], changed)) continue;
        ways[i] = make_exchange_way(column.variant, grounds_[index], series[i].stopped);
        if (ways[i] == nullptr) continue;
        for (int round = 0; is_ours(column) && ways[i]->persistent() && round < set_up_calls; ++round) {
            const auto first = make_exchange_way(column.variant, grounds_[index], series[i].stopped);
            if (first->make() != MPI_SUCCESS) die("a plan cannot be made");
            call(*first, &series[i], false);
            first->free();
            MPI_Barrier(grounds_[index].comm);
        }
        if (ways[i]->make() != MPI_SUCCESS) die("a plan of column " + column.name + " cannot be made");
        for (; series[i].untimed_calls < ways[i]->warm_up_calls(); ++series[i].untimed_calls)
            call(*ways[i], &series[i], false);
    }
    // A plan keeps its choice: an untimed call goes before a repeated one alone, and then before all.
    bool all_warm = false;
    for (std::size_t i = 0; i < count; ++i)
        all_warm |=
            ways[i] != nullptr && is_ours(config_.columns[point.columns[i]]) && !ways[i]->persistent();
    all_warm = all_warm && choices_change(config_, point);
    int sample = 0;
    take_turns(
        session_, count, point.samples, point.bytes,
        [&](std::size_t i, bool idle) {
            bool changed = false;
            if (!choose(config_.columns[point.columns[i]], series[i], changed)) return;
            if (idle || all_warm || (changed && !ways[i]->persistent())) {
                call(*ways[i], &series[i], false);
                ++series[i].warm_samples;
            }
            call_timed(config_.columns[point.columns[i]], *ways[i], series[i]);
            if (ways[i]->persistent() && sample % plan_every == 0) measure_plan(point.columns[i], series[i]);
        },
        [&](int done) {
            sample = done;
            if (session_.rank == 0)
                std::fprintf(stderr, "\rbench: %s, %10zu bytes, sample %d of %d, %zu columns   ",
                             point.pattern.c_str(), point.bytes, done, point.samples, count);
        });
    for (std::size_t i = 0; i < count; ++i)
        if (ways[i] != nullptr) ways[i]->free();
    ways.clear();
    if (session_.rank != 0) return;
    std::fprintf(stderr, "\n");
    for (std::size_t i = 0; i < count; ++i) write(point, config_.columns[point.columns[i]], series[i]);
}

void ExchangeDriver::write(const Point& point, const Column& column, const Series& series) const {
    nlohmann::json line = row_of(config_.collective, point.bytes, column, series, session_.links.present());
    line["exchange"] = {{"pattern", point.pattern},
                        {"link_bytes", link_bytes_},
                        {"idle_packets", idle_packets_},
                        {"neighbours", neighbours_},
                        {"untimed_calls", series.untimed_calls},
                        {"warm_samples", series.warm_samples},
                        {"init_seconds", series.init_seconds},
                        {"free_seconds", series.free_seconds},
                        {"set_up_seconds", series.set_up_seconds}};
    if (series.taken_calls >= 0) line["exchange"]["taken_calls"] = series.taken_calls;
    write_row(out_, line.dump());
}

int ExchangeDriver::run() {
    for (const auto& point : config_.points) measure_point(point);
    return session_.status_of(wrong_total_);
}

}  // namespace thalweg::bench
