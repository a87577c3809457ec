// Who is alive, and what it takes to leave.
#include "plan/living.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <deque>
#include <vector>

#include "../cpu_time.h"

namespace thalweg {
namespace {

struct Thing {
    explicit Thing(int number) : number(number) {}
    int number;
    Living<Thing>::Place place{*this};
};

std::vector<int> numbers_of(Living<Thing>& living) {
    std::vector<int> numbers;
    living.for_each([&](Thing& thing) { numbers.push_back(thing.number); });
    return numbers;
}

TEST(living, whoever_leaves_the_others_stay) {
    Living<Thing> living;
    std::deque<Thing> things;
    for (int number = 0; number < 5; ++number) living.enter(things.emplace_back(number).place);
    EXPECT_EQ(numbers_of(living), (std::vector<int>{4, 3, 2, 1, 0}));
    for (const int number : {2, 4, 0}) living.leave(things[static_cast<std::size_t>(number)].place);
    EXPECT_EQ(numbers_of(living), (std::vector<int>{3, 1}));
    living.enter(things[2].place);
    EXPECT_EQ(numbers_of(living), (std::vector<int>{2, 3, 1}));
    for (const int number : {1, 2, 3}) living.leave(things[static_cast<std::size_t>(number)].place);
    EXPECT_EQ(numbers_of(living), std::vector<int>());
}

TEST(living, leaving_does_not_grow_with_those_that_live) {
    Living<Thing> living;
    std::deque<Thing> things;
    for (int number = 0; number < 60'000; ++number) living.enter(things.emplace_back(number).place);
    const double begin = test::thread_cpu_seconds();
    for (Thing& thing : things) living.leave(thing.place);
    EXPECT_LT(test::thread_cpu_seconds() - begin, 1.0);
    EXPECT_TRUE(numbers_of(living).empty());
}

}  // namespace
}  // namespace thalweg
