// The parts of the shm transport that need no second process: rings, matching, the choice of protocols.
#include <gtest/gtest.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>

#include <array>
#include <cstring>
#include <memory>
#include <numeric>

#include "transport/composite/wire_meter.h"
#include "transport/shm/choice.h"
#include "transport/shm/elements.h"
#include "transport/shm/mappings.h"
#include "transport/shm/request.h"
#include "transport/shm/ring.h"

namespace thalweg::shm {
namespace {

Frame frame_with(std::uint32_t payload, std::uint64_t number) {
    Frame frame;
    frame.kind = FrameKind::eager;
    frame.payload = payload;
    frame.bytes = number;
    return frame;
}

TEST(Ring, FramesComeOutAsTheyWentInRoundAfterRound) {
    const auto ring = std::make_unique<Ring>();
    RingWriter writer(*ring);
    RingReader reader(*ring);
    std::vector<std::byte> payload(payload_bytes);
    for (std::size_t i = 0; i < payload.size(); ++i) payload[i] = static_cast<std::byte>(i * 7);
    std::uint64_t written = 0, taken = 0, full = 0;
    const auto length = [](std::uint64_t number) {
        return static_cast<std::uint32_t>(number * 7919 % (payload_bytes + 1));
    };
    while (taken < 10'000) {
        while (writer.write(frame_with(length(written), written), payload.data())) ++written;
        ++full;
        for (int i = 0; i < 3; ++i) {
            Frame frame;
            const std::byte* got = nullptr;
            ASSERT_EQ(reader.front(frame, got), Read::frame);
            ASSERT_EQ(frame.bytes, taken);
            ASSERT_EQ(frame.payload, length(taken));
            ASSERT_EQ(std::memcmp(got, payload.data(), frame.payload), 0);
            reader.pop();
            ++taken;
        }
    }
    EXPECT_GT(full, 1000u);
}

TEST(Ring, TheWriterHearsOfSpaceOnlyWhenItAsked) {
    const auto ring = std::make_unique<Ring>();
    RingWriter writer(*ring);
    RingReader reader(*ring);
    EXPECT_TRUE(writer.want_space());
    std::vector<std::byte> payload(payload_bytes);
    EXPECT_TRUE(reader.space_wanted());
    while (writer.write(frame_with(payload_bytes, 0), payload.data())) {
    }
    EXPECT_FALSE(reader.space_wanted());
    EXPECT_FALSE(writer.want_space());
    EXPECT_TRUE(reader.space_wanted());
    EXPECT_FALSE(reader.space_wanted());
}

TEST(Ring, NumbersThatMakeNoSenseAreNotBelieved) {
    Frame frame;
    const std::byte* payload = nullptr;
    for (const std::uint64_t tail : {std::uint64_t{1}, std::uint64_t{ring_bytes} + 64, ~std::uint64_t{0}}) {
        const auto ring = std::make_unique<Ring>();
        RingReader reader(*ring);
        ring->control.tail.store(tail);
        EXPECT_EQ(reader.front(frame, payload), Read::nonsense) << tail;
    }
    const auto ring = std::make_unique<Ring>();
    RingReader reader(*ring);
    const Frame longer = frame_with(65, 0);  // than what was written
    std::memcpy(ring->data, &longer, sizeof longer);
    ring->control.tail.store(128);
    EXPECT_EQ(reader.front(frame, payload), Read::nonsense);
    // A skip at the very beginning would never end.
    const Frame skip;
    std::memcpy(ring->data, &skip, sizeof skip);
    EXPECT_EQ(reader.front(frame, payload), Read::nonsense);
}

TEST(Matches, OneKeyInTheOrderOfComing) {
    Requests requests;
    Matches matches;
    std::vector<Request*> all;
    for (std::uint32_t i = 0; i < 1000; ++i) {
        Request& request = requests.take(Request::Kind::receive);
        request.key = {1, i % 100, 0, 2};
        matches.add(request);
        all.push_back(&request);
    }
    matches.remove(*all[107]);
    for (std::uint32_t key = 0; key < 100; ++key) {
        for (std::uint32_t i = key; i < 1000; i += 100)
            if (i != 107) {
                ASSERT_EQ(matches.take({1, key, 0, 2}), all[i]);
            }
        EXPECT_EQ(matches.take({1, key, 0, 2}), nullptr);
    }
}

TEST(Requests, RoomIsReservedAgainByTheNext) {
    Requests requests;
    requests.reserve(10);
    requests.reserve(5);
    EXPECT_EQ(requests.size(), 15u);
    Request& taken = requests.take(Request::Kind::send);
    for (int channel = 0; channel < 100; ++channel) {
        requests.release(10);
        requests.reserve(10);
    }
    EXPECT_EQ(requests.size(), 15u);
    requests.free(taken);
    requests.release(15);
    requests.reserve(20);
    EXPECT_EQ(requests.size(), 20u);
}

TEST(Requests, AnOldNumberFindsNothing) {
    Requests requests;
    Request& first = requests.take(Request::Kind::send);
    const std::uint64_t old = Requests::cookie(first);
    EXPECT_EQ(requests.find(old), &first);
    requests.free(first);
    EXPECT_EQ(requests.find(old), nullptr);
    Request& second = requests.take(Request::Kind::receive);
    ASSERT_EQ(&second, &first);
    EXPECT_EQ(requests.find(old), nullptr);
    EXPECT_EQ(requests.find(0), nullptr);
    EXPECT_EQ(requests.find(~std::uint64_t{0}), nullptr);
}

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
    Chooser chooser;
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
    for (int i = 0; i < 100; ++i)
        rates.measured(eager, Chooser::class_of(8 * mega), std::size_t{1'400'000'000}, 10 * second, second);
    EXPECT_NEAR(rates.scarcity(), 0.9, 0.01);
    EXPECT_NEAR(rates.bytes_per_s(cma_get, Chooser::class_of(mega)), 1e9, 1e6);
    Chooser crowded;
    EXPECT_EQ(crowded.choose(8 * mega, everything, {}, {}, rates, nullptr).protocol, &eager);
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
        undisturbed.measured(8 * mega, *wanted.protocol, wanted.expected_s, 2 * wanted.expected_s);
        disturbed.measured(8 * mega, *got.protocol, got.expected_s, 2 * got.expected_s);
    }
    const auto& account = disturbed.account(Chooser::class_of(8 * mega));
    EXPECT_GT(account.switches, 0u);
    EXPECT_EQ(account.switches, undisturbed.account(Chooser::class_of(8 * mega)).switches);
    EXPECT_NE(account.because, Because::asked_for);
}

// What a frame says of a peer's elements gives the same stretches of memory as the elements themselves.
TEST(Elements, DescribedAndReadAgain) {
    std::vector<std::byte> field(1 << 20);
    const auto layout = std::make_shared<const Layout>(Layout::strided(50, 2000, 2500, 200'000, 300));
    const StandIn whole{nullptr, 4 * 100'000, layout, field.data() + 100, false};
    const StandInPart part{&whole, 7000};
    ASSERT_TRUE(reachable(part));
    const std::optional<Elements> read = read_elements(written(part), 300'000);
    ASSERT_TRUE(read);
    std::array<iovec, 40> here, there;
    for (std::uint64_t offset = 0; offset < 300'000;) {
        std::uint64_t bytes = 300'000 - offset, same = bytes;
        const std::size_t count = stretches(*layout, reinterpret_cast<std::uintptr_t>(whole.elements),
                                            part.begin + offset, bytes, here);
        ASSERT_EQ(stretches(read->layout, read->address, read->begin + offset, same, there), count);
        ASSERT_EQ(bytes, same);
        ASSERT_GT(bytes, 0u);
        for (std::size_t i = 0; i < count; ++i) {
            ASSERT_EQ(here[i].iov_base, there[i].iov_base);
            ASSERT_EQ(here[i].iov_len, there[i].iov_len);
        }
        offset += bytes;
    }
    const StandIn short_runs{nullptr, 4000, std::make_shared<const Layout>(Layout::strided(500, 8, 16, 8000)),
                             field.data(), false};
    EXPECT_FALSE(reachable({&short_runs, 0}));
}

// Numbers that a peer may have made up are refused before anything is computed from them.
TEST(Elements, NonsenseIsRefused) {
    constexpr std::uint64_t huge = std::uint64_t{1} << 62;
    const WrittenElements sane{10, 2000, 4096, 0, 0, 3000, 40'000};
    EXPECT_TRUE(read_elements(sane, 100'000));
    for (const auto spoil :
         {+[](WrittenElements& e) { e.runs = 0; }, +[](WrittenElements& e) { e.run_bytes = 0; },
          +[](WrittenElements& e) { e.runs = huge; }, +[](WrittenElements& e) { e.run_bytes = huge; },
          +[](WrittenElements& e) { e.begin = huge; },
          +[](WrittenElements& e) { e.first = std::int64_t{1} << 60; },
          +[](WrittenElements& e) { e.stride = -(std::int64_t{1} << 55); },
          +[](WrittenElements& e) { e.extent = std::int64_t{1} << 55; }}) {
        WrittenElements spoilt = sane;
        spoil(spoilt);
        EXPECT_FALSE(read_elements(spoilt, 100'000));
    }
    EXPECT_FALSE(read_elements(sane, huge));
}

// Messages of a channel that failed weigh no more, and the rate is what it was.
TEST(WireMeter, WhatIsDroppedIsNoLoad) {
    WireMeter meter;
    meter.posted(WireMeter::in, 1'000'000, 0);
    meter.completed(WireMeter::in, 1'000'000, 10'000'000);
    const double rate = meter.bytes_per_s();
    EXPECT_DOUBLE_EQ(rate, 1e8);
    meter.posted(WireMeter::in, 500'000, 20'000'000);
    meter.posted(WireMeter::out, 1'000'000, 20'000'000);
    EXPECT_EQ(meter.left_ns(), 10'000'000u);
    meter.completed(WireMeter::in, 500'000, 90'000'000);
    meter.dropped(WireMeter::out, 1'000'000, 100'000'000);
    EXPECT_EQ(meter.left_ns(), 0u);
    EXPECT_EQ(meter.busy_ns(200'000'000), 90'000'000u);
    EXPECT_DOUBLE_EQ(meter.bytes_per_s(), rate);
}

TEST(Mappings, OnlyAFileOfItsOwnIsAPlaceThatTwoProcessesShare) {
    const auto place_in = [](const char* line) {
        const std::optional<Mapped> mapped = read_mapping(line);
        EXPECT_TRUE(mapped) << line;
        return mapped ? mapped->place : std::nullopt;
    };
    const char* const shared[] = {
        "7f3a00000000-7f3a00400000 rw-s 00001000 00:19 4711   /dev/shm/mpich_shar_tmpAbCdEf (deleted)\n",
        "7f3a00000000-7f3a00400000 rw-s 00001000 00:01 4711                 /memfd:window (deleted)\n",
        "7f3a00000000-7f3a00400000 rw-s 00001000 00:01 4711                 /dev/zero (deleted)\n",
        "7f3a00000000-7f3a00400000 r--s 00001000 fe:00 4711                 "
        "/tmp/session/shared_window_4.host\n",
    };
    for (const char* const line : shared) {
        const std::optional<SharedPlace> place = place_in(line);
        ASSERT_TRUE(place) << line;
        EXPECT_EQ(place->inode, 4711u) << line;
        EXPECT_EQ(place->offset, 0x1000u) << line;
    }
    const char* const own[] = {
        "7f3a00000000-7f3a00400000 rw-s 00000000 00:06 463                  /dev/nvidiactl\n",
        "7f3a00000000-7f3a00400000 rw-s 00000000 00:06 470                  /dev/dri/renderD128\n",
        "7f3a00000000-7f3a00400000 rw-s 00000000 00:01 1                    /SYSV00000000 (deleted)\n",
        "7f3a00000000-7f3a00400000 rw-s 00000000 00:0e 1057                 anon_inode:[io_uring]\n",
        "7f3a00000000-7f3a00400000 rw-p 00001000 00:19 4711                 /dev/shm/private\n",
        "7f3a00000000-7f3a00400000 -w-s 00001000 00:19 4711                 /dev/shm/unreadable\n",
        "7f3a00000000-7f3a00400000 rw-p 00000000 00:00 0 \n",
        "7f3a00000000-7f3a00400000 rw-p 00000000 00:00 0                    [heap]\n",
    };
    for (const char* const line : own) EXPECT_FALSE(place_in(line)) << line;
    EXPECT_FALSE(read_mapping("not a mapping\n"));
}

// Two containers number their segments alike.
TEST(Mappings, SystemVSegmentsAreNotPlaces) {
    const int segment = shmget(IPC_PRIVATE, 8192, IPC_CREAT | 0600);
    if (segment < 0) GTEST_SKIP() << "no System V memory here";
    void* const memory = shmat(segment, nullptr, 0);
    shmctl(segment, IPC_RMID, nullptr);
    ASSERT_NE(memory, reinterpret_cast<void*>(-1));
    const Mapped found = mapping_of(memory);
    EXPECT_EQ(found.begin, reinterpret_cast<std::uintptr_t>(memory));
    EXPECT_FALSE(found.place);
    shmdt(memory);
    void* const shared = mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(shared, MAP_FAILED);
    EXPECT_TRUE(mapping_of(shared).place);
    munmap(shared, 8192);
}

}  // namespace
}  // namespace thalweg::shm
