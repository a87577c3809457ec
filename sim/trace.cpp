#include "sim/trace.h"

#include <fmt/core.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <system_error>

namespace thalweg::sim {
namespace {

constexpr double micro = 1e6;

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

}  // namespace

Status write_trace(const std::string& path, std::span<const Schedule> schedules, const Topology& topology,
                   const Matching& matching, std::span<const Span> spans, std::string& why) try {
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "w"), std::fclose);
    if (!file) {
        why = "cannot write " + path + ": " + std::strerror(errno);
        return Status::io_failed;
    }
    std::FILE* to = file.get();
    fmt::print(to, "{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
    const char* comma = "\n";
    for (int host = 0; host < topology.nodes(); ++host, comma = ",\n")
        fmt::print(to, R"({}{{"ph":"M","name":"process_name","pid":{},"args":{{"name":"host {}"}}}})", comma,
                   host, host);
    for (const Schedule& schedule : schedules) {
        const int rank = schedule.rank(), host = topology.node_of(rank);
        fmt::print(to, R"({}{{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":"rank {}"}}}})",
                   comma, host, rank, rank);
        for (StepId id = 0; id < schedule.steps().size(); ++id) {
            const GlobalStep at = matching.first[static_cast<std::size_t>(rank)] + id;
            const Step& step = schedule.steps()[id];
            const Span& span = spans[at];
            const std::uint64_t bytes = step.kind == StepKind::recv ? step.target.bytes : step.source.bytes;
            // Steps of a rank overlap: asynchronous slices, which the viewers stack.
            for (const char phase : {'b', 'e'})
                fmt::print(to,
                           ",\n"
                           R"({{"ph":"{}","cat":"step","id":{},"name":"{}","pid":{},"tid":{},"ts":{:.6f},)"
                           R"("args":{{"bytes":{},"step":{}}}}})",
                           phase, at, title_of(step), host, rank,
                           (phase == 'b' ? span.ready : span.complete) * micro, bytes, id);
        }
    }
    for (std::size_t i = 0; i < matching.messages.size(); ++i) {
        const Matched& message = matching.messages[i];
        const GlobalStep send = matching.first[static_cast<std::size_t>(message.from)] + message.send;
        const GlobalStep recv = matching.first[static_cast<std::size_t>(message.to)] + message.recv;
        fmt::print(to,
                   ",\n"
                   R"({{"ph":"s","cat":"message","id":{},"name":"message","pid":{},"tid":{},"ts":{:.6f}}},)",
                   i, topology.node_of(message.from), message.from, spans[send].ready * micro);
        fmt::print(
            to,
            "\n"
            R"({{"ph":"f","bp":"e","cat":"message","id":{},"name":"message","pid":{},"tid":{},"ts":{:.6f}}})",
            i, topology.node_of(message.to), message.to, spans[recv].complete * micro);
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
