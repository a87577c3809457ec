// The two solvers that share links among transfers give the same times: SimGrid's, and ours where thousands
// of transfers are under way.
#include <random>

#include "replayed.h"

namespace thalweg::sim {
namespace {

// Every rank sends to `peers` others. No two messages are of one length and no two ranks begin together: what
// happens at the same time happens in an order that is nobody's promise.
std::vector<Schedule> crowd(int ranks, int peers) {
    std::mt19937 random(7);
    std::vector<std::vector<std::uint64_t>> bytes(static_cast<std::size_t>(ranks));
    for (auto& row : bytes)
        for (int i = 0; i < peers; ++i) row.push_back(200'000 + random() % 4'000'000);
    return group(ranks, [&](int rank, Builder& builder) {
        std::uint64_t at = 0;
        for (int i = 0; i < peers; ++i) {
            const int to = (rank + 1 + 3 * i) % ranks, from = (rank + ranks - 1 - 3 * i) % ranks;
            const std::uint64_t sent = bytes[static_cast<std::size_t>(rank)][static_cast<std::size_t>(i)];
            const std::uint64_t got = bytes[static_cast<std::size_t>(from)][static_cast<std::size_t>(i)];
            builder.send(to, out(0, sent));
            builder.recv(from, out(8 * mega + at, got));
            at += got;
        }
    });
}

Outcome begun_apart(const std::vector<Schedule>& schedules, const SimMachine& machine,
                    const ReplayOptions& options) {
    std::vector<Program> programs;
    for (std::size_t r = 0; r < schedules.size(); ++r) {
        const auto steps = static_cast<StepId>(schedules[r].steps().size());
        programs.push_back({{ActKind::compute, 0, 0, 1.37e-6 * static_cast<double>(r * r)},
                            {ActKind::start, 0, steps, 0},
                            {ActKind::compute, 0, 0, options.compute_seconds},
                            {ActKind::wait, 0, steps, 0}});
    }
    Topology topology;
    std::string why;
    EXPECT_EQ(Topology::from_text("node:16 core:3", topology, why), Status::ok) << why;
    return in_child(60, std::uint64_t{4} << 30,
                    [&] {
                        PointResult result;
                        result.outcome = replay(schedules, programs, topology, machine, options);
                        return result;
                    })
        .outcome;
}

// SimGrid's solver works to a millionth (Platform).
void expect_equal(SimMachine machine, ReplayOptions options, const char* what, double near = 2e-6) {
    const auto schedules = crowd(48, 9);
    machine.post_seconds = 0.3e-6;
    machine.complete_seconds = 0.1e-6;
    options.shares = Shares::simgrid;
    const Outcome theirs = begun_apart(schedules, machine, options);
    options.shares = Shares::ours;
    const Outcome ours = begun_apart(schedules, machine, options);
    EXPECT_EQ(theirs.why, "") << what;
    EXPECT_EQ(ours.why, "") << what;
    EXPECT_NEAR(ours.seconds / theirs.seconds, 1, near) << what;
    EXPECT_NEAR(ours.mean_seconds / theirs.mean_seconds, 1, near) << what;
    EXPECT_NEAR(ours.root_seconds / theirs.root_seconds, 1, near) << what;
    const Outcome again = begun_apart(schedules, machine, options);
    EXPECT_EQ(again.seconds, ours.seconds) << what;
    EXPECT_EQ(again.mean_seconds, ours.mean_seconds) << what;
}

TEST(Shares, OursAreSimGrids) {
    SimMachine machine = round_machine();
    expect_equal(machine, {}, "a star");
    machine.flow_rate = 0.4e9;
    expect_equal(machine, {}, "a star, bounded");
    machine.rails = 2;
    expect_equal(machine, {}, "a star of two rails, messages bounded");
    machine = round_machine();
    machine.message_gap = 1e-6;
    expect_equal(machine, {}, "a gap between messages");
    machine = round_machine();
    machine.flows_per_link = 3;
    expect_equal(machine, {}, "few transfers at a time");
    machine = round_machine();
    machine.fabric = Fabric::fat_tree;
    machine.sizes = {4, 2};
    expect_equal(machine, {}, "a fat tree");
    machine.fabric = Fabric::dragonfly;
    machine.sizes = {2, 1, 4, 2};
    machine.links = {1, 1, 1};
    machine.flow_rate = 0.6e9;
    expect_equal(machine, {}, "a dragonfly");
}

TEST(Shares, OursStopAndGoOnAsSimGrids) {
    SimMachine machine = round_machine();
    machine.network_moves_bytes = false;
    ReplayOptions options;
    options.compute_seconds = 2e-3;
    expect_equal(machine, options, "what computing callers hold up");
}

TEST(Shares, OursTakeTurnsWhereKernelsSend) {
    SimMachine machine = round_machine();
    machine.kernel_rate = 2e9;
    machine.socket_bytes = 1e6;
    machine.kernel_bytes = 5e6;      // longer than any message: no two segments of one length
    machine.inter_eager = 8 * mega;  // and no notices, which all have one
    expect_equal(machine, {}, "kernels send whole messages");
    machine.inter_eager = mega;
    // Of segments of one length several end in one instant, up to the solvers' rounding, and whose turn comes
    // first then is another one's with each solver.
    machine.kernel_bytes = 65536;
    expect_equal(machine, {}, "kernels send", 1e-2);
}

}  // namespace
}  // namespace thalweg::sim
