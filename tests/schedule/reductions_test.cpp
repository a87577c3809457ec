// Reductions in schedules: operands keep their sides, the validator knows what was combined with what, and so
// does the oracle.
#include <gtest/gtest.h>

#include <sstream>

#include "schedule/passes.h"
#include "schedule/samples.h"
#include "schedule/text.h"

using namespace thalweg;
using namespace thalweg::samples;

namespace {

constexpr std::uint64_t element = 8;

Slice in(std::uint64_t from, std::uint64_t bytes) { return {Buffer::in, from, bytes}; }

Problem sum_of(int size, std::uint64_t bytes) {
    Problem problem{0, size, 0, bytes};
    problem.element_bytes = element;
    problem.commutative = false;
    return problem;
}

// Everybody sends its vector to everybody, who combine them in the order of ranks; through two scratch
// vectors in turn.
Schedule everybody(int rank, int size, std::uint64_t bytes) {
    Builder builder(rank, size);
    const Slice stage[] = {builder.scratch(bytes), builder.scratch(bytes)};
    for (int i = 1; i < size; ++i) builder.send((rank + i) % size, in(0, bytes));
    const auto take = [&](int from, const Slice& to) {
        if (from == rank)
            builder.copy(to, in(0, bytes));
        else
            builder.recv(from, to);
    };
    take(0, out(0, bytes));
    for (int from = 1; from < size; ++from) {
        take(from, stage[from % 2]);
        builder.reduce(out(0, bytes), stage[from % 2], Side::right);
    }
    return std::move(builder).finish();
}

Verdict prove(std::span<const Schedule> schedules, const Problem& problem) {
    return validate(schedules, oracle::contracts_for(Collective::allreduce, problem));
}

bool oracle_objects(std::span<const Schedule> schedules, const Problem& problem) {
    for (std::uint64_t seed = 0; seed < 12; ++seed)
        if (!oracle::run(Collective::allreduce, problem, schedules, seed).empty()) return true;
    return false;
}

// What the validator says when `change` was applied to every rank's schedule.
template <class Change>
std::string after(int size, Change change) {
    const Problem problem = sum_of(size, 4 * element);
    auto schedules = group(everybody, size, problem.bytes);
    for (int rank = 0; rank < size; ++rank)
        schedules = changed(schedules, rank, [&](Parts& parts) { change(rank, parts); });
    const std::string why = prove(schedules, problem).why;
    EXPECT_EQ(why.empty(), !oracle_objects(schedules, problem)) << why;
    return why;
}

template <class Do>
void each_reduction(Parts& parts, Do act) {
    for (Step& step : parts.steps)
        if (step.kind == StepKind::reduce) act(step);
}

TEST(reductions, in_the_order_of_ranks_are_accepted_whole_and_in_pieces) {
    for (int size : {1, 2, 3, 7})
        for (std::uint64_t chunk : {0, 8, 24}) {
            const Problem problem = sum_of(size, 5 * element);
            auto schedules = group(everybody, size, problem.bytes);
            for (Schedule& schedule : schedules) schedule = chunked(schedule, chunk, problem.bytes);
            EXPECT_EQ(prove(schedules, problem).why, "") << size << " " << chunk;
            EXPECT_FALSE(oracle_objects(schedules, problem)) << size << " " << chunk;
        }
}

TEST(reductions, the_side_of_an_operand_counts) {
    const std::string why = after(3, [](int, Parts& parts) {
        each_reduction(parts, [](Step& step) { step.source_side = Side::left; });
    });
    EXPECT_NE(why.find("in another order than that of the ranks"), std::string::npos) << why;
}

TEST(reductions, every_rank_must_use_the_same_brackets) {
    // Where the operation commutes, order is free, but not different from rank to rank.
    Problem problem = sum_of(3, 4);
    problem.element_bytes = 4;
    problem.commutative = true;
    auto schedules = group(everybody, 3, problem.bytes);
    EXPECT_EQ(prove(schedules, problem).why, "");
    schedules = changed(schedules, 1, [](Parts& parts) {
        each_reduction(parts, [](Step& step) { step.source_side = Side::left; });
    });
    const std::string why = prove(schedules, problem).why;
    EXPECT_EQ(why, "rank 1: byte 0 of out is bracketed in another way than rank 0's");
}

TEST(reductions, an_operand_is_missing_or_counted_twice) {
    // The second reduction takes the first one's operand again.
    std::string why = after(3, [](int, Parts& parts) {
        Step* first = nullptr;
        each_reduction(parts, [&](Step& step) {
            if (first != nullptr) step.source = first->source;
            first = &step;
        });
    });
    EXPECT_NE(why, "");
    why = after(3, [](int, Parts& parts) {
        int seen = 0;
        each_reduction(parts, [&](Step& step) {
            if (++seen == 2)
                step.kind = StepKind::copy, step.target = {Buffer::scratch, 0, step.source.bytes};
        });
    });
    EXPECT_NE(why, "");
    Builder builder(0, 2);
    builder.copy(out(0, 8), in(0, 8));
    builder.reduce(out(0, 8), in(0, 8));
    Builder other(1, 2);
    other.copy(out(0, 8), in(0, 8));
    std::vector<Schedule> schedules;
    schedules.push_back(std::move(builder).finish());
    schedules.push_back(std::move(other).finish());
    EXPECT_EQ(prove(schedules, sum_of(2, 8)).why,
              "rank 0: byte 0 of out combines an operand twice, or bytes that do not belong together");
    std::swap(schedules[0], schedules[1]);
    schedules[0] = changed(schedules, 0, [](Parts& parts) { parts.rank = 0; })[0];
    schedules[1] = changed(schedules, 1, [](Parts& parts) { parts.rank = 1; })[1];
    EXPECT_EQ(prove(schedules, sum_of(2, 8)).why,
              "rank 0: byte 0 of out combines the operands of 1 of 2 ranks");
}

TEST(reductions, elements_are_not_cut) {
    const Problem problem = sum_of(2, 4 * element);
    auto schedules = group(everybody, 2, problem.bytes);
    for (Schedule& schedule : schedules) schedule = chunked(schedule, 12, problem.bytes);
    const std::string why = prove(schedules, problem).why;
    EXPECT_NE(why.find("within an element"), std::string::npos) << why;
    EXPECT_TRUE(oracle_objects(schedules, problem));
}

TEST(reductions, elements_of_different_places_do_not_mix) {
    const std::string why = after(2, [](int, Parts& parts) {
        each_reduction(parts, [](Step& step) {
            step.source.offset += element, step.source.bytes -= element, step.target.bytes -= element;
        });
    });
    EXPECT_NE(why, "");
}

TEST(reductions, text_shows_the_sides) {
    Builder builder(0, 1);
    builder.reduce(out(0, 8), in(8, 8));
    builder.reduce(out(0, 8), in(0, 8), Side::right);
    const std::vector<Schedule> schedules{std::move(builder).finish()};
    std::ostringstream graph, goal;
    print_graphviz(graph, schedules);
    print_goal(goal, schedules);
    EXPECT_NE(graph.str().find("\"out[0,8) = in[8,16) op out[0,8)\""), std::string::npos) << graph.str();
    EXPECT_NE(graph.str().find("\"out[0,8) = out[0,8) op in[0,8)\""), std::string::npos) << graph.str();
    EXPECT_NE(goal.str().find("l2: calc 8"), std::string::npos);
    EXPECT_NE(goal.str().find("l2 requires l1"), std::string::npos);
}

}  // namespace
