// What the replay refuses, and in which words; and the trace that it writes.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <new>
#include <nlohmann/json.hpp>
#include <vector>

#include "replayed.h"

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

TEST(Trace, HoldsEveryStepAndEveryMessage) {
    const std::string path = testing::TempDir() + "thalweg-sim-trace.json";
    ReplayOptions options;
    options.trace_path = path;
    ASSERT_EQ(replayed(stream(3, 1000), "node:2", round_machine(), options).why, "");
    std::ifstream file(path);
    const nlohmann::json trace = nlohmann::json::parse(file);
    int begun = 0, ended = 0, arrows = 0;
    double last = 0;
    for (const auto& event : trace["traceEvents"]) {
        const std::string phase = event["ph"];
        begun += phase == "b";
        ended += phase == "e";
        arrows += phase == "s";
        if (phase == "e") last = std::max(last, event["ts"].get<double>());
    }
    EXPECT_EQ(begun, 6);
    EXPECT_EQ(ended, 6);
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
