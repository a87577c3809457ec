// A rank of a halo exchange by a synthetic clock: what the wire is measured to do decides how messages inside
// the host are copied, and the choice follows when a link becomes slow, and knows a rank that is late from
// one.
#include <gtest/gtest.h>

#include <algorithm>

#include "transport/composite/wire_meter.h"
#include "transport/shm/choice.h"

namespace thalweg::shm {
namespace {

constexpr Reach everything{true, true, false};
constexpr std::uint64_t inside_bytes = 8u << 20, crossing_bytes = 4u << 20;
// So that the wire takes less than copies by one side, and at a quarter of the rate longer than any of them.
constexpr double link = 1e9, slow_link = link / 4;

class Rank {
  public:
    // One message inside the host and one each way between hosts, whose sender comes late by late_s. The copy
    // takes as long as it is expected to; but its sender's part, if it has one, begins after waits_s.
    void exchange(double bytes_per_s, double late_s = 0, double waits_s = 0) {
        meter_.posted(WireMeter::out, crossing_bytes, now_ns_);
        meter_.posted(WireMeter::in, crossing_bytes, now_ns_);
        const Decision decision =
            chooser_.choose(inside_bytes, everything, {0, meter_.left_ns()}, {}, rates_, nullptr);
        const bool needs_sender = decision.receivers_share != inside_bytes;
        chooser_.measured(inside_bytes, *decision.protocol, decision.expected_s,
                          decision.expected_s + (needs_sender ? waits_s : 0));
        carried_by_receiver_ += !needs_sender;
        const double wire_s = static_cast<double>(crossing_bytes) / bytes_per_s;
        meter_.completed(WireMeter::out, crossing_bytes, after(wire_s));
        meter_.completed(WireMeter::in, crossing_bytes, after(wire_s + late_s));
        now_ns_ = after(wire_s + late_s + 1e-3);
    }
    // Exchanges until that is the reason of the choice: how many, at most `most`.
    int until(Because because, int most, double bytes_per_s, double late_s = 0, double waits_s = 0) {
        int count = 0;
        while (count < most && account().because != because) exchange(bytes_per_s, late_s, waits_s), ++count;
        return count;
    }
    const Chooser::Account& account() const { return chooser_.account(Chooser::class_of(inside_bytes)); }
    double rate() const { return meter_.bytes_per_s(); }
    // Messages inside the host that needed nothing of their sender.
    int carried_by_receiver() const { return carried_by_receiver_; }

  private:
    std::uint64_t after(double seconds) const { return now_ns_ + static_cast<std::uint64_t>(1e9 * seconds); }

    std::uint64_t now_ns_ = 1;
    WireMeter meter_;
    const CopyRates rates_;
    Chooser chooser_;
    int carried_by_receiver_ = 0;
};

// Begins when the rank has seen its link for a while: copies take longest, so both sides share them.
struct ChoiceInRun : testing::Test {
    ChoiceInRun() {
        for (int i = 0; i < 20; ++i) rank.exchange(link);
        EXPECT_EQ(rank.account().protocol, &coop);
        EXPECT_EQ(rank.account().because, Because::copies_bound);
        EXPECT_NEAR(rank.rate(), link, link / 100);
        EXPECT_EQ(rank.account().switches, 0u);
    }
    Rank rank;
};

TEST_F(ChoiceInRun, FollowsALinkThatIsSlowed) {
    // What is slower than before may be a rank that is late: it is believed by a twentieth each time.
    const int believed = rank.until(Because::wire_bound, 1000, slow_link);
    EXPECT_GT(believed, 20);
    EXPECT_LE(believed, 45);
    EXPECT_NE(rank.account().protocol, &coop) << "behind the wire one side copies";
    EXPECT_EQ(rank.account().switches, 1u);
    for (int i = 0; i < 100; ++i) rank.exchange(slow_link);
    EXPECT_NEAR(rank.rate(), slow_link, slow_link / 20);
    EXPECT_EQ(rank.account().because, Because::wire_bound);
    EXPECT_EQ(rank.account().switches, 1u);
    // What is faster than before is the link.
    const int back = rank.until(Because::copies_bound, 1000, link);
    EXPECT_LE(back, static_cast<int>(2 + Chooser::settle));
    EXPECT_EQ(rank.account().protocol, &coop);
    EXPECT_EQ(rank.account().switches, 2u);
    for (int i = 0; i < 10; ++i) rank.exchange(link);
    EXPECT_NEAR(rank.rate(), link, link / 100);
}

// One exchange in four waits for ten times as long as the wire takes. That is no slow link: a punctual
// exchange makes up for ten late ones.
TEST_F(ChoiceInRun, StaysWhereARankIsLateNowAndThen) {
    for (int i = 0; i < 400; ++i) {
        rank.exchange(link, i % 4 == 0 ? 0.04 : 0);
        ASSERT_GT(rank.rate(), 0.9 * link) << i;
        ASSERT_EQ(rank.account().because, Because::copies_bound) << i;
    }
    EXPECT_EQ(rank.account().protocol, &coop);
    EXPECT_EQ(rank.account().switches, 0u);
}

// A neighbour elsewhere that is late at every exchange from some time on is waited for as for a slow link:
// copies are hidden behind it whoever makes them. And back when it is punctual again.
TEST_F(ChoiceInRun, FollowsARankThatIsAlwaysLate) {
    const int believed = rank.until(Because::wire_bound, 1000, link, 0.04);
    EXPECT_GT(believed, 10);
    EXPECT_LE(believed, 45);
    EXPECT_NE(rank.account().protocol, &coop);
    const int back = rank.until(Because::copies_bound, 1000, link);
    EXPECT_LE(back, static_cast<int>(2 + Chooser::settle));
    EXPECT_EQ(rank.account().protocol, &coop);
    EXPECT_EQ(rank.account().switches, 2u);
}

// A neighbour in the host that posts and then computes, from some time on: what needs it is left, but for a
// trial now and then, which tells when it is there again.
TEST_F(ChoiceInRun, LeavesWhatNeedsASenderThatIsLate) {
    const int settling = rank.until(Because::measured_faster, 1000, link, 0, 0.02);
    EXPECT_LE(settling, static_cast<int>(3 * Chooser::settle));
    EXPECT_EQ(rank.account().protocol, &cma_get);
    const int before = rank.carried_by_receiver();
    for (int i = 0; i < 400; ++i) rank.exchange(link, 0, 0.02);
    EXPECT_GE(rank.carried_by_receiver() - before, 360);
    EXPECT_EQ(rank.account().switches, 1u);
    rank.until(Because::copies_bound, 4000, link);
    EXPECT_EQ(rank.account().protocol, &coop);
    EXPECT_EQ(rank.account().switches, 2u);
}

}  // namespace
}  // namespace thalweg::shm
