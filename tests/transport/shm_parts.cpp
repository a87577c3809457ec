// The parts of the shm transport that need no second process: rings, matching, elements.
// shm_choice.cpp has the choice of protocols.
#include <gtest/gtest.h>
#include <sys/uio.h>

#include <array>
#include <cstring>
#include <memory>
#include <set>
#include <vector>

#include "transport/composite/wire_meter.h"
#include "transport/shm/elements.h"
#include "transport/shm/ready.h"
#include "transport/shm/request.h"
#include "transport/shm/ring.h"

namespace thalweg::shm {
namespace {

struct RingMemory {
    explicit RingMemory(std::size_t bytes = ring_bytes) : data(bytes) {}
    Ring ring() { return {&control, data.data(), data.size()}; }

    RingControl control;
    std::vector<std::byte> data;
};

void carry_frames(std::size_t bytes);

Frame frame_with(std::uint32_t payload, std::uint64_t number) {
    Frame frame;
    frame.kind = FrameKind::eager;
    frame.payload = payload;
    frame.bytes = number;
    return frame;
}

TEST(Ring, FramesComeOutAsTheyWentInRoundAfterRound) {
    for (const std::size_t bytes : {ring_bytes, 2 * ring_bytes, most_ring_bytes}) {
        EXPECT_TRUE(is_length_of_ring(bytes));
        carry_frames(bytes);
    }
    for (const std::uint64_t bytes : {std::uint64_t{0}, std::uint64_t{ring_bytes / 2},
                                      std::uint64_t{3 * ring_bytes}, std::uint64_t{2 * most_ring_bytes}})
        EXPECT_FALSE(is_length_of_ring(bytes));
}

void carry_frames(std::size_t bytes) {
    const auto ring = std::make_unique<RingMemory>(bytes);
    RingWriter writer(ring->ring());
    RingReader reader(ring->ring());
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
    const auto ring = std::make_unique<RingMemory>();
    RingWriter writer(ring->ring());
    RingReader reader(ring->ring());
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
        const auto ring = std::make_unique<RingMemory>();
        RingReader reader(ring->ring());
        ring->control.tail.store(tail);
        EXPECT_EQ(reader.front(frame, payload), Read::nonsense) << tail;
    }
    const auto ring = std::make_unique<RingMemory>();
    RingReader reader(ring->ring());
    const Frame longer = frame_with(65, 0);  // than what was written
    std::memcpy(ring->data.data(), &longer, sizeof longer);
    ring->control.tail.store(128);
    EXPECT_EQ(reader.front(frame, payload), Read::nonsense);
    // A skip at the very beginning would never end.
    const Frame skip;
    std::memcpy(ring->data.data(), &skip, sizeof skip);
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

// What a frame says of a peer's elements gives the same stretches of memory as the elements themselves.
TEST(Requests, EarlyMessagesOfEverySizeHaveTheirOwnRoom) {
    Requests requests;
    constexpr std::array<std::size_t, 7> sizes{0, 1, 64, 65, 1000, payload_bytes - 1, payload_bytes};
    for (const std::size_t bytes : sizes) requests.expect(bytes, true);
    EXPECT_GE(requests.size(), sizes.size() * Requests::most_ahead);
    const std::size_t there = requests.size();
    // As many as are expected, and as many again.
    for (int round = 0; round < 3; ++round) {
        std::vector<Request*> early;
        for (std::size_t i = 0; i < 2 * Requests::most_ahead * sizes.size(); ++i) {
            Request& request = requests.take(Request::Kind::early);
            request.bytes = sizes[i % sizes.size()];
            std::memset(requests.copy_of(request), static_cast<int>(i + 1), request.bytes);
            early.push_back(&request);
            if (i + 1 == Requests::most_ahead * sizes.size() && round == 0) {
                EXPECT_EQ(requests.size(), there);
            }
        }
        for (std::size_t i = 0; i < early.size(); ++i)
            for (std::size_t at = 0; at < early[i]->bytes; ++at)
                ASSERT_EQ(early[i]->copy[at], static_cast<std::byte>(i + 1)) << "message " << i;
        // The last ones stay, as those of a port that ends.
        for (std::size_t i = 0; i < early.size() - (round == 2 ? 5 : 0); ++i) requests.free(*early[i]);
    }
    for (const std::size_t bytes : sizes) requests.forgo(bytes, true);
    EXPECT_EQ(requests.reserved(), 0u);
}

TEST(Readies, TheOldestOfItsNameAndSize) {
    Readies readies;
    Frame frame;
    for (std::uint32_t i = 0; i < Readies::most; ++i) {
        frame.operation = i % 4;
        frame.bytes = 100;
        frame.cookie = i + 1;
        ASSERT_TRUE(readies.add(frame));
    }
    EXPECT_FALSE(readies.add(frame));
    EXPECT_FALSE(readies.has(0, 4, 0));
    EXPECT_EQ(readies.take(0, 3, 0, 100), 4u);
    EXPECT_EQ(readies.take(0, 3, 0, 99), 0u) << "and is gone";
    EXPECT_EQ(readies.take(0, 3, 0, 100), 12u);
    EXPECT_EQ(readies.take(1, 3, 0, 100), 0u);
    readies.forget(1);
    EXPECT_EQ(readies.take(0, 0, 0, 100), 5u);
    EXPECT_EQ(readies.any_of(1), 0u);
    while (const std::uint64_t receive = readies.any_of(0)) {
        EXPECT_TRUE(readies.knows(receive));
        readies.forget(receive);
        EXPECT_FALSE(readies.knows(receive));
    }
    EXPECT_TRUE(readies.empty());
}

TEST(EarlyRoom, WhatIsExpectedIsKeptAndUsedAgain) {
    EarlyRoom room;
    constexpr std::size_t count = 40;  // more than are kept unasked
    room.expect(payload_bytes, count);
    const auto take_all = [&room] {
        std::set<std::byte*> blocks;
        for (std::size_t i = 0; i < count; ++i) blocks.insert(room.take(payload_bytes));
        return blocks;
    };
    const std::set<std::byte*> first = take_all();
    EXPECT_EQ(first.size(), count);
    for (std::byte* const block : first) room.give_back(block, payload_bytes);
    EXPECT_EQ(take_all(), first);
    for (std::byte* const block : first) room.give_back(block, payload_bytes);
    room.forgo(payload_bytes, count);
}

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

// Behind MPI_BOTTOM elements count from no address, and an address of 0 is none to a peer.
TEST(Elements, HaveAnAddressBehindNone) {
    std::vector<std::byte> field(1 << 20);
    const auto first = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(field.data()));
    const StandIn whole{nullptr, 100'000,
                        std::make_shared<const Layout>(Layout::strided(50, 2000, 2500, 200'000, first)),
                        nullptr, false};
    const StandInPart part{&whole, 0};
    ASSERT_TRUE(reachable(part));
    Frame frame;
    const WrittenElements told = written(part);
    frame.address = told.address;
    frame.payload = sizeof told;
    RemotePlace place;
    ASSERT_TRUE(read_place(frame, reinterpret_cast<const std::byte*>(&told), whole.bytes, place));
    std::array<iovec, 50> there;
    std::uint64_t bytes = whole.bytes;
    ASSERT_EQ(stretches(place.elements->layout, place.elements->address, 0, bytes, there), there.size());
    EXPECT_EQ(there[0].iov_base, field.data());
    EXPECT_EQ(there[49].iov_base, field.data() + 49 * 2500);
}

// An extent that is no distance between addresses is legal where there is one element.
TEST(Elements, AreNotDescribedByNumbersThatWouldBeRefused) {
    std::vector<std::byte> field(1 << 20);
    for (const std::int64_t extent :
         {std::int64_t{1} << 40, std::int64_t{1} << 55, std::int64_t{1} << 60, -(std::int64_t{1} << 60)}) {
        const StandIn whole{nullptr, 100'000,
                            std::make_shared<const Layout>(Layout::strided(50, 2000, 2500, extent)),
                            field.data(), false};
        for (const std::uint64_t begin : {0u, 30'000u}) {
            const StandInPart part{&whole, begin};
            const bool taken = read_elements(written(part), whole.bytes - begin).has_value();
            EXPECT_EQ(taken, extent == std::int64_t{1} << 40);
            EXPECT_EQ(reachable(part), taken);
        }
    }
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

}  // namespace
}  // namespace thalweg::shm
