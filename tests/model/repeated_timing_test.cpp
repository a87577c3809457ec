// When a short measurement is believed.
#include "model/repeated_timing.h"

#include <gtest/gtest.h>

#include <initializer_list>

namespace thalweg {
namespace {

// The first of `times` that are asked for, and how many those were.
struct Outcome {
    std::uint64_t believed_ns;
    int asked_for;
    bool operator==(const Outcome&) const = default;
};
Outcome after(std::initializer_list<std::uint64_t> times) {
    RepeatedTiming timing;
    int asked_for = 0;
    for (const std::uint64_t time : times) {
        if (!timing.wants_more()) break;
        timing.add(time);
        ++asked_for;
    }
    EXPECT_FALSE(timing.wants_more()) << "the test gives too few times";
    return {timing.believed_ns(), asked_for};
}

TEST(RepeatedTiming, TwoThatAgreeAreEnough) {
    EXPECT_EQ(after({800, 900, 1}), (Outcome{800, 2}));
    EXPECT_EQ(after({900, 800, 1}), (Outcome{800, 2}));
    EXPECT_EQ(after({0, 0, 50}), (Outcome{0, 2}));
}

TEST(RepeatedTiming, OneThatIsFarOffDoesNotCount) {
    for (const std::uint64_t off : {std::uint64_t{0}, std::uint64_t{3}, std::uint64_t{700000}}) {
        EXPECT_EQ(after({off, 1000, 1010}), (Outcome{off > 1010 ? 1010u : 1000u, 3})) << off;
        EXPECT_EQ(after({1000, off, 1010}), (Outcome{off > 1010 ? 1010u : 1000u, 3})) << off;
        // Not seen at all: the first two agreed.
        EXPECT_EQ(after({1000, 1010, off}), (Outcome{1000, 2})) << off;
    }
}

TEST(RepeatedTiming, TheFirstIsKnownAtOnceAndAskedAgain) {
    RepeatedTiming timing;
    EXPECT_EQ(timing.believed_ns(), 0u);
    timing.add(77);
    EXPECT_EQ(timing.believed_ns(), 77u);
    EXPECT_TRUE(timing.wants_more());
    timing.add(76);
    timing.add(5);  // not wanted, so it changes nothing
    EXPECT_EQ(timing.believed_ns(), 76u);
}

}  // namespace
}  // namespace thalweg
