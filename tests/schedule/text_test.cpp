// The printers, against the text of a tiny case, and a reader of GOAL that finds every dependency again.
#include "schedule/text.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "schedule/samples.h"

using namespace thalweg;
using namespace thalweg::samples;

namespace {

std::vector<Schedule> tiny() {
    Builder root(0, 2), leaf(1, 2);
    root.send(1, out(0, 8));
    const Slice stage = leaf.scratch(8);
    leaf.recv(0, stage);
    leaf.copy(out(0, 8), stage);
    return {std::move(root).finish(), std::move(leaf).finish()};
}

TEST(text, goal_of_a_tiny_case) {
    std::ostringstream text;
    print_goal(text, tiny());
    EXPECT_EQ(text.str(), R"(num_ranks 2

rank 0 {
l1: send 8b to 1 tag 0
}

rank 1 {
l1: recv 8b from 0 tag 0
l2: calc 8
l2 requires l1
}
)");
}

TEST(text, graphviz_of_a_tiny_case) {
    std::ostringstream text;
    print_graphviz(text, tiny());
    EXPECT_EQ(text.str(), R"dot(digraph schedule {
  rankdir=LR;
  node [shape=box];
  subgraph cluster_0 {
    label="rank 0";
    r0s0 [label="send out[0,8) to 1"];
  }
  subgraph cluster_1 {
    label="rank 1";
    r1s0 [label="recv scratch[0,8) from 0"];
    r1s1 [label="copy scratch[0,8) to out[0,8)"];
    r1s0 -> r1s1;
  }
  r0s0 -> r1s0 [style=dashed];
}
)dot");
}

TEST(text, goal_has_every_step_and_dependency) {
    const auto schedules = group(scatter_ring, 7, 100);
    std::ostringstream text;
    print_goal(text, schedules);
    std::istringstream lines(text.str());
    std::size_t steps = 0, dependencies = 0, sent = 0, received = 0;
    for (std::string line; std::getline(lines, line);) {
        unsigned label = 0, on = 0, bytes = 0, peer = 0, tag = 0;
        if (std::sscanf(line.c_str(), "l%u requires l%u", &label, &on) == 2) {
            EXPECT_LT(on, label);
            ++dependencies;
        } else if (std::sscanf(line.c_str(), "l%u: send %ub to %u tag %u", &label, &bytes, &peer, &tag) ==
                   4) {
            sent += bytes, ++steps;
        } else if (std::sscanf(line.c_str(), "l%u: recv %ub from %u tag %u", &label, &bytes, &peer, &tag) ==
                   4) {
            received += bytes, ++steps;
        }
    }
    std::size_t expected_steps = 0, expected_dependencies = 0;
    for (const Schedule& schedule : schedules)
        for (StepId id = 0; id < schedule.steps().size(); ++id)
            ++expected_steps, expected_dependencies += schedule.after(id).size();
    EXPECT_EQ(steps, expected_steps);
    EXPECT_EQ(dependencies, expected_dependencies);
    EXPECT_EQ(sent, received);
    EXPECT_EQ(sent, check(schedules, 100).bytes);
}

TEST(text, graphviz_draws_every_message) {
    const auto schedules = group(staged_chain, 4, 100);
    std::ostringstream text;
    print_graphviz(text, schedules);
    std::size_t dashed = 0;
    for (std::size_t at = 0; (at = text.str().find("dashed", at)) != std::string::npos; ++at) ++dashed;
    EXPECT_EQ(dashed, check(schedules, 100).messages);
}

TEST(text, dot_accepts_graphviz) {
    std::ostringstream text;
    print_graphviz(text, group(staged_chain, 4, 100));
    if (std::system("command -v dot >/dev/null 2>&1") != 0) GTEST_SKIP() << "graphviz is not installed";
    std::FILE* dot = popen("dot -Tplain >/dev/null", "w");
    ASSERT_NE(dot, nullptr);
    std::fputs(text.str().c_str(), dot);
    EXPECT_EQ(pclose(dot), 0);
}

}  // namespace
