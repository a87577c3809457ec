// What all ranks' messages look like together.
#include <gtest/gtest.h>

#include "select/exchanges.h"

namespace thalweg {
namespace {

// Of `messages` messages of `bytes` each, less than a KiB.
TraitWords short_ones(std::uint64_t messages, std::uint64_t bytes) {
    return {messages * bytes, messages, 0, messages, messages, 0, 0};
}

TEST(traits, of_all_pairs) {
    const Traits traits = traits_of(short_ones(12, 100), 4);
    EXPECT_EQ(traits.mean_bytes, 100u);
    EXPECT_EQ(traits.messages, 12u);
    EXPECT_EQ(traits.mean_message_bytes, 100u);
    EXPECT_DOUBLE_EQ(traits.unevenness, 1);
    EXPECT_TRUE(traits.sizes_agree);
    EXPECT_TRUE(traits.in_step);
    EXPECT_EQ(traits_of({}, 4).mean_message_bytes, 0u);
    EXPECT_EQ(traits_of({}, 1).mean_bytes, 0u);
}

// On a ring of 64 ranks: by the mean of all pairs, a whole number, they were 31 bytes long.
TEST(traits, short_messages_between_few_neighbours_are_as_long_as_they_are) {
    const Traits traits = traits_of(short_ones(2 * 64, 8), 64);
    EXPECT_EQ(traits.mean_bytes, 1u);
    EXPECT_EQ(traits.mean_message_bytes, 8u);
}

// A mean of whole numbers, word by word, had no message, or half as many.
TEST(traits, a_message_that_not_every_call_has_is_one) {
    const Traits one = traits_of(short_ones(1, 8), 2, 4);
    EXPECT_EQ(one.mean_bytes, 1u);
    EXPECT_EQ(one.messages, 1u);
    EXPECT_EQ(one.mean_message_bytes, 8u);
    const Traits seven = traits_of(short_ones(7, 1000), 2, 4);
    EXPECT_EQ(seven.mean_bytes, 875u);
    EXPECT_EQ(seven.messages, 2u);
    EXPECT_EQ(seven.mean_message_bytes, 1000u);
}

TEST(traits, of_calls_that_are_alike_are_those_of_one) {
    const TraitWords words = {300000, 5, 0, 300, 30000, 2, 0};
    TraitWords sums = words;
    for (std::uint64_t& word : sums) word *= 16;
    const Traits one = traits_of(words, 3), mean = traits_of(sums, 3, 16);
    EXPECT_EQ(mean.mean_bytes, one.mean_bytes);
    EXPECT_EQ(mean.messages, one.messages);
    EXPECT_EQ(mean.mean_message_bytes, one.mean_message_bytes);
    EXPECT_DOUBLE_EQ(mean.unevenness, one.unevenness);
    EXPECT_FALSE(one.in_step || mean.in_step);
    EXPECT_TRUE(one.in_step_in_pairs && mean.in_step_in_pairs);
}

}  // namespace
}  // namespace thalweg
