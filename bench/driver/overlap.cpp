#include "driver/overlap.h"

#include <sys/prctl.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "bench/statistics.h"
#include "driver/series.h"

namespace thalweg::bench {
namespace {

constexpr int warm_up_rounds = 3;  // of each column, pure; the reference's fastest one sets the equal work
// A communicator is set up after eight nonblocking collectives, or the first ones that are large.
constexpr int set_up_rounds = 9;
constexpr unsigned long timer_slack_ns = 1000;  // of sleeps as computation; 50 us unless told otherwise

double mean(const std::vector<double>& values) {
    return values.empty()
               ? 0
               : std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace

OverlapDriver::OverlapDriver(const Config& config, Session& session, std::ostream& out)
    : config_(config), case_(*find_nonblocking_case(config.collective)), session_(session), out_(out) {
    prctl(PR_SET_TIMERSLACK, timer_slack_ns, 0, 0, 0);
    for (const std::string& name : config_.computes) {
        ComputeKind kind{};
        if (!parse_compute(name, kind)) die("there is no kind of computation named " + name);
        computes_.push_back(std::make_unique<Compute>(kind));
    }
    if (computes_.empty()) die("the configuration names no kind of computation");
    exchange_.rank = session_.rank;
    exchange_.size = session_.size;
    exchange_.root = config_.root;
    untold_.resize(config_.columns.size());
    for (std::size_t i = 0; i < config_.columns.size(); ++i) {
        comms_.push_back(MPI_COMM_NULL);
        const Column& column = config_.columns[i];
        session_.select(column, std::string(case_.operation));
        if (column.way == CallWay::sockets && !sockets_)
            sockets_ = std::make_unique<SocketMover>(session_.control);
        if (column.native) {
            PMPI_Comm_dup(MPI_COMM_WORLD, &comms_[i]);
        } else {
            MPI_Comm_dup(MPI_COMM_WORLD, &comms_[i]);
        }
    }
}

OverlapDriver::~OverlapDriver() {
    for (std::size_t i = 0; i < comms_.size(); ++i) {
        if (config_.columns[i].native) {
            PMPI_Comm_free(&comms_[i]);
        } else {
            MPI_Comm_free(&comms_[i]);
        }
    }
}

void OverlapDriver::begin(std::size_t column, MPI_Request& request) {
    const Column& what = config_.columns[column];
    int error = MPI_SUCCESS;
    switch (what.way) {
        case CallWay::nonblocking:
        case CallWay::tested:
            error = case_.start(exchange_, comms_[column], &request, what.native);
            break;
        case CallWay::blocking:
        case CallWay::alone:
            error = case_.block(exchange_, comms_[column]);
            break;
        case CallWay::sockets:
            sockets_->start();
            break;
        case CallWay::nothing:
            break;
    }
    if (error != MPI_SUCCESS) die("the call failed");
}

void OverlapDriver::end(std::size_t column, MPI_Request& request) {
    const Column& what = config_.columns[column];
    if (what.way == CallWay::sockets) sockets_->wait();
    if (what.way != CallWay::nonblocking && what.way != CallWay::tested) return;
    const int error =
        what.native ? PMPI_Wait(&request, MPI_STATUS_IGNORE) : MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (error != MPI_SUCCESS) die("the wait failed");
}

OverlapCall OverlapDriver::call(std::size_t column, Compute* compute, double amount) {
    const Column& what = config_.columns[column];
    const bool moves = what.way != CallWay::nothing;
    ++seed_;
    if (what.way == CallWay::sockets) {
        const StreamBytes stream = case_.stream(exchange_);
        sockets_->prepare(stream.sent, stream.received, seed_);
    } else if (moves) {
        case_.prepare(exchange_, seed_);
    }
    OverlapCall mine;
    MPI_Request request = MPI_REQUEST_NULL;
    std::function<void()> probe;
    if (what.way == CallWay::tested)
        probe = [&] {
            if (request == MPI_REQUEST_NULL) return;
            int done = 0;
            PMPI_Test(&request, &done, MPI_STATUS_IGNORE);
            ++mine.tests;
        };
    session_.meet();
    const ProcessClocks clocks_before = read_process_clocks();
    const double softirq_before = read_softirq_seconds();
    const LinkCounters crossed_before = session_.links.read();
    const double instant = session_.agree_on_start();
    session_.await(instant);
    const double began = now();
    begin(column, request);
    ThreadClock own_before, own_after;
    LinkCounters computes, computed;
    if (compute != nullptr) {
        computes = session_.links.read();
        own_before = read_own_clock();
        mine.compute = compute->run(amount, probe);
        own_after = read_own_clock();
        computed = session_.links.read();
    }
    end(column, request);
    const double ended = now();
    const ProcessClocks clocks = read_process_clocks() - clocks_before;
    mine.softirq = read_softirq_seconds() - softirq_before;
    mine.late = session_.shared_clock ? began - instant : 0;
    mine.total = ended - began;
    mine.delay = (own_after - own_before).delay_seconds;
    mine.lost = (own_after - own_before).lost;
    mine.agent_cpu = clocks.agent.cpu_seconds;
    mine.agent_wakes = clocks.agent.wake_ups;
    mine.other_cpu = clocks.other.cpu_seconds;
    mine.other_wakes = clocks.other.wake_ups;
    if (what.way == CallWay::sockets) {
        mine.wrong = static_cast<double>(sockets_->check());
    } else if (moves) {
        mine.wrong = static_cast<double>(case_.check(exchange_, seed_));
    }
    // What is still on its way to another rank's host belongs to this call.
    session_.meet();
    const LinkCounters crossed = session_.links.read() - crossed_before;
    mine.tx_bytes = static_cast<double>(crossed.tx_bytes);
    mine.crossed = static_cast<double>(crossed.tx_bytes + crossed.rx_bytes);
    const LinkCounters meanwhile = computed - computes;
    mine.crossed_in_compute = static_cast<double>(meanwhile.tx_bytes + meanwhile.rx_bytes);
    return mine;
}

std::vector<OverlapCall> OverlapDriver::gather(const OverlapCall& mine) const {
    std::vector<OverlapCall> all(static_cast<std::size_t>(session_.size));
    constexpr int doubles = sizeof(OverlapCall) / sizeof(double);
    PMPI_Allgather(&mine, doubles, MPI_DOUBLE, all.data(), doubles, MPI_DOUBLE, session_.control);
    return all;
}

// Nonblocking collectives on a communicator are ours from the blocking one on that follows enough of them.
void OverlapDriver::set_up(std::size_t column) {
    session_.select(config_.columns[column], std::string(case_.operation));
    for (int round = 0; round < set_up_rounds; ++round) {
        for (const OverlapCall& each : gather(call(column, nullptr, 0))) {
            wrong_total_ += static_cast<std::uint64_t>(each.wrong);
            untold_[column] += static_cast<std::uint64_t>(each.wrong);
        }
        MPI_Barrier(comms_[column]);
    }
}

// All ranks at once, because they share a memory bus; the slowest of the fastest counts for all.
void OverlapDriver::calibrate() {
    for (auto& compute : computes_) {
        PMPI_Barrier(session_.control);
        compute->calibrate();
        double own = compute->amount_per_second(), least = own;
        PMPI_Allreduce(&own, &least, 1, MPI_DOUBLE, MPI_MIN, session_.control);
        compute->set_amount_per_second(least);
    }
}

// Seconds of the last rank.
double OverlapDriver::measure_pure(std::size_t column, OverlapSeries* series) {
    const std::vector<OverlapCall> calls = gather(call(column, nullptr, 0));
    double last = 0, from_instant = 0, tx_bytes = 0;
    std::vector<double> each;
    for (const OverlapCall& one : calls) {
        each.push_back(one.total);
        from_instant = std::max(from_instant, one.late + one.total);
        last = std::max(last, one.total);
        tx_bytes = std::max(tx_bytes, one.tx_bytes);
        wrong_total_ += static_cast<std::uint64_t>(one.wrong);
        if (series == nullptr) untold_[column] += static_cast<std::uint64_t>(one.wrong);
    }
    if (series == nullptr) return last;
    series->note(calls);
    series->pure.push_back(last);
    series->pure_mean.push_back(mean(each));
    series->pure_from_instant.push_back(from_instant);
    series->last_pure = each;
    series->here.push_back(each[static_cast<std::size_t>(session_.rank)]);
    series->tx_bytes += tx_bytes;
    if (!config_.columns[column].native) session_.ours.tell(series->ran);
    return last;
}

void OverlapDriver::measure_own(std::size_t column, OverlapSeries& series) {
    Compute& compute = *computes_[0];
    // Each rank for as long as it was in the call itself: a root may be done long before the others.
    const std::vector<OverlapCall> calls =
        gather(call(column, &compute, compute.amount_for(median(series.here))));
    series.note(calls);
    double visible = 0, agent_cpu = 0, agent_wakes = 0, other_cpu = 0, other_wakes = 0, tests = 0;
    std::vector<double> totals, computes;
    std::size_t worst = 0;
    for (std::size_t rank = 0; rank < calls.size(); ++rank) {
        const OverlapCall& one = calls[rank];
        totals.push_back(one.total);
        computes.push_back(one.compute);
        visible = std::max(visible, one.total - one.compute);
        agent_cpu = std::max(agent_cpu, one.agent_cpu);
        agent_wakes = std::max(agent_wakes, one.agent_wakes);
        other_cpu = std::max(other_cpu, one.other_cpu);
        other_wakes = std::max(other_wakes, one.other_wakes);
        tests = std::max(tests, one.tests);
        wrong_total_ += static_cast<std::uint64_t>(one.wrong);
        if (one.total > calls[worst].total) worst = rank;
    }
    series.own_total.push_back(mean(totals));
    series.own_compute.push_back(mean(computes));
    series.own_visible.push_back(visible);
    series.worst_pure.push_back(series.last_pure[worst]);
    series.worst_compute.push_back(calls[worst].compute);
    series.worst_total.push_back(calls[worst].total);
    series.agent_cpu += agent_cpu;
    series.agent_wakes += agent_wakes;
    series.other_cpu += other_cpu;
    series.other_wakes += other_wakes;
    series.tests += tests;
}

void OverlapDriver::measure_equal(std::size_t column, ComputeKind kind, double seconds,
                                  OverlapSeries& series) {
    std::size_t which = 0;
    while (computes_[which]->kind() != kind) ++which;
    Compute& compute = *computes_[which];
    const std::vector<OverlapCall> calls = gather(call(column, &compute, compute.amount_for(seconds)));
    series.note(calls);
    OverlapSeries::Equal& equal = series.equal[config_.computes[which]];
    double total = 0, softirq = 0;
    std::vector<double> computed;
    for (const OverlapCall& one : calls) {
        total = std::max(total, one.total);
        softirq = std::max(softirq, one.softirq);
        computed.push_back(one.compute);
        equal.delay += one.delay / static_cast<double>(calls.size());
        equal.lost += one.lost / static_cast<double>(calls.size());
        equal.crossed += one.crossed;
        equal.crossed_in_compute += one.crossed_in_compute;
        wrong_total_ += static_cast<std::uint64_t>(one.wrong);
    }
    equal.total.push_back(total);
    equal.compute.push_back(mean(computed));
    equal.softirq += softirq;
}

void OverlapDriver::measure_point(const Point& point) {
    exchange_.bytes = point.bytes;
    calibrate();
    for (const std::size_t index : point.columns)
        if (!config_.columns[index].native) set_up(index);
    double reference = 0, fastest = 0;  // seconds; 0: none
    for (int round = 0; round < warm_up_rounds; ++round)
        for (const std::size_t index : point.columns) {
            const Column& column = config_.columns[index];
            if (column.way == CallWay::nothing) continue;
            session_.select(column, std::string(case_.operation));
            const double seconds = measure_pure(index, nullptr);
            double& least = column.way == CallWay::sockets ? reference : fastest;
            least = least > 0 ? std::min(least, seconds) : seconds;
        }
    const double equal_seconds = reference > 0 ? reference : fastest;
    std::vector<OverlapSeries> series(point.columns.size());
    const bool all_warm = choices_change(config_, point);
    const auto sample = [&](std::size_t i, bool idle) {
        const std::size_t index = point.columns[i];
        const Column& column = config_.columns[index];
        // The next call of ours would decide and plan anew, once.
        const bool changed = session_.select(column, std::string(case_.operation));
        if (changed || ((idle || all_warm) && column.way != CallWay::nothing)) measure_pure(index, nullptr);
        if (column.way != CallWay::nothing) measure_pure(index, &series[i]);
        if (column.way == CallWay::alone) return;
        if (column.way != CallWay::nothing) measure_own(index, series[i]);
        for (const auto& compute : computes_) {
            // Further kinds only tell dilation: ours, the reference, and no traffic.
            if (compute != computes_[0] && column.native && column.way != CallWay::sockets &&
                column.way != CallWay::nothing)
                continue;
            measure_equal(index, compute->kind(), equal_seconds, series[i]);
        }
    };
    take_turns(session_, point.columns.size(), point.samples, point.bytes, sample, [&](int done) {
        if (session_.rank == 0)
            std::fprintf(stderr, "\rbench: %10zu bytes, sample %d of %d, %zu columns   ", point.bytes, done,
                         point.samples, point.columns.size());
    });
    if (session_.rank != 0) return;
    std::fprintf(stderr, "\n");
    for (std::size_t i = 0; i < series.size(); ++i) {
        series[i].wrong_words += std::exchange(untold_[point.columns[i]], 0);
        write(point, config_.columns[point.columns[i]], series[i], equal_seconds);
    }
}

void OverlapDriver::write(const Point& point, const Column& column, const OverlapSeries& series,
                          double equal_seconds) const {
    nlohmann::json line = series.to_json(config_.computes[0], equal_seconds);
    line["kind"] = "point";
    line["collective"] = config_.collective;
    line["bytes"] = point.bytes;
    line["column"] = column.name;
    if (!case_.element.empty()) line["element"] = case_.element;
    if (session_.links.present() && !series.pure.empty())
        line["tx_bytes"] = series.tx_bytes / static_cast<double>(series.pure.size());
    write_row(out_, line.dump());
}

int OverlapDriver::run() {
    for (const auto& point : config_.points) measure_point(point);
    return session_.status_of(wrong_total_);
}

}  // namespace thalweg::bench
