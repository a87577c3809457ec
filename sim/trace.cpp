#include "sim/trace.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <queue>
#include <string_view>
#include <system_error>
#include <utility>

namespace thalweg::sim {
namespace {

// Viewers count in whole nanoseconds, and find the slice at the end of an arrow by thread and time alone: a
// slice lasts so long that one nanosecond is inside it and on neither of its edges.
constexpr std::int64_t least_length = 2;

constexpr std::array<std::string_view, 4> kind_names = {"send", "recv", "copy", "reduce"};  // as StepKind
std::size_t kind_of(const Step& step) { return static_cast<std::size_t>(step.kind); }

// A step as it is drawn: nanoseconds, and the thread of its rank.
struct Bar {
    std::int64_t begin = 0, end = 0;
    std::uint32_t thread = 0;
};

// The lanes of one kind of step of one rank. Bars of a lane do not even nest: where they do, Perfetto gives
// the arrow of the outer one to the last that began.
class Lanes {
  public:
    // The lowest that is free. Pre: bars come in the order in which they begin.
    std::uint32_t take(const Bar& bar) {
        for (; !busy_.empty() && busy_.top().first <= bar.begin; busy_.pop()) free_.push(busy_.top().second);
        std::uint32_t lane = count_;
        if (free_.empty()) {
            ++count_;
        } else {
            lane = free_.top();
            free_.pop();
        }
        busy_.emplace(bar.end, lane);
        return lane;
    }
    std::uint32_t count() const { return count_; }

