// Which protocol carries a message inside a host, as the loads of both ends and what was measured say.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "transport/shm/choice.h"

namespace thalweg::shm {
namespace {

constexpr Reach everything{true, true, false};
constexpr std::uint64_t mega = 1u << 20;

TEST(Choice, WhatDoesNotWorkIsNotTaken) {
    const CopyRates rates;
    for (int bits = 0; bits < 8; ++bits) {
        const Reach reach{(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0};
        for (const Protocol* forced : protocols) {
            Chooser chooser;
            const Decision decision = chooser.choose(mega, reach, {}, {}, rates, forced);
            EXPECT_TRUE(decision.protocol->usable(reach));
            if (forced->usable(reach)) {
                EXPECT_EQ(decision.protocol, forced);
            }
            EXPECT_LE(decision.receivers_share, mega);
        }
    }
    Chooser chooser;
    EXPECT_EQ(chooser.choose(mega, {}, {}, {}, rates, nullptr).protocol, &eager);
}

TEST(Choice, BothCopyWhenBothAreFreeAndTheShareFollowsTheLoad) {
    const CopyRates rates;
    Chooser idle;
    const Decision even = idle.choose(8 * mega, everything, {}, {}, rates, nullptr);
    EXPECT_EQ(even.protocol, &coop);
    EXPECT_EQ(even.receivers_share, 4 * mega);
    Chooser loaded;
    const Decision uneven = loaded.choose(8 * mega, everything, {2 * mega, 0}, {}, rates, nullptr);
    EXPECT_EQ(uneven.protocol, &coop);
    EXPECT_EQ(uneven.receivers_share, 3 * mega);
}

TEST(Choice, TheSideWithLessToDoCopies) {
    const CopyRates rates;
    Chooser receiver, sender;
    EXPECT_EQ(receiver.choose(mega, everything, {}, {64 * mega, 0}, rates, nullptr).protocol, &cma_get);
    EXPECT_EQ(sender.choose(mega, everything, {64 * mega, 0}, {}, rates, nullptr).protocol, &cma_put);
}

TEST(Choice, BehindTheWireOneSideCopies) {
    const CopyRates rates;
    Chooser chooser(false);
    EXPECT_EQ(chooser.choose(8 * mega, everything, {}, {}, rates, nullptr).protocol, &coop);
    const Load busy{0, 1'000'000'000};
    // Decided again after a few messages, and back when the wire is free.
    const Protocol* now = &coop;
    int messages = 0;
    while (now == &coop && ++messages < 20)
        now = chooser.choose(8 * mega, everything, busy, {}, rates, nullptr).protocol;
    EXPECT_EQ(now, &cma_get);
    EXPECT_LE(messages, static_cast<int>(Chooser::settle));
    messages = 0;
    while (now != &coop && ++messages < 20)
        now = chooser.choose(8 * mega, everything, {}, {}, rates, nullptr).protocol;
    EXPECT_EQ(now, &coop);
    EXPECT_EQ(chooser.account(Chooser::class_of(8 * mega)).switches, 2u);
}

// Though something else is a little better than what is in use, by less than the margin of a change.
TEST(Choice, BehindTheWireOneSideCopiesWhateverIsMeasuredBest) {
    const CopyRates rates;
    Chooser chooser;
    std::array<double, protocols.size()> slower{1, 1, 1, 1, 1};
    slower[number_of(coop)] = 2.05;
    slower[number_of(cma_put)] = slower[number_of(eager)] = 3;
    const Protocol* now = nullptr;
    // Until coop, which was in use first, costs more than cma_get, and is in use still.
    for (int i = 0; i < 4; ++i) {
        const Decision decision = chooser.choose(8 * mega, everything, {}, {}, rates, nullptr);
        now = decision.protocol;
        chooser.measured(8 * mega, *now, decision.expected_s, decision.expected_s * slower[number_of(*now)]);
    }
    ASSERT_EQ(now, &coop);
    const Load busy{0, 1'000'000'000};
    for (int i = 0; i < 4; ++i)
        EXPECT_NE(chooser.choose(8 * mega, everything, busy, {}, rates, nullptr).protocol, &coop);
}

TEST(Choice, SmallDifferencesDoNotMakeItFlap) {
    const CopyRates rates;
    Chooser chooser;
    // One side has a little more to do than the other, now this, now that.
    for (int i = 0; i < 1000; ++i) {
        const Load more{mega / 20, 0};
        chooser.choose(100 * 1024, everything, i % 2 ? more : Load{}, i % 2 ? Load{} : more, rates, nullptr);
    }
    EXPECT_LE(chooser.account(Chooser::class_of(100 * 1024)).switches, 1u);
}

// Messages of 8 MiB of which a protocol's take so many times what is expected of it. How many it carried.
std::array<int, protocols.size()> carry(Chooser& chooser, const CopyRates& rates, int messages,
                                        const std::array<double, protocols.size()>& slower) {
    std::array<int, protocols.size()> counts{};
    for (int i = 0; i < messages; ++i) {
        const Decision decision = chooser.choose(8 * mega, everything, {}, {}, rates, nullptr);
        const std::uint32_t number = number_of(*decision.protocol);
        ++counts[number];
        chooser.measured(8 * mega, *decision.protocol, decision.expected_s,
                         decision.expected_s * slower[number]);
    }
    return counts;
}

TEST(Choice, WhatTurnsOutSlowIsLeftAndTriedAgainMuchLater) {
    const CopyRates rates;
    Chooser chooser;
    std::array<double, protocols.size()> slower{1, 1, 1, 1, 1};
    slower[number_of(coop)] = 5;
    EXPECT_LE(carry(chooser, rates, 100, slower)[number_of(coop)], 10);
    EXPECT_EQ(chooser.account(Chooser::class_of(8 * mega)).switches, 1u);
    const int again = carry(chooser, rates, 1000, slower)[number_of(coop)];
    EXPECT_GE(again, 1);
    EXPECT_LE(again, 10);
    // It has become fast: what was tried now and then shows it.
    slower.fill(1);
    EXPECT_GT(carry(chooser, rates, 4000, slower)[number_of(coop)], 2000);
}

// Nothing is taken for slow because it was never used; and what that costs gets less and less.
TEST(Choice, WhatIsNotInUseIsTriedNowAndThen) {
    const CopyRates rates;
    Chooser chooser, fixed(false);
    std::array<double, protocols.size()> slower{1, 1, 1, 1, 1};
    const auto first = carry(chooser, rates, 100, slower), later = carry(chooser, rates, 10'000, slower);
    for (const Protocol* protocol : {&eager, &cma_get, &cma_put}) {
        EXPECT_GE(first[number_of(*protocol)], 1) << protocol->name;
        EXPECT_GE(later[number_of(*protocol)], 10) << protocol->name;
    }
    EXPECT_LE(10'000 - later[number_of(coop)], 100);
    EXPECT_EQ(chooser.account(Chooser::class_of(8 * mega)).switches, 0u);
    EXPECT_EQ(carry(fixed, rates, 1000, slower)[number_of(coop)], 1000);
}

TEST(Choice, WhatIsFoundToBeFasterIsTaken) {
    const CopyRates rates;
    Chooser chooser;
    std::array<double, protocols.size()> slower{1, 1, 1, 1, 1};
    slower[number_of(eager)] = 0.2;
    slower[number_of(coop)] = slower[number_of(cma_get)] = slower[number_of(cma_put)] = 2;
    carry(chooser, rates, 60, slower);
    EXPECT_GT(carry(chooser, rates, 100, slower)[number_of(eager)], 90);
}

// Two cores for many processes: both sides' work counts, and not who of them is free.
TEST(Choice, WhereCoresAreScarceTheLeastWorkIsTaken) {
    const double second = 1;
    CopyRates rates;
    for (const auto& [protocol, bytes_per_s] : {std::pair{&cma_get, 1e9}, {&cma_put, 1e9}, {&coop, 0.9e9}})
        for (int i = 0; i < 100; ++i)
            rates.measured(*protocol, Chooser::class_of(8 * mega),
                           static_cast<std::size_t>(bytes_per_s * second), second, second);
    Chooser free;
    EXPECT_EQ(rates.scarcity(), 0);
    EXPECT_EQ(free.choose(8 * mega, everything, {}, {}, rates, nullptr).protocol, &coop);
    // They have a core for a tenth of the time that they take: what each copy costs is the same as before.
    for (int i = 0; i < 1000; ++i)
        rates.measured(eager, Chooser::class_of(8 * mega), std::size_t{4'000'000'000}, 10 * second, second);
    EXPECT_NEAR(rates.scarcity(), 0.9, 0.01);
    EXPECT_NEAR(rates.bytes_per_s(cma_get, Chooser::class_of(mega)), 1e9, 1e6);
    Chooser crowded;
    EXPECT_EQ(crowded.choose(8 * mega, everything, {}, {}, rates, nullptr).protocol, &eager);
}

// Nobody sleeps, and the two copies through the ring are quicker than one by the system.
TEST(Choice, WhoPollsIsNotWoken) {
    for (const bool spins : {false, true}) {
        CopyRates rates(spins);
        const int size_class = Chooser::class_of(mega);
        for (const Protocol* protocol : {&cma_get, &cma_put})
            rates.measured(*protocol, size_class, std::size_t{6'000'000'000}, 1, 1);
        rates.measured(coop, size_class, std::size_t{1'000'000'000}, 1, 1);
        rates.measured(eager, size_class, std::size_t{16'000'000'000}, 1, 1);
        rates.measured_out_of_ring(size_class, std::size_t{16'000'000'000}, 1);
        Chooser chooser;
        EXPECT_EQ(chooser.choose(mega, everything, {}, {}, rates, nullptr).protocol,
                  spins ? &eager : &cma_get);
    }
}

// Messages that have the ring come by it unasked, but for those that may be trials: these find out that
// something else has become better, and then all are asked about.
TEST(Choice, WhatKeepsTheRingLeavesItAgain) {
    constexpr std::uint64_t bytes = 32 * 1024;
    const CopyRates rates(true);
    Chooser chooser;
    EXPECT_FALSE(chooser.keeps_ring(bytes));
    std::array<double, protocols.size()> slower{3, 3, 3, 3, 0.5};
    int kept = 0, asked = 0;
    const auto carry_on = [&](int messages) {
        kept = asked = 0;
        for (int i = 0; i < messages; ++i) {
            if (chooser.keeps_ring(bytes)) {
                chooser.keep_ring(bytes, false);
                ++kept;
                continue;
            }
            const Decision decision = chooser.choose(bytes, everything, {}, {}, rates, nullptr);
            chooser.measured(bytes, *decision.protocol, decision.expected_s,
                             decision.expected_s * slower[number_of(*decision.protocol)]);
            ++asked;
        }
    };
    carry_on(600);
    EXPECT_GT(kept, 400);
    carry_on(320);
    EXPECT_EQ(asked, 10);
    EXPECT_FALSE(chooser.keeps_ring(mega)) << "another size class";
    slower = {3, 0.3, 3, 3, 4};
    carry_on(4000);
    carry_on(320);
    EXPECT_EQ(kept, 0);
    EXPECT_EQ(chooser.account(Chooser::class_of(bytes)).protocol, &cma_get);
    EXPECT_EQ(chooser.account(Chooser::class_of(bytes)).messages, 600u + 320 + 4000 + 320);
}

// Whatever is best, a program that exchanges a few dozen times has it for most of them.
TEST(Choice, SixteenMessagesTellWhatIsBest) {
    for (const Protocol* best : {&cma_get, &cma_put, &coop, &eager}) {
        const CopyRates rates(true);
        Chooser chooser;
        std::array<double, protocols.size()> slower{2, 2, 2, 2, 2};
        slower[number_of(*best)] = 0.25;
        carry(chooser, rates, 16, slower);
        EXPECT_EQ(chooser.account(Chooser::class_of(8 * mega)).protocol, best) << best->name;
    }
}

// Memory that both have mapped is known to be only after a while.
TEST(Choice, WhatCanBeUsedOnlyLaterIsTriedThen) {
    const CopyRates rates(true);
    Chooser chooser;
    std::array<double, protocols.size()> slower{2, 2, 2, 2, 2};
    slower[number_of(direct)] = 0.25;
    carry(chooser, rates, 20, slower);
    int through = 0;
    for (int i = 0; i < 12; ++i) {
        const Decision decision = chooser.choose(8 * mega, {true, true, true}, {}, {}, rates, nullptr);
        through += decision.protocol == &direct;
        chooser.measured(8 * mega, *decision.protocol, decision.expected_s,
                         decision.expected_s * slower[number_of(*decision.protocol)]);
    }
    EXPECT_GE(through, 8);
    EXPECT_EQ(chooser.account(Chooser::class_of(8 * mega)).protocol, &direct);
}

// The first message through a ring touches memory that nobody had before: that teaches nothing.
TEST(Choice, TheFirstMessageOfAProtocolIsForgotten) {
    const CopyRates rates(true);
    Chooser chooser;
    int messages = 0, through_ring = 0;
    const Protocol* now = nullptr;
    for (; messages < 100 && !(through_ring > 2 && now == &eager); ++messages) {
        const Decision decision = chooser.choose(mega, everything, {}, {}, rates, nullptr);
        now = decision.protocol;
        through_ring += now == &eager;
        const double slower = now != &eager ? 3 : through_ring == 1 ? 16 : 0.5;
        chooser.measured(mega, *now, decision.expected_s, decision.expected_s * slower);
    }
    EXPECT_LT(messages, 60);
}

// Of 4 MiB.
void share_copies_though_the_ring_may_be_quicker(CopyRates& rates) {
    rates.measured(coop, Chooser::class_of(4 * mega), std::size_t{9'000'000'000}, 1, 1);
    rates.measured_out_of_ring(Chooser::class_of(4 * mega), std::size_t{30'000'000'000}, 1);
}

// Behind messages that came another way the ring lies in nobody's caches: two in a row try it, and the second
// tells how it would be.
TEST(Choice, TheRingIsTriedByTwoMessagesInARow) {
    CopyRates rates(true);
    share_copies_though_the_ring_may_be_quicker(rates);
    Chooser chooser;
    std::uint64_t in_a_row = 0, longest = 0, tries = 0;
    for (int message = 0; message < 60; ++message) {
        const Decision decision = chooser.choose(4 * mega, everything, {}, {}, rates, nullptr);
        const bool ring = decision.protocol == &eager;
        in_a_row = ring ? in_a_row + 1 : 0;
        longest = std::max(longest, in_a_row);
        if (in_a_row == 1 && chooser.account(Chooser::class_of(4 * mega)).protocol != &eager) {
            EXPECT_EQ(decision.expected_s, 0) << message;  // says nothing
            ++tries;
        }
        const double seconds = !ring ? 250e-6 : in_a_row == 1 ? 400e-6 : 130e-6;
        chooser.measured(4 * mega, *decision.protocol, decision.expected_s, seconds);
    }
    EXPECT_EQ(chooser.account(Chooser::class_of(4 * mega)).protocol, &eager);
    EXPECT_GE(longest, 3u);
    EXPECT_GE(tries, 1u);
}

// The second one tells nothing if it came before the first was there: it waited for that.
TEST(Choice, ARingThatIsTriedByTwoMessagesAtOnceTellsNothing) {
    CopyRates rates(true);
    share_copies_though_the_ring_may_be_quicker(rates);
    Chooser chooser;
    // Both messages of the first trial are one pair.
    for (int pair = 0, tries = 0; tries < 2; ++pair) {
        ASSERT_LT(pair, 16);
        const Decision one = chooser.choose(4 * mega, everything, {}, {}, rates, nullptr);
        const Decision other = chooser.choose(4 * mega, everything, {}, {}, rates, nullptr);
        for (const Decision& each : {one, other}) {
            const bool ring = each.protocol == &eager;
            tries += ring;
            if (ring) {
                EXPECT_EQ(each.expected_s, 0) << pair;
            }
            chooser.measured(4 * mega, *each.protocol, each.expected_s, 250e-6);
        }
    }
}

// A rank that only receives knows how fast it takes bytes out of a ring, and takes that for both copies.
TEST(Choice, WhoOnlyReceivesKnowsTheRingByItsOwnCopies) {
    CopyRates rates;
    rates.measured_out_of_ring(0, std::size_t{20'000'000'000}, 1);
    EXPECT_NEAR(rates.bytes_per_s(eager, 0), 10e9, 1e6);
}

// One message that waits for somebody else is no reason to leave what it came by.
TEST(Choice, OneDelayChangesNothing) {
    const CopyRates rates;
    Chooser chooser;
    std::array<double, protocols.size()> slower{1, 1, 1, 1, 1};
    carry(chooser, rates, 100, slower);
    for (int round = 0; round < 20; ++round) {
        slower[number_of(coop)] = 100;
        carry(chooser, rates, 1, slower);
        slower[number_of(coop)] = 1;
        carry(chooser, rates, 20, slower);
    }
    EXPECT_EQ(chooser.account(Chooser::class_of(8 * mega)).switches, 0u);
}

// Two processes that exchange alike try the same at the same time, whatever either is used to.
TEST(Choice, BothSidesTryTogether) {
    const CopyRates rates;
    Chooser one, other;
    for (int message = 0; message < 2000; ++message) {
        const Decision here = one.choose(8 * mega, everything, {}, {}, rates, nullptr);
        const Decision there = other.choose(8 * mega, everything, {}, {}, rates, nullptr);
        const Protocol* const used = one.account(Chooser::class_of(8 * mega)).protocol;
        const Protocol* const used_there = other.account(Chooser::class_of(8 * mega)).protocol;
        if (here.protocol != used && here.protocol != used_there) {
            EXPECT_EQ(here.protocol, there.protocol) << message;
        }
        one.measured(8 * mega, *here.protocol, here.expected_s,
                     here.expected_s * (here.protocol == &cma_put ? 0.5 : 2));
        other.measured(8 * mega, *there.protocol, there.expected_s,
                       there.expected_s * (there.protocol == &eager ? 0.2 : 2));
    }
}

// In the midst of what was chosen something else is asked for: afterwards the choice goes on where it was,
// and what the other way took is not held against anybody.
TEST(Choice, WhatIsAskedForTeachesNothing) {
    const CopyRates rates;
    Chooser undisturbed, disturbed;
    const Load busy{16 * mega, 0};
    for (int i = 0; i < 100; ++i) {
        const Load mine = i % 20 < 10 ? Load{} : busy;
        if (i % 3 == 0)
            for (const Protocol* asked : protocols) {
                if (!asked->usable(everything)) continue;
                const Decision decision = disturbed.choose(8 * mega, everything, {}, busy, rates, asked);
                EXPECT_EQ(decision.protocol, asked);
                EXPECT_EQ(disturbed.account(Chooser::class_of(8 * mega)).because, Because::asked_for);
                disturbed.measured(8 * mega, *asked, decision.expected_s, 10);
            }
        const Decision wanted = undisturbed.choose(8 * mega, everything, mine, {}, rates, nullptr);
        const Decision got = disturbed.choose(8 * mega, everything, mine, {}, rates, nullptr);
        ASSERT_EQ(got.protocol, wanted.protocol) << i;
        EXPECT_EQ(got.receivers_share, wanted.receivers_share);
        const double slower = wanted.protocol == &coop ? 6 : 1;
        undisturbed.measured(8 * mega, *wanted.protocol, wanted.expected_s, slower * wanted.expected_s);
        disturbed.measured(8 * mega, *got.protocol, got.expected_s, slower * got.expected_s);
    }
    const auto& account = disturbed.account(Chooser::class_of(8 * mega));
    EXPECT_GT(account.switches, 0u);
    EXPECT_EQ(account.switches, undisturbed.account(Chooser::class_of(8 * mega)).switches);
    EXPECT_NE(account.because, Because::asked_for);
}

}  // namespace
}  // namespace thalweg::shm
