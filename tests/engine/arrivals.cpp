// When to look: the prediction alone, and against streams of packets.
#include "engine/arrivals.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace thalweg {
namespace {

constexpr std::uint64_t us = 1'000, ms = 1'000'000;

TEST(arrivals, where_nothing_is_known_a_sixteenth_of_the_wait) {
    Arrivals arrivals;
    arrivals.begin(5 * ms);
    EXPECT_EQ(arrivals.rate(), 0);
    EXPECT_EQ(arrivals.span_ns(5 * ms, 1000), 0u);
    EXPECT_EQ(arrivals.span_ns(5 * ms + 160 * us, 1000), 10 * us);
    EXPECT_EQ(arrivals.span_ns(9 * ms, 1000), 250 * us);
    EXPECT_EQ(arrivals.span_ns(500 * ms, 1000), longest_merge_ns);
    EXPECT_EQ(merged(49 * us), 0u);
    EXPECT_EQ(merged(50 * us), 50 * us);
}

TEST(arrivals, half_of_what_is_left_and_attention_near_the_end) {
    Arrivals arrivals;
    arrivals.begin(0);
    arrivals.arrived(4 * ms, 64'000);  // 16 bytes per us
    EXPECT_DOUBLE_EQ(arrivals.rate(), 0.016);
    const std::uint64_t last = 4 * ms;
    // The next 64,000 bytes are expected at 8 ms.
    EXPECT_EQ(arrivals.span_ns(last, 64'000), 1 * ms) << "half of 4 ms, bounded";
    EXPECT_EQ(arrivals.span_ns(last + 3 * ms, 64'000), 500 * us);
    EXPECT_EQ(merged(arrivals.span_ns(last + 3950 * us, 64'000)), 0u) << "near";
    EXPECT_EQ(arrivals.span_ns(last + 4500 * us, 64'000), 0u) << "a little late";
    EXPECT_EQ(arrivals.span_ns(last + 8 * ms, 64'000), 500 * us) << "overdue";
    // A message of no bytes is never far.
    EXPECT_EQ(arrivals.span_ns(last, 0), 0u);
}

// A fast network fills the kernel's buffers sooner than a slow one: no sleep longer than they last.
TEST(arrivals, never_longer_than_buffers_last) {
    Arrivals arrivals;
    arrivals.begin(0);
    arrivals.arrived(1 * ms, 1'000'000);  // 1 GB/s
    EXPECT_EQ(arrivals.span_ns(1 * ms, 100'000'000), 32'768u);
    EXPECT_EQ(merged(arrivals.span_ns(1 * ms, 100'000'000)), 0u);
}

TEST(arrivals, a_late_peer_does_not_spoil_the_rate_for_long) {
    Arrivals arrivals;
    arrivals.begin(0);
    arrivals.arrived(100 * ms, 16'000);  // 0.16 bytes per us: the peer came late
    for (int i = 1; i <= 8; ++i) arrivals.arrived(100 * ms + i * ms, 16'000);
    EXPECT_NEAR(arrivals.rate(), 0.016, 0.0002);
}

// A thread that spins sees what it sent gone a moment after what it received is there.
TEST(arrivals, what_was_sent_says_nothing_of_what_comes) {
    constexpr std::uint64_t bytes = 1 << 20;
    constexpr Awaited receive{true, true, true, bytes}, send{true, false, true, bytes},
        heard{true, true, false, bytes};
    BothWays traffic;
    for (std::uint64_t begin_ns : {0 * ms, 100 * ms, 200 * ms}) {
        traffic.begin(begin_ns);
        if (begin_ns != 0) {
            EXPECT_EQ(traffic.span_ns(begin_ns + 1, receive), longest_merge_ns);
            EXPECT_EQ(traffic.span_ns(begin_ns + 1, send), longest_merge_ns);
        }
        traffic.crossed(begin_ns + 88 * ms, {true, bytes}, {});
        traffic.crossed(begin_ns + 88 * ms + 10 * us, {}, {true, bytes});
    }
    EXPECT_EQ(traffic.span_ns(300 * ms, heard), 0u);
    // What leaves at once, into the kernel's buffers, makes no message that comes overdue.
    traffic.begin(300 * ms);
    traffic.crossed(300 * ms + 5 * us, {}, {true, bytes});
    EXPECT_EQ(traffic.span_ns(301 * ms, receive), longest_merge_ns);
}

// A receiver of messages that come as packets, and does what the agent does between them. Returns wake-ups
// and how late each message was seen.
struct Outcome {
    int wakeups = 0, packets = 0;
    double mean_late_ns = 0, worst_late_ns = 0;
};

Outcome receive(int messages, std::uint64_t message_bytes, double ns_per_byte, bool merges, double jitter) {
    constexpr std::uint64_t packet_bytes = 1448;
    const std::uint64_t packets = (message_bytes + packet_bytes - 1) / packet_bytes;
    std::mt19937 random(7);
    std::uniform_real_distribution<double> factor(1 - jitter, 1 + jitter);
    std::vector<std::uint64_t> arrival_ns;
    double sent_ns = 0;
    for (std::uint64_t i = 0; i < packets * static_cast<std::uint64_t>(messages); ++i) {
        sent_ns += static_cast<double>(packet_bytes) * ns_per_byte * factor(random);
        arrival_ns.push_back(static_cast<std::uint64_t>(sent_ns));
    }
    Arrivals arrivals;
    arrivals.begin(0);
    Outcome outcome;
    outcome.packets = static_cast<int>(arrival_ns.size());
    std::uint64_t time_ns = 0;
    std::uint32_t useless = 0;
    for (std::size_t read = 0; read < arrival_ns.size();) {
        const std::uint64_t span_ns = merged(arrivals.span_ns(time_ns, message_bytes));
        const bool sleeps = merges && useless >= useless_before_merge && span_ns != 0;
        time_ns = sleeps ? time_ns + span_ns : std::max(time_ns, arrival_ns[read]);
        ++outcome.wakeups;
        std::uint64_t complete = 0;
        for (; read < arrival_ns.size() && arrival_ns[read] <= time_ns; ++read) {
            if ((read + 1) % packets != 0) continue;
            const auto late_ns = static_cast<double>(time_ns - arrival_ns[read]);
            outcome.mean_late_ns += late_ns / messages;
            outcome.worst_late_ns = std::max(outcome.worst_late_ns, late_ns);
            complete += message_bytes;
        }
        if (complete != 0) {
            arrivals.arrived(time_ns, complete);
            useless = 0;
        } else if (!sleeps) {
            ++useless;
        }
    }
    return outcome;
}

// 100 Mbit/s is 84 ns a byte. Messages of 64 KiB (5.5 ms), of 1 MiB, and a single one of 4 MiB, of which
// nothing is known.
TEST(arrivals, merging_saves_most_wake_ups_and_hardly_any_time) {
    struct Case {
        int messages;
        std::uint64_t bytes;
        double most_wakeups, most_late;  // of the listener's wake-ups; of a message's gap, in the mean
    };
    for (const Case& one :
         {Case{64, 65536, 0.6, 0.02}, Case{8, 1 << 20, 0.25, 0.005}, Case{1, 4 << 20, 0.2, 0.01}}) {
        for (double jitter : {0.0, 0.5}) {
            const double gap_ns = 84.0 * static_cast<double>(one.bytes);
            const Outcome listens = receive(one.messages, one.bytes, 84, false, jitter);
            const Outcome merges = receive(one.messages, one.bytes, 84, true, jitter);
            EXPECT_EQ(listens.wakeups, listens.packets);
            EXPECT_LT(merges.wakeups, one.most_wakeups * listens.wakeups) << one.bytes << ", " << jitter;
            EXPECT_LT(merges.mean_late_ns, one.most_late * gap_ns) << one.bytes << ", " << jitter;
            EXPECT_LE(merges.worst_late_ns, 1e6);
        }
    }
}

// Small messages are worth listening to: none is merged away, none is late.
TEST(arrivals, small_messages_are_never_late) {
    const Outcome merges = receive(200, 1024, 84, true, 0.2);
    EXPECT_EQ(merges.worst_late_ns, 0);
}

}  // namespace
}  // namespace thalweg
