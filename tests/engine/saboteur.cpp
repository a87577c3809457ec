// The tests are tested: every way of damaging a message must be seen by the byte compare they rely on.
#include "transport/saboteur/saboteur.h"

#include <gtest/gtest.h>

#include "engine/random_schedules.h"

namespace thalweg {
namespace {

// The differences that one run under sabotage leaves in out, in bytes; -1 when the run did not end.
std::int64_t damage(const SaboteurOptions& sabotage, std::uint64_t seed, bool wrap) {
    constexpr int size = 4;
    const test::RandomGroup random = test::RandomGroup::make(size, 40, 300, seed);
    const auto schedules = random.build();
    test::GroupOptions options;
    if (wrap) options.wrap = [&](Transport& inner) { return make_saboteur(inner, sabotage); };
    test::Group group(size, options);
    test::Memory memory = random.fill(seed);
    test::Memory expected = memory;
    random.play(expected);
    std::vector<std::unique_ptr<Execution>> executions;
    std::vector<Execution*> started;
    for (int rank = 0; rank < size; ++rank) {
        executions.push_back(std::make_unique<Execution>(schedules[rank], group.channel(rank)));
        const Bindings bindings{
            memory.in[rank].data(), memory.out[rank].data(), {&test::RandomGroup::combine, nullptr, 1}};
        if (executions[rank]->start(bindings, 0) != Status::ok) return -1;
        started.push_back(executions[rank].get());
    }
    if (!group.run(started).empty()) return -1;
    std::int64_t wrong = 0;
    for (int rank = 0; rank < size; ++rank) {
        for (std::size_t i = 0; i < random.out_bytes; ++i)
            wrong += memory.out[rank][i] != expected.out[rank][i];
    }
    return wrong;
}

TEST(saboteur, every_mode_is_seen) {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        EXPECT_EQ(damage({}, seed, false), 0) << "without sabotage";
        for (Sabotage mode : every_sabotage) {
            EXPECT_GT(damage({mode, 1}, seed, true), 0) << name_of(mode) << ", seed " << seed;
        }
        // Harmless while its turn does not come: the layer itself moves messages faithfully.
        for (Sabotage mode : every_sabotage)
            EXPECT_EQ(damage({mode, 1u << 30}, seed, true), 0) << name_of(mode);
    }
}

TEST(saboteur, its_variable_is_read_strictly) {
    EXPECT_EQ(parse_saboteur("swap")->mode, Sabotage::swap);
    EXPECT_EQ(parse_saboteur("stale:17")->period, 17u);
    for (const char* text : {"", "flop", "flip:", "flip:0", "flip:3x", "flip 3"}) {
        EXPECT_FALSE(parse_saboteur(text)) << text;
    }
}

}  // namespace
}  // namespace thalweg
