// Elements are packed when their message is posted and unpacked when it has come, each face for itself.
#include "transport/packing/packing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "transport/borrowed.h"
#include "transport/composite/composite.h"
#include "transport/inproc/inproc.h"

namespace thalweg {
namespace {

using Bytes = std::vector<std::byte>;

// Rows of 8 bytes of every 12, and the memory that stands for them.
struct Face {
    explicit Face(std::size_t rows, std::byte value)
        : bytes(8 * rows), elements(12 * rows, gap), packed(bytes, stale) {
        fill(value);
    }
    StandIn stand_in() {
        const auto rows = static_cast<std::uint64_t>(bytes / 8);
        return {packed.data(), bytes,
                std::make_shared<const Layout>(
                    Layout::strided(rows, 8, 12, static_cast<std::int64_t>(12 * rows))),
                elements.data(), false};
    }
    void fill(std::byte value) {
        for (std::size_t i = 0; i < elements.size(); ++i)
            if (i % 12 < 8) elements[i] = value;
    }
    // The first `count` bytes of the packed form are `value`, the others `rest`, and the gaps untouched.
    bool holds(std::byte value, std::size_t count, std::byte rest = {}) const {
        for (std::size_t i = 0; i < elements.size(); ++i) {
            const std::byte right = i % 12 >= 8 ? gap : i / 12 * 8 + i % 12 < count ? value : rest;
            if (elements[i] != right) return false;
        }
        return true;
    }
    bool holds(std::byte value) const { return holds(value, bytes); }

    static constexpr std::byte gap{0x5a}, stale{0x77};
    std::size_t bytes;
    Bytes elements, packed;
};

constexpr std::byte one{1}, two{2}, three{3}, none{0};

// Of rank 0 and two others, which see runs of memory.
struct PackedFaces : testing::Test {
    static InprocOptions options() {
        InprocOptions options;
        options.eager_bytes = 1 << 20;
        options.wakeup_descriptor = true;
        return options;
    }
    InprocNetwork network{3, options()};
    int polls = 0;
    std::unique_ptr<Transport> packing =
        with_packing(std::make_unique<Borrowed>(network.endpoint(0), [this] { return ++polls, false; }));

