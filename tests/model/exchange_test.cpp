// Predicted exchanges: against hand-made figures, and what must hold for every pattern.
#include "model/exchange.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "model/break_even.h"

namespace thalweg {
namespace {

constexpr Picoseconds latency = 1'000'000;  // 1 µs

Machine machine() {
    Machine made;
    made.inter = {latency, 1'000'000'000};        // 1 GB/s: a byte takes 1000 ps
    made.intra = {latency / 10, 10'000'000'000};  // 10 GB/s
    return made;
}

Topology topology(const char* text) {
    Topology made = Topology::single_node(1);
    std::string why;
    EXPECT_EQ(Topology::from_text(text, made, why), Status::ok) << why;
    return made;
}

const ExchangePrediction& find(const std::vector<ExchangePrediction>& all, std::string_view name) {
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const auto& each) { return each.name == name; });
    EXPECT_NE(found, all.end()) << name;
    return *found;
}

TEST(ExchangeModel, HandMadeFigures) {
    // Two hosts of one rank: 1000 bytes there, 500 back, and an own block that crosses nothing.
    const std::vector<std::uint64_t> bytes{7000, 1000, 500, 0};
    const Topology two = topology("node:2");
    EXPECT_EQ(exchange_limit(bytes, two, machine()), latency + 1'000'000);
    const auto all = predict_exchange(bytes, two, machine());
    EXPECT_EQ(find(all, "native").call, 2 * latency + 1'000'000);
    EXPECT_EQ(find(all, "notify").call, latency + 1'000'000);
    EXPECT_EQ(find(all, "rma_fence").call, 3 * latency + 1'000'000);
    // One word, four meetings of one latency, then the fences and the last meeting.
    EXPECT_EQ(find(all, "window per call").call, 5 * latency + find(all, "rma_fence").call + latency);
    // (1 word + 2 meetings) / (1 latency gained)
    EXPECT_NEAR(find(all, "notify").calls_native, 3.0, 1e-9);
    EXPECT_EQ(find(all, "rma_fence").calls_native, never);
    EXPECT_NEAR(find(all, "rma_fence").calls_window, 4.0 / 6.0, 1e-9);
}

TEST(ExchangeModel, CostFollowsTheNeighboursNotTheRanks) {
    Picoseconds before = 0;
    for (const int ranks : {8, 16, 32}) {
        std::vector<std::uint64_t> ring(static_cast<std::size_t>(ranks * ranks));
        for (int rank = 0; rank < ranks; ++rank)
            ring[static_cast<std::size_t>(rank * ranks + (rank + 1) % ranks)] = 4096;
        const auto all =
            predict_exchange(ring, topology(("node:" + std::to_string(ranks)).c_str()), machine());
        const Picoseconds notify = find(all, "notify").call;
        if (before != 0) EXPECT_EQ(notify, before);
        before = notify;
        EXPECT_GT(find(all, "rma_fence").call, notify);  // everybody meets
    }
}

TEST(ExchangeModel, BundlesWinWhereMessagesAreSmall) {
    const auto dense = [](std::uint64_t size) {
        std::vector<std::uint64_t> bytes(64, size);
        return predict_exchange(bytes, topology("node:2 core:4"), machine());
    };
    EXPECT_LT(find(dense(64), "node_leader").call, find(dense(64), "spread").call);
    EXPECT_GT(find(dense(1 << 20), "node_leader").call, find(dense(1 << 20), "notify").call);
    const auto flat = predict_exchange(std::vector<std::uint64_t>(4, 64), topology("node:2"), machine());
    EXPECT_EQ(std::count_if(flat.begin(), flat.end(), [](const auto& e) { return e.name == "node_leader"; }),
              0);
}

// Two hosts of two ranks, 100 bytes for each pair. A host's four messages take turns on its link, or are one;
// then each rank hands on, or is handed, 200 bytes in two messages inside its host.
TEST(ExchangeModel, LeadersPayByHandMadeFigures) {
    const auto all =
        predict_exchange(std::vector<std::uint64_t>(16, 100), topology("node:2 core:2"), machine());
    const Picoseconds native = 5 * latency + 400'000, leaders = latency + 400'000 + 2 * latency / 10 + 20'000;
    EXPECT_EQ(find(all, "native").call, native);
    EXPECT_EQ(find(all, "node_leader").call, leaders);
    // Three words and two meetings of two latencies each.
    EXPECT_EQ(find(all, "node_leader").init, 7 * latency);
    EXPECT_NEAR(find(all, "node_leader").calls_native,
                7.0 * static_cast<double>(latency) / static_cast<double>(native - leaders), 1e-9);
    // One message has nothing to travel with.
    std::vector<std::uint64_t> single(16);
    single[0 * 4 + 3] = 100;
    const auto alone = predict_exchange(single, topology("node:2 core:2"), machine());
    EXPECT_GT(find(alone, "node_leader").call, find(alone, "notify").call);
}

TEST(ExchangeModel, NothingIsFasterThanTheLimit) {
    for (const char* text : {"node:1 core:4", "node:4", "node:2 core:2", "node:2 core:1,3", "ranks:0,1,0,1"})
        for (const std::uint64_t size : {1, 1000, 1'000'000}) {
            std::vector<std::uint64_t> bytes(16);
            for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = i * 7 % 5 * size;
            const Topology place = topology(text);
            const Picoseconds limit = exchange_limit(bytes, place, machine());
            EXPECT_GT(limit, 0u);
            for (const auto& each : predict_exchange(bytes, place, machine()))
                EXPECT_GE(each.call, limit) << text << ' ' << size << ' ' << each.name;
        }
}

TEST(ExchangeModel, NobodyNeedsAnything) {
    const std::vector<std::uint64_t> nothing(9);
    EXPECT_EQ(exchange_limit(nothing, topology("node:3"), machine()), 0u);
    EXPECT_EQ(find(predict_exchange(nothing, topology("node:3"), machine()), "notify").call, 0u);
    const auto alone = predict_exchange(std::vector<std::uint64_t>{5}, topology("node:1"), machine());
    EXPECT_EQ(find(alone, "rma_fence").call, 0u);
}

ExchangeSeen seen(double once_seconds, std::uint64_t message_bytes) {
    return {once_seconds, 1e-4, message_bytes, 3.0 * static_cast<double>(message_bytes), 1e7, 0};
}

TEST(ExchangeModel, LinkBytesAreThoseThatCross) {
    const std::vector<std::uint64_t> bytes{7000, 1000, 500, 0};
    EXPECT_EQ(exchange_link_bytes(bytes, topology("node:2")), 1000u);
    EXPECT_EQ(exchange_link_bytes(bytes, topology("node:1 core:2")), 0u);
}

TEST(PlanForecast, NeedsWhatWasSeen) {
    EXPECT_FALSE(forecast_plan("spread", {}));
    EXPECT_FALSE(forecast_plan("bruck", seen(1, 1024)));
    ExchangeSeen no_link = seen(1, 1024);
    no_link.bytes_per_second = 0;
    EXPECT_FALSE(forecast_plan("spread", no_link));
    EXPECT_EQ(forecast_plan("native", seen(1, 1024))->calls, never);
}

TEST(PlanForecast, PaysByWhatTheNativeCallTakesBeyondTheWire) {
    const double wire = 3 * 65536 / 1e7 * (1 + 66.0 / 3028);
    const auto slow = forecast_plan("pairwise:chunk_bytes=32K", seen(2 * wire, 65536));
    ASSERT_TRUE(slow);
    EXPECT_NEAR(slow->call_seconds, wire + 1.8e-4, 1e-9);
    EXPECT_NEAR(slow->calls, slow->init_seconds / (2 * wire - slow->call_seconds), 1e-9);
    EXPECT_EQ(forecast_plan("pairwise", seen(wire, 65536))->calls, never);
    EXPECT_EQ(forecast_plan("rma_get", seen(2 * wire, 65536))->calls, never);
}

// Its init tells leaders what their hosts exchange.
TEST(PlanForecast, LeadersCostMoreOnceAndPayLater) {
    const double wire = 3 * 16384 / 1e7 * (1 + 66.0 / 3028);
    const auto leaders = forecast_plan("node_leader", seen(2 * wire, 16384));
    const auto spread = forecast_plan("spread", seen(2 * wire, 16384));
    ASSERT_TRUE(leaders && spread);
    EXPECT_GT(leaders->init_seconds, spread->init_seconds);
    EXPECT_GT(leaders->calls, spread->calls);
    EXPECT_NEAR(leaders->calls, leaders->init_seconds / (2 * wire - leaders->call_seconds), 1e-9);
    EXPECT_GT(leaders->call_seconds, wire);
    EXPECT_EQ(forecast_plan("node_leader", seen(wire, 16384))->calls, never);
}

TEST(PlanForecast, WholeLargeMessagesWaitForOneAnother) {
    const auto whole = forecast_plan("pairwise", seen(1, 1 << 20));
    const auto pieces = forecast_plan("pairwise:chunk_bytes=32K", seen(1, 1 << 20));
    EXPECT_GT(whole->call_seconds, 1.05 * pieces->call_seconds);
    // What the link lets through at once takes no time.
    ExchangeSeen burst = seen(1, 1024);
    burst.burst_bytes = 1e6;
    EXPECT_NEAR(forecast_plan("pairwise", burst)->call_seconds, 1.8e-4, 1e-12);
}

// One acknowledgement of 66 bytes for two packets of 1514, whose payload is 1448 each.
TEST(PlanForecast, TheWireTakesTimeForWhatItDoesNotLetThrough) {
    EXPECT_DOUBLE_EQ(wire_seconds(1e6, 1e7, 0), 0.1 * (1 + 66.0 / 3028));
    EXPECT_NEAR(wire_seconds(1e6 + 1448, 1e7, 1514), wire_seconds(1e6, 1e7, 0), 1e-12);
    EXPECT_EQ(wire_seconds(1448, 1e7, 1514), 0);
}

}  // namespace
}  // namespace thalweg
