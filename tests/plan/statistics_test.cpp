// What is counted of communicators, behind their end too.
#include "plan/statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "../cpu_time.h"

namespace thalweg {
namespace {

using Record = std::shared_ptr<CommunicatorRecord>;

// A communicator of two ranks with one native broadcast, as the one that uses it has it.
Record used(Registry& registry) {
    auto record = std::make_shared<CommunicatorRecord>();
    record->size = 2;
    registry.add(record);
    ++record->declined(Reason::not_worth_yet, 0).calls;
    return record;
}

// Enough communicators, each freed before the next one, that all others share a row from then on.
void free_many(Registry& registry, int count = 40) {
    for (int i = 0; i < count; ++i) registry.retire(used(registry));
}

std::uint64_t calls_of(const Registry& registry) {
    std::uint64_t calls = 0;
    for (const Record& record : registry.records())
        for (const Tally& tally : record->tallies) calls += tally.calls;
    return calls;
}

TEST(statistics, communicators_that_are_gone_share_a_row) {
    Registry registry;
    free_many(registry);
    const std::vector<Record> records = registry.records();
    EXPECT_EQ(records.size(), 17u);
    EXPECT_TRUE(std::any_of(records.begin(), records.end(),
                            [](const Record& record) { return record->communicators == 24; }));
    EXPECT_EQ(calls_of(registry), 40u);
}

// Whichever goes first: of ten thousand that live none is looked for.
TEST(statistics, what_a_communicator_takes_does_not_grow_with_those_that_live) {
    constexpr int many = 60'000;
    Registry registry;
    std::vector<Record> live;
    for (int i = 0; i < many; ++i) {
        live.push_back(std::make_shared<CommunicatorRecord>());
        registry.add(live.back());
    }
    const double begin = test::thread_cpu_seconds();
    for (; !live.empty(); live.pop_back()) registry.retire(live.back());
    EXPECT_LT(test::thread_cpu_seconds() - begin, 1.0);
    EXPECT_TRUE(registry.records().empty());
}

// The first of them need not even have been set up.
TEST(statistics, a_shared_row_says_what_any_of_its_communicators_was_like) {
    Registry registry;
    free_many(registry);
    const auto free_one = [&registry](int nodes, const char* carrier) {
        const Record record = used(registry);
        record->nodes = nodes;
        record->sleeps = true;
        record->carrier = carrier;
        registry.retire(record);
    };
    free_one(2, "ucx");
    free_one(1, "ucx");
    const std::vector<Record> records = registry.records();
    const auto shared = std::find_if(records.begin(), records.end(),
                                     [](const Record& record) { return record->communicators > 1; });
    ASSERT_NE(shared, records.end());
    EXPECT_EQ((*shared)->nodes, 2);
    EXPECT_TRUE((*shared)->sleeps);
    EXPECT_STREQ((*shared)->carrier, "ucx");
    free_one(1, "shm");
    EXPECT_STREQ((*shared)->carrier, "several transports");
}

// What is told of neighbours says of how many communicators that is.
TEST(statistics, communicators_with_neighbours_are_counted_apart) {
    Registry registry;
    free_many(registry);
    for (int i = 0; i < 10; ++i) {
        const Record record = used(registry);
        record->topology = i < 9 ? "grid" : "graph";
        registry.retire(record);
    }
    const std::vector<Record> records = registry.records();
    ASSERT_EQ(records.size(), 18u);
    EXPECT_EQ(records[16]->communicators, 24u);
    EXPECT_STREQ(records[16]->topology, "");
    EXPECT_EQ(records[17]->communicators, 10u);
    EXPECT_STREQ(records[17]->topology, "several topologies");
}

// A program may free a communicator, and go on to start the plans that it made there.
TEST(statistics, what_outlives_its_communicator_counts_to_its_end) {
    Registry registry;
    free_many(registry);
    std::vector<Record> plans;
    std::vector<Tally*> starts;
    for (int i = 0; i < 3; ++i) {
        Record record = used(registry);
        starts.push_back(&record->accelerated("ring", 10, CallKind::allgather_init));
        plans.push_back(record);
        registry.retire(record);
    }
    for (Tally* tally : starts) tally->calls += 100;
    EXPECT_EQ(calls_of(registry), 43u + 300u);
    // Once they are over they are counted with the others.
    plans.clear();
    free_many(registry, 1);
    EXPECT_EQ(calls_of(registry), 44u + 300u);
    EXPECT_EQ(registry.records().size(), 17u);
}

}  // namespace
}  // namespace thalweg
