// Which protocol carries a message inside a host that has more processes than cores: by the work that it
// makes.
#include <gtest/gtest.h>

#include "transport/shm/choice.h"

namespace thalweg::shm {
namespace {

constexpr Reach everything{true, true, false};
constexpr std::uint64_t mega = 1u << 20;

// A message that is longer than the ring wakes its writer and its reader ring by ring.
TEST(Choice, ARingTakesTwoCopiesAndWakeUps) {
    CopyRates rates;
    rates.measured(eager, 0, std::size_t{8'000'000'000}, 1, 1);
    EXPECT_NEAR(rates.bytes_per_s(eager, 0), 4e9, 1e6);
    rates.measured_out_of_ring(0, std::size_t{2'000'000'000}, 1);
    EXPECT_NEAR(rates.bytes_per_s(eager, 0), 1.6e9, 1e6);
    // Where cores are scarce, and its two copies are half as much work as the one by the system.
    CopyRates crowded;
    for (const int size_class : {Chooser::class_of(100 * 1024), Chooser::class_of(8 * mega)}) {
        for (const Protocol* protocol : {&cma_get, &cma_put})
            crowded.measured(*protocol, size_class, std::size_t{3'000'000'000}, 10, 1);
        crowded.measured(eager, size_class, std::size_t{9'000'000'000}, 10, 1);
        crowded.measured_out_of_ring(size_class, std::size_t{9'000'000'000}, 1);
    }
    Chooser chooser;
    EXPECT_EQ(chooser.choose(100 * 1024, everything, {}, {}, crowded, nullptr).protocol, &eager);
    EXPECT_NE(chooser.choose(8 * mega, everything, {}, {}, crowded, nullptr).protocol, &eager);
}

// Of runs that lie apart the system looks up each, and two copies through a ring are less work. Who has
// messages in both directions sleeps less often than for each ring's worth, and is seen to.
TEST(Choice, WhereCoresAreShortTheLeastWorkIsTaken) {
    constexpr std::uint64_t bytes = 2 * mega;
    const auto taken = [](bool crowded, std::uint64_t sleeps) {
        CopyRates rates(false, crowded);
        const int size_class = Chooser::class_of(bytes);
        for (const Protocol* protocol : {&cma_get, &cma_put})
            rates.measured(*protocol, size_class, std::size_t{2'000'000'000}, 1, 1);
        rates.measured(eager, size_class, std::size_t{13'000'000'000}, 1, 1);
        rates.measured_out_of_ring(size_class, std::size_t{13'000'000'000}, 1);
        EXPECT_EQ(rates.scarcity(), 0) << "no copy has lost its core";
        EXPECT_EQ(rates.shortage(), crowded ? 1 : 0);
        Chooser chooser;
        const Protocol* last = nullptr;
        for (int i = 0; i < 600; ++i) {
            const Decision decision = chooser.choose(bytes, {true, true, false}, {}, {}, rates, nullptr);
            // Through a ring both directions take as long as the exchange, by the system each what it takes.
            const bool ring = decision.protocol == &eager;
            chooser.measured(bytes, *decision.protocol, decision.expected_s,
                             decision.expected_s * (ring ? 2.2 : 1.5), ring ? sleeps : 1);
            last = chooser.account(Chooser::class_of(bytes)).protocol;
        }
        return last;
    };
    EXPECT_EQ(taken(true, 20), &eager);
    EXPECT_NE(taken(true, 200), &eager) << "as often as that it is no less work";
    EXPECT_NE(taken(false, 20), &eager) << "who has a core waits for the message alone";
}

// A longer ring is full less often.
TEST(Choice, ALongerRingWakesLessOften) {
    const int size_class = Chooser::class_of(8 * mega);
    const auto taken = [size_class](std::size_t ring) {
        CopyRates rates(false, true, ring);
        for (const Protocol* protocol : {&cma_get, &cma_put})
            rates.measured(*protocol, size_class, std::size_t{4'000'000'000}, 1, 1);
        rates.measured(eager, size_class, std::size_t{10'000'000'000}, 1, 1);
        rates.measured_out_of_ring(size_class, std::size_t{10'000'000'000}, 1);
        return Chooser().choose(8 * mega, everything, {}, {}, rates, nullptr).protocol;
    };
    EXPECT_NE(taken(ring_bytes), &eager);
    EXPECT_EQ(taken(most_ring_bytes), &eager);
}

// The processor clock is a call of the system, twice for each. How often copies lose their cores counts
// nowhere where it is known that there are too few.
TEST(Choice, WhereCoresAreShortAnywayFewCopiesAreMeasured) {
    const int size_class = Chooser::class_of(8 * mega);
    for (const bool crowded : {false, true}) {
        CopyRates rates(false, crowded);
        for (int i = 0; i < 100; ++i) rates.measured(cma_get, size_class, std::size_t{1} << 30, 10, 1);
        EXPECT_NEAR(rates.scarcity(), 0.9, 0.01);
        int wanted = 0;
        for (int i = 0; i < 800; ++i) wanted += rates.wants(cma_get, size_class);
        EXPECT_EQ(wanted, crowded ? 100 : 800);
    }
}

}  // namespace
}  // namespace thalweg::shm
