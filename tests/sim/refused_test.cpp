// What the replay refuses, and in which words; and the trace that it writes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <new>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "replayed.h"
#include "sim/matching.h"
#include "sim/trace.h"

namespace thalweg::sim {
namespace {

// Rank 0's schedule with one step changed; dependencies stay.
Schedule changed(const Schedule& from, StepId id, const std::function<void(Step&)>& change,
                 bool ordered = true) {
    std::vector<Step> steps(from.steps().begin(), from.steps().end());
    change(steps[id]);
    std::vector<StepId> after;
    std::vector<std::uint32_t> begin{0};
    for (StepId step = 0; step < steps.size(); ++step) {
        if (ordered || step != id)
            after.insert(after.end(), from.after(step).begin(), from.after(step).end());
        begin.push_back(static_cast<std::uint32_t>(after.size()));
    }
    return Schedule(from.rank(), from.size(), std::move(steps), std::move(after), std::move(begin),
                    from.scratch_bytes());
}

TEST(Refused, AMessageThatMeetsNothingOrAnotherSize) {
    auto schedules = stream(2, 100);
    auto broken = schedules;
    broken[0] = changed(schedules[0], 1, [](Step& step) { step.source.bytes = 99; });
    EXPECT_EQ(
        replayed(broken, "node:2").why,
        "rank 0 step 1 (send to 1, message 1) sends 99 bytes, but rank 1 step 1 (recv from 0, message 1) "
        "receives 100");
    broken = schedules;
    broken[1] = changed(schedules[1], 0, [](Step& step) { step.message = 7; });
    EXPECT_EQ(replayed(broken, "node:2").why, "rank 0 step 0 (send to 1, message 0) meets no receive");
    broken = schedules;
    broken[0] = changed(schedules[0], 1, [](Step& step) { step.kind = StepKind::copy; });
    EXPECT_EQ(replayed(broken, "node:2").why, "rank 1 step 1 (recv from 0, message 1) meets no send");
}

TEST(Refused, ARace) {
    const auto schedules = group(2, [](int rank, Builder& builder) {
        if (rank == 0) {
            builder.send(1, out(0, 100));
        } else {
            builder.recv(0, out(0, 100));
            builder.copy(out(200, 50), out(50, 50));
        }
    });
    auto broken = schedules;
    broken[1] = changed(
        schedules[1], 1, [](Step&) {}, false);
    EXPECT_EQ(replayed(schedules, "node:2").why, "");
    EXPECT_EQ(replayed(broken, "node:2").why,
              "rank 1 step 1 (copy) touches byte 50 in no order with rank 1 step 0 (recv from 0, message 0)");
}

TEST(Refused, RanksThatWaitForEachOther) {
    // Both receive before they send.
    const auto schedules = group(2, [](int rank, Builder& builder) {
        const StepId recv = builder.recv(1 - rank, out(0, 100));
        builder.send(1 - rank, out(100, 100), std::vector<StepId>{recv});
    });
    EXPECT_EQ(
        replayed(schedules, "node:2").why,
        "rank 0 step 0 (recv from 1, message 0) never completes: its peer waits for something that this rank "
        "sends later");
}

// What runs out of memory while it is replayed is too dear, as what does while it is built.
TEST(Refused, MemoryThatIsMissingOnTheWay) {
    const std::vector<Schedule> schedules = stream(1, 100);
    const SimMachine machine = round_machine();
    Topology topology;
    std::string why;
    ASSERT_EQ(Topology::from_text("node:2", topology, why), Status::ok) << why;
    ReplayOptions options;
    options.moved = [](int, int, std::uint64_t) -> std::uint64_t { throw std::bad_alloc(); };
    const PointResult result = in_child(60, std::uint64_t{4} << 30, [&] {
        PointResult made;
        made.outcome = replay(schedules, topology, machine, options);
        return made;
    });
    EXPECT_TRUE(result.given_up);
    EXPECT_EQ(result.outcome.why, "takes more than 4096 MiB");
}

std::int64_t nanoseconds(const nlohmann::json& microseconds) {
    return std::llround(microseconds.get<double>() * 1000);
}

// What viewers ask of a trace: each of the ranks is a process, slices of a thread follow one another, and
// both ends of an arrow are inside the slices of its message.
void expect_drawn(const std::string& path, const std::vector<std::string>& names, std::size_t messages) {
    std::ifstream file(path);
    const nlohmann::json trace = nlohmann::json::parse(file);
    std::map<int, std::string> processes;
    std::map<std::pair<int, int>, std::map<std::int64_t, std::pair<std::int64_t, std::string>>> threads;
    std::map<int, std::map<std::string, nlohmann::json>> arrows;
    for (const auto& event : trace["traceEvents"]) {
        const std::string phase = event["ph"], name = event["name"];
        const int process = event["pid"];
        if (name == "process_name") {
            EXPECT_TRUE(processes.emplace(process, event["args"]["name"].get<std::string>()).second);
        } else if (phase == "X") {
            const std::int64_t begin = nanoseconds(event["ts"]), end = begin + nanoseconds(event["dur"]);
            auto& slices = threads[{process, event["tid"].get<int>()}];
            EXPECT_TRUE(slices.emplace(begin, std::pair(end, name)).second);
        } else if (phase == "s" || phase == "f") {
            EXPECT_TRUE(arrows[event["id"].get<int>()].emplace(phase, event).second);
        }
    }
    EXPECT_EQ(processes.size(), names.size());
    for (std::size_t rank = 0; rank < names.size(); ++rank)
        EXPECT_EQ(processes[static_cast<int>(rank)], names[rank]);
    for (const auto& [thread, slices] : threads) {
        std::int64_t before = 0;
        for (const auto& [begin, slice] : slices) {
            EXPECT_GE(begin, before) << slice.second << " of rank " << thread.first;
            before = slice.first;
        }
    }
    const auto around = [&](const nlohmann::json& event) -> std::string {
        const auto& slices = threads[{event["pid"].get<int>(), event["tid"].get<int>()}];
        const auto behind = slices.lower_bound(nanoseconds(event["ts"]));
        if (behind == slices.begin() || std::prev(behind)->second.first <= nanoseconds(event["ts"]))
            return "nothing";
        return std::prev(behind)->second.second;
    };
    EXPECT_EQ(arrows.size(), messages);
    for (auto& [id, ends] : arrows) {
        ASSERT_EQ(ends.size(), 2U) << id;
        const nlohmann::json &from = ends["s"], &to = ends["f"];
        EXPECT_EQ(around(from), "send to " + std::to_string(to["pid"].get<int>())) << id;
        EXPECT_EQ(around(to), "recv from " + std::to_string(from["pid"].get<int>())) << id;
        EXPECT_LE(nanoseconds(from["ts"]), nanoseconds(to["ts"])) << id;
    }
}

TEST(Trace, HasAProcessPerRankAndSlicesThatArrowsFind) {
    const std::string path = testing::TempDir() + "thalweg-sim-trace-processes.json";
    ReplayOptions options;
    options.trace_path = path;
    SimMachine machine = round_machine();
    machine.post_seconds = 1e-6;
    // Everybody to everybody at once, two messages each.
    const auto schedules = group(4, [](int rank, Builder& builder) {
        for (int i = 0; i < 8; ++i)
            if (const int peer = i % 4; peer != rank)
                builder.recv(peer, out(1000 + 1000 * static_cast<std::uint64_t>(i), 1000));
        for (int i = 0; i < 8; ++i)
            if (const int peer = i % 4; peer != rank) builder.send(peer, out(0, 1000));
        builder.copy(builder.scratch(1000), out(0, 1000));
    });
    ASSERT_EQ(replayed(schedules, "node:2 core:2", machine, options).why, "");
    expect_drawn(path, {"rank 0 (host 0)", "rank 1 (host 0)", "rank 2 (host 1)", "rank 3 (host 1)"}, 24);
}

TEST(Trace, ArrowsFindSlicesThatTakeNoTime) {
    const std::string path = testing::TempDir() + "thalweg-sim-trace-no-time.json";
    const std::vector<Schedule> schedules = stream(3, 8);
    Matching matching;
    Topology topology;
    std::string why;
    ASSERT_TRUE(match(schedules, matching, why)) << why;
    ASSERT_EQ(Topology::from_text("node:2", topology, why), Status::ok) << why;
    // The receives were ready first.
    std::vector<Span> spans(6, Span{1e-6, 1e-6});
    for (std::size_t recv = 3; recv < 6; ++recv) spans[recv].ready = 0;
    ASSERT_EQ(write_trace(path, schedules, topology, matching, spans, why), Status::ok) << why;
    expect_drawn(path, {"rank 0 (host 0)", "rank 1 (host 1)"}, 3);
}

TEST(Trace, HoldsEveryStepAndEveryMessage) {
    const std::string path = testing::TempDir() + "thalweg-sim-trace.json";
    ReplayOptions options;
    options.trace_path = path;
    ASSERT_EQ(replayed(stream(3, 1000), "node:2", round_machine(), options).why, "");
    std::ifstream file(path);
    const nlohmann::json trace = nlohmann::json::parse(file);
    int steps = 0, arrows = 0;
    double last = 0;
    for (const auto& event : trace["traceEvents"]) {
        const std::string phase = event["ph"];
        steps += phase == "X";
        arrows += phase == "s";
        if (phase == "X") last = std::max(last, event["ts"].get<double>() + event["dur"].get<double>());
    }
    EXPECT_EQ(steps, 6);
    EXPECT_EQ(arrows, 3);
    EXPECT_NEAR(last, 13.001, 0.01);  // microseconds: three of 1 us each, and the way
    options.trace_path = "/nowhere/trace.json";
    EXPECT_EQ(replayed(stream(1, 8), "node:2", round_machine(), options).why,
              "cannot write /nowhere/trace.json: No such file or directory");
    options.trace_path = "/dev/full";
    for (const int messages : {1, 100})  // found out at the end, and on the way
        EXPECT_EQ(replayed(stream(messages, 8), "node:2", round_machine(), options).why,
                  "cannot write /dev/full: No space left on device");
}

}  // namespace
}  // namespace thalweg::sim