  private:
    using Busy = std::pair<std::int64_t, std::uint32_t>;  // until when, and which
    std::priority_queue<Busy, std::vector<Busy>, std::greater<>> busy_;
    std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> free_;
    std::uint32_t count_ = 0;
};

std::int64_t nanoseconds(double seconds) { return std::llround(seconds * 1e9); }

// The format's unit.
std::string microseconds(std::int64_t ns) { return fmt::format("{}.{:03}", ns / 1000, ns % 1000); }

std::string title_of(const Step& step) {
    switch (step.kind) {
        case StepKind::send:
            return fmt::format("send to {}", step.peer);
        case StepKind::recv:
            return fmt::format("recv from {}", step.peer);
        case StepKind::copy:
            return "copy";
        case StepKind::reduce:
            return "reduce";
        default:
            return "step";
    }
}

GlobalStep send_of(const Matching& matching, const Matched& message) {
    return matching.first[static_cast<std::size_t>(message.from)] + message.send;
}
GlobalStep recv_of(const Matching& matching, const Matched& message) {
    return matching.first[static_cast<std::size_t>(message.to)] + message.recv;
}

std::vector<Bar> bars_of(const Matching& matching, std::span<const Span> spans) {
    std::vector<Bar> bars(spans.size());
    for (std::size_t at = 0; at < spans.size(); ++at) {
        bars[at].begin = nanoseconds(spans[at].ready);
        bars[at].end = std::max(nanoseconds(spans[at].complete), bars[at].begin + least_length);
    }
    for (const Matched& message : matching.messages) {  // no arrow goes back in time
        Bar& recv = bars[recv_of(matching, message)];
        recv.end = std::max(recv.end, bars[send_of(matching, message)].begin + least_length);
    }
    return bars;
}

// Gives every step of a rank its thread, the first of them being `first`. Returns the first of each kind, and
// the one behind the last.
std::array<std::uint32_t, kind_names.size() + 1> thread_all(const Schedule& schedule, std::span<Bar> bars,
                                                            std::uint32_t first) {
    std::vector<StepId> order(bars.size());
    std::iota(order.begin(), order.end(), StepId{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](StepId a, StepId b) { return bars[a].begin < bars[b].begin; });
    std::array<Lanes, kind_names.size()> lanes;
    for (const StepId id : order) bars[id].thread = lanes[kind_of(schedule.steps()[id])].take(bars[id]);
    std::array<std::uint32_t, kind_names.size() + 1> firsts{first};
    for (std::size_t kind = 0; kind < lanes.size(); ++kind)
        firsts[kind + 1] = firsts[kind] + lanes[kind].count();
    for (const StepId id : order) bars[id].thread += firsts[kind_of(schedule.steps()[id])];
    return firsts;
}

void write_rank(std::FILE* to, const Schedule& schedule, int host, std::span<Bar> bars) {
    const int rank = schedule.rank();
    const char* comma = rank == 0 ? "\n" : ",\n";
    fmt::print(
        to, R"json({}{{"ph":"M","name":"process_name","pid":{},"args":{{"name":"rank {} (host {})"}}}})json",
        comma, rank, rank, host);
    fmt::print(to,
               ",\n"
               R"({{"ph":"M","name":"process_sort_index","pid":{},"args":{{"sort_index":{}}}}})",
               rank, rank);
    // Numbers that no process has: viewers take a thread with its process's number for the main one.
    const auto firsts = thread_all(schedule, bars, static_cast<std::uint32_t>(schedule.size()));
    for (std::size_t kind = 0; kind < kind_names.size(); ++kind) {
        for (std::uint32_t thread = firsts[kind]; thread < firsts[kind + 1]; ++thread) {
            fmt::print(to,
                       ",\n"
                       R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":"{} {}"}}}})",
                       rank, thread, kind_names[kind], thread - firsts[kind] + 1);
            fmt::print(to,
                       ",\n"
                       R"({{"ph":"M","name":"thread_sort_index","pid":{},"tid":{},)"
                       R"("args":{{"sort_index":{}}}}})",
                       rank, thread, thread);
        }
    }
    for (StepId id = 0; id < schedule.steps().size(); ++id) {
        const Step& step = schedule.steps()[id];
        const Bar& bar = bars[id];
        const std::uint64_t bytes = step.kind == StepKind::recv ? step.target.bytes : step.source.bytes;
        fmt::print(to,
                   ",\n"
                   R"({{"ph":"X","cat":"step","name":"{}","pid":{},"tid":{},"ts":{},"dur":{},)"
                   R"("args":{{"bytes":{},"step":{}}}}})",
                   title_of(step), rank, bar.thread, microseconds(bar.begin),
                   microseconds(bar.end - bar.begin), bytes, id);
    }
}

// From where the send begins to where its receive ends.
void write_arrow(std::FILE* to, std::size_t id, const Matched& message, const Bar& send, const Bar& recv) {
    fmt::print(to,
               ",\n"
               R"({{"ph":"s","cat":"message","id":{},"name":"message","pid":{},"tid":{},"ts":{}}})",
               id, message.from, send.thread, microseconds(send.begin + 1));
    fmt::print(to,
               ",\n"
               R"({{"ph":"f","bp":"e","cat":"message","id":{},"name":"message","pid":{},"tid":{},"ts":{}}})",
               id, message.to, recv.thread, microseconds(recv.end - 1));
}

}  // namespace

Status write_trace(const std::string& path, std::span<const Schedule> schedules, const Topology& topology,
                   const Matching& matching, std::span<const Span> spans, std::string& why) try {
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "w"), std::fclose);
    if (!file) {
        why = "cannot write " + path + ": " + std::strerror(errno);
        return Status::io_failed;
    }
    std::FILE* to = file.get();
    std::vector<Bar> bars = bars_of(matching, spans);
    fmt::print(to, "{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
    for (const Schedule& schedule : schedules) {
        const int rank = schedule.rank();
        write_rank(
            to, schedule, topology.node_of(rank),
            std::span(bars).subspan(matching.first[static_cast<std::size_t>(rank)], schedule.steps().size()));
    }
    for (std::size_t i = 0; i < matching.messages.size(); ++i) {
        const Matched& message = matching.messages[i];
        write_arrow(to, i, message, bars[send_of(matching, message)], bars[recv_of(matching, message)]);
    }
    fmt::print(to, "\n]}}\n");
    if (std::fflush(to) != 0 || std::ferror(to)) {
        why = "cannot write " + path + ": " + std::strerror(errno);
        return Status::io_failed;
    }
    return Status::ok;
} catch (const std::system_error& error) {  // of fmt::print
    why = "cannot write " + path + ": " + error.code().message();
    return Status::io_failed;
}

}  // namespace thalweg::sim
