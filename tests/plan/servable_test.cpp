// Whether an algorithm can serve calls alike is asked once.
#include "plan/servable.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace thalweg {
namespace {

Choice choice_of(const std::string& text) {
    Choice choice;
    std::string why;
    EXPECT_FALSE(failed(parse_choice(Collective::allreduce, text, choice, why))) << why;
    return choice;
}

struct Asked {
    Servable servable;
    int times = 0;

    bool of(const Choice& choice, std::uint64_t bytes, std::uint64_t element_bytes, bool answer) {
        return servable.by(choice, bytes, element_bytes, [&] {
            ++times;
            return answer;
        });
    }
};

TEST(servable, calls_alike_are_asked_about_once) {
    Asked asked;
    const Choice leaders = choice_of("node_leader(intra=linear,inter=ring)");
    for (int call = 0; call < 10; ++call) EXPECT_TRUE(asked.of(leaders, 65536, 8, true));
    EXPECT_EQ(asked.times, 1);
    // Whatever it is that differs.
    EXPECT_FALSE(asked.of(leaders, 65544, 8, false));
    EXPECT_FALSE(asked.of(leaders, 65536, 4, false));
    EXPECT_FALSE(asked.of(choice_of("node_leader(intra=linear,inter=rabenseifner)"), 65536, 8, false));
    EXPECT_FALSE(asked.of(choice_of("ring"), 65536, 8, false));
    EXPECT_EQ(asked.times, 5);
    EXPECT_TRUE(asked.of(leaders, 65536, 8, false));
    EXPECT_FALSE(asked.of(leaders, 65536, 4, true));
    EXPECT_EQ(asked.times, 5);
}

// Of sizes that vary all the time nothing grows.
TEST(servable, answers_are_few) {
    Asked asked;
    const Choice ring = choice_of("ring");
    for (std::uint64_t bytes = 0; bytes < 1000; ++bytes)
        EXPECT_EQ(asked.of(ring, bytes, 1, bytes % 2), bytes % 2);
    EXPECT_EQ(asked.times, 1000);
    EXPECT_TRUE(asked.of(ring, 999, 1, false));
    EXPECT_FALSE(asked.of(ring, 1, 1, false));
    EXPECT_EQ(asked.times, 1001);
}

}  // namespace
}  // namespace thalweg