    // One poll of rank 0: what came back.
    std::vector<Slot> poll() {
        Slot done[8];
        std::size_t count = 0;
        EXPECT_EQ(packing->progress(done, count), Status::ok);
        return {done, done + count};
    }
    static std::size_t poll(Transport& transport) {
        Slot done[8];
        std::size_t count = 0;
        EXPECT_EQ(transport.progress(done, count), Status::ok);
        return count;
    }
    void send(Transport& from, const Bytes& bytes, std::uint32_t number = 0) {
        ASSERT_EQ(from.post_send(0, 0, {number, 0, true}, bytes.data(), bytes.size(), SendMode::buffered),
                  Status::ok);
    }
};

TEST_F(PackedFaces, AFaceIsOnItsWayBeforeTheNextOneIsPacked) {
    Face first(100, one), second(100, two);
    ASSERT_TRUE(packing->capabilities().stand_ins);
    ASSERT_EQ(packing->stand_in(first.stand_in()), Status::ok);
    ASSERT_EQ(packing->stand_in(second.stand_in()), Status::ok);
    Bytes received[2] = {Bytes(first.bytes), Bytes(second.bytes)};
    for (int peer : {1, 2})
        ASSERT_EQ(network.endpoint(peer).post_recv(0, 0, {0, 0}, received[peer - 1].data(), first.bytes),
                  Status::ok);
    ASSERT_EQ(packing->post_send(0, 1, {0, 0}, first.packed.data(), first.bytes, SendMode::buffered),
              Status::ok);
    EXPECT_EQ(second.packed, Bytes(second.bytes, Face::stale)) << "packed before it is posted";
    EXPECT_EQ(poll(network.endpoint(1)), 1u) << "the first one has come";
    EXPECT_EQ(received[0], Bytes(first.bytes, one));
    second.fill(three);
    ASSERT_EQ(packing->post_send(1, 2, {0, 0}, second.packed.data(), second.bytes, SendMode::buffered),
              Status::ok);
    EXPECT_EQ(poll(network.endpoint(2)), 1u);
    EXPECT_EQ(received[1], Bytes(second.bytes, three));
    EXPECT_EQ(poll().size(), 2u);
}

TEST_F(PackedFaces, AFaceIsInItsPlaceWhileAnotherIsOnItsWay) {
    Face first(100, none), second(100, none);
    Slot slot = 0;
    for (Face* face : {&first, &second}) {
        ASSERT_EQ(packing->stand_in(face->stand_in()), Status::ok);
        ASSERT_EQ(
            packing->post_recv(slot, 1 + static_cast<int>(slot), {0, 0}, face->packed.data(), face->bytes),
            Status::ok);
        ++slot;
    }
    send(network.endpoint(2), Bytes(second.bytes, two));
    EXPECT_EQ(poll(), std::vector<Slot>{1});
    EXPECT_TRUE(second.holds(two));
    EXPECT_TRUE(first.holds(none));
    EXPECT_TRUE(poll().empty());
    send(network.endpoint(1), Bytes(first.bytes, one));
    EXPECT_EQ(poll(), std::vector<Slot>{0});
    EXPECT_TRUE(first.holds(one));
}

// 256 KiB between two looks at the wire; until then nobody may sleep.
TEST_F(PackedFaces, ALongFaceIsUnpackedInParts) {
    constexpr std::size_t rows = 80 * 1024;
    Face face(rows, none);
    ASSERT_EQ(packing->stand_in(face.stand_in()), Status::ok);
    ASSERT_EQ(packing->post_recv(4, 1, {0, 0}, face.packed.data(), face.bytes), Status::ok);
    EXPECT_EQ(packing->arm(), Status::ok);
    send(network.endpoint(1), Bytes(face.bytes, one));
    for (std::size_t unpacked = 256 * 1024; unpacked < face.bytes; unpacked += 256 * 1024) {
        EXPECT_TRUE(poll().empty());
        EXPECT_TRUE(packing->stirred());
        EXPECT_TRUE(packing->has_work());
        EXPECT_EQ(packing->arm(), Status::in_progress);
        EXPECT_TRUE(face.holds(one, unpacked));
    }
    EXPECT_EQ(poll(), std::vector<Slot>{4});
    EXPECT_TRUE(face.holds(one));
    EXPECT_FALSE(packing->has_work());
    EXPECT_EQ(packing->arm(), Status::ok);
}

// Nothing polls while an engine posts one message after another.
TEST_F(PackedFaces, TheWireIsLookedAtWhileManyFacesArePacked) {
    constexpr std::size_t rows = 16 * 1024, faces = 6;
    Face small(10, none);
    ASSERT_EQ(packing->stand_in(small.stand_in()), Status::ok);
    ASSERT_EQ(packing->post_recv(100, 1, {7, 0}, small.packed.data(), small.bytes), Status::ok);
    send(network.endpoint(1), Bytes(small.bytes, three), 7);
    std::vector<Face> all;
    for (std::size_t i = 0; i < faces; ++i) all.emplace_back(rows, one);
    for (Face& face : all) ASSERT_EQ(packing->stand_in(face.stand_in()), Status::ok);
    for (Slot slot = 0; slot < faces; ++slot)
        ASSERT_EQ(packing->post_send(slot, 2, {slot, 0}, all[slot].packed.data(), all[slot].bytes,
                                     SendMode::buffered),
                  Status::ok);
    EXPECT_EQ(polls, 2) << "of 768 KiB, after 256 and after 512";
    EXPECT_EQ(packing->arm(), Status::in_progress) << "some are complete";
    std::vector<Slot> back;
    for (int i = 0; i < 3; ++i)
        for (const Slot slot : poll()) back.push_back(slot);
    std::sort(back.begin(), back.end());
    EXPECT_EQ(back, (std::vector<Slot>{0, 1, 2, 3, 4, 5, 100}));
    EXPECT_TRUE(small.holds(three));
    EXPECT_EQ(packing->arm(), Status::ok);
}

// Of a message that is shorter than its receive the rest stays as it is; a part of a face is one of its own.
TEST_F(PackedFaces, WhatDidNotComeStaysAsItIs) {
    Face face(100, none);
    ASSERT_EQ(packing->stand_in(face.stand_in()), Status::ok);
    ASSERT_EQ(packing->post_recv(0, 1, {0, 0, true}, face.packed.data(), face.bytes), Status::ok);
    send(network.endpoint(1), Bytes(300, one));
    EXPECT_EQ(poll(), std::vector<Slot>{0});
    EXPECT_EQ(packing->received_bytes(0), 300u);
    EXPECT_TRUE(face.holds(one, 300, none));
    ASSERT_EQ(packing->post_recv(0, 1, {1, 0, true}, face.packed.data() + 300, 500), Status::ok);
    send(network.endpoint(1), Bytes(), 1);
    EXPECT_EQ(poll(), std::vector<Slot>{0});
    EXPECT_TRUE(face.holds(one, 300, none));
    ASSERT_EQ(packing->post_recv(0, 1, {2, 0}, face.packed.data() + 300, 500), Status::ok);
    send(network.endpoint(1), Bytes(500, one), 2);
    EXPECT_EQ(poll(), std::vector<Slot>{0});
    EXPECT_TRUE(face.holds(one));
}

// Memory that stands for itself, or for nothing any more.
TEST_F(PackedFaces, WhatIsOneRunIsLeftAlone) {
    Bytes run(64, one), packed(64, Face::stale), received(64);
    const auto layout = std::make_shared<const Layout>(Layout::contiguous(64));
    EXPECT_EQ(packing->stand_in({run.data(), 64, layout, run.data(), true}), Status::unsupported);
    ASSERT_EQ(packing->stand_in({packed.data(), 64, layout, run.data(), false}), Status::ok);
    ASSERT_EQ(packing->post_send(0, 1, {0, 0}, packed.data(), 64, SendMode::buffered), Status::ok);
    packing->end_stand_in(packed.data());
    ASSERT_EQ(packing->post_send(1, 1, {1, 0}, packed.data(), 64, SendMode::buffered), Status::ok);
    for (const std::byte expected : {one, Face::stale}) {
        const std::uint32_t number = expected == one ? 0 : 1;
        ASSERT_EQ(network.endpoint(1).post_recv(0, 0, {number, 0}, received.data(), 64), Status::ok);
        EXPECT_EQ(poll(network.endpoint(1)), 1u);
        EXPECT_EQ(received, Bytes(64, expected));
    }
    EXPECT_EQ(packed, Bytes(64, Face::stale));
}

// Two transports that are one: what crosses hosts is on the wire while further faces are packed.
TEST_F(PackedFaces, BetweenHostsOfSeveralRanksTheWireIsLookedAtToo) {
    constexpr std::size_t rows = 32 * 1024, faces = 3;
    InprocNetwork host{3, options()};
    Junction junction;
    int looks = 0;
    CompositeParts parts;
    parts.inside = with_packing(std::make_unique<Borrowed>(host.endpoint(0), [] { return false; }));
    parts.between = std::make_unique<Borrowed>(network.endpoint(0), [&] { return ++looks, false; });
    parts.is_near = std::make_shared<const std::vector<bool>>(std::vector{true, false, false});
    parts.junction = &junction;
    std::unique_ptr<Transport> both;
    ASSERT_EQ(make_composite(std::move(parts), both), Status::ok);
    Face small(10, none);
    ASSERT_EQ(both->stand_in(small.stand_in()), Status::ok);
    ASSERT_EQ(both->post_recv(9, 1, {7, 0}, small.packed.data(), small.bytes), Status::ok);
    send(network.endpoint(1), Bytes(small.bytes, three), 7);
    std::vector<Face> all;
    for (std::size_t i = 0; i < faces; ++i) all.emplace_back(rows, one);
    for (Face& face : all) ASSERT_EQ(both->stand_in(face.stand_in()), Status::ok);
    for (Slot slot = 0; slot < faces; ++slot)
        ASSERT_EQ(
            both->post_send(slot, 2, {slot, 0}, all[slot].packed.data(), all[slot].bytes, SendMode::buffered),
            Status::ok);
    EXPECT_EQ(looks, 2) << "of three faces of 256 KiB, after the first and after the second";
    EXPECT_TRUE(both->has_work());
    EXPECT_EQ(both->arm(), Status::in_progress) << "some are complete";
    EXPECT_EQ(both->arm_inside(), Status::in_progress);
    std::vector<Slot> back;
    for (int i = 0; i < 4; ++i) {
        Slot done[3];
        std::size_t count = 0;
        ASSERT_EQ(both->progress(done, count), Status::ok);
        back.insert(back.end(), done, done + count);
    }
    std::sort(back.begin(), back.end());
    EXPECT_EQ(back, (std::vector<Slot>{0, 1, 2, 9}));
    EXPECT_TRUE(small.holds(three));
    EXPECT_FALSE(both->has_work());
    EXPECT_EQ(both->arm(), Status::ok);
}

}  // namespace
}  // namespace thalweg
