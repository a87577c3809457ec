// Of a transport of two: what crosses hosts is served before every chunk that is copied inside the host.
#include "transport/composite/composite.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "transport/borrowed.h"
#include "transport/inproc/inproc.h"
#include "transport/shm_two_ports.h"

extern thread_local bool memory_lacks;  // shm_port.cpp

namespace thalweg {
namespace {

// Of rank 0: rank 1 is on its host, rank 2 on another. Who was polled is noted: `w`, the wire, or `i`,
// inside.
struct CompositePolls : testing::Test {
    static InprocOptions options() {
        InprocOptions options;
        options.eager_bytes = 1 << 20;
        return options;
    }
    void SetUp() override {
        CompositeParts parts;
        parts.inside = std::make_unique<Borrowed>(host.endpoint(0), [this] { return polls += 'i', false; });
        parts.between = std::make_unique<Borrowed>(network.endpoint(0), [this] {
            polls += 'w';
            return stirs-- > 0;
        });
        parts.is_near = std::make_shared<const std::vector<bool>>(std::vector{true, true, false});
        parts.junction = &junction;
        ASSERT_EQ(make_composite(std::move(parts), both), Status::ok);
    }
    // One poll: what came back.
    std::vector<Slot> poll() {
        polls.clear();
        Slot done[8];
        std::size_t count = 0;
        EXPECT_EQ(both->progress(done, count), Status::ok);
        return {done, done + count};
    }

    InprocNetwork host{3, options()}, network{3, options()};
    Junction junction;
    std::string polls;
    int stirs = 0;  // as many polls of the wire find something
    std::unique_ptr<Transport> both;
};

TEST_F(CompositePolls, TheWireIsPolledBeforeWhatIsInside) {
    poll();
    EXPECT_EQ(polls, "wi");
    stirs = 2;
    poll();
    EXPECT_EQ(polls, "wwwi") << "again as long as something was found";
    stirs = 1000;
    poll();
    EXPECT_EQ(polls, "wwwwi") << "a wire that is never at rest leaves copies their turn";
}

TEST_F(CompositePolls, WhatHasCrossedIsToldOfFirst) {
    char from_inside = ' ', from_wire = ' ';
    ASSERT_EQ(both->post_recv(2, 1, {}, &from_inside, 1), Status::ok);
    ASSERT_EQ(both->post_recv(5, 2, {}, &from_wire, 1), Status::ok);
    ASSERT_EQ(host.endpoint(1).post_send(0, 0, {}, "i", 1, SendMode::buffered), Status::ok);
    ASSERT_EQ(network.endpoint(2).post_send(0, 0, {}, "w", 1, SendMode::buffered), Status::ok);
    EXPECT_EQ(poll(), (std::vector<Slot>{5, 2}));
    EXPECT_EQ(from_inside, 'i');
    EXPECT_EQ(from_wire, 'w');
}

// Counts what is exposed. From then on, where that is wanted, memory lacks.
class Exposing final : public Borrowed {
  public:
    Exposing(Transport& inner, int& exposed, bool takes_memory)
        : Borrowed(inner, [] { return false; }), exposed_(exposed), takes_memory_(takes_memory) {
        capabilities_ = inner.capabilities();
        capabilities_.one_sided = true;
    }
    const Capabilities& capabilities() const override { return capabilities_; }
    Status expose(void*, std::size_t, Region& region, std::vector<std::byte>& key) override {
        key.resize(100);
        region = 0;
        ++exposed_;
        memory_lacks = takes_memory_;
        return Status::ok;
    }
    void conceal(Region) override { --exposed_; }

  private:
    Capabilities capabilities_;
    int& exposed_;
    const bool takes_memory_;
};

TEST(Composite, WithoutMemoryForAKeyNothingStaysExposed) {
    for (const bool takes_memory : {false, true}) {
        SCOPED_TRACE(takes_memory);
        InprocNetwork host{2, {}}, network{2, {}};
        Junction junction;
        int inside = 0, between = 0;
        CompositeParts parts;
        parts.inside = std::make_unique<Exposing>(host.endpoint(0), inside, false);
        parts.between = std::make_unique<Exposing>(network.endpoint(0), between, takes_memory);
        parts.is_near = std::make_shared<const std::vector<bool>>(std::vector{true, false});
        parts.junction = &junction;
        std::unique_ptr<Transport> both;
        ASSERT_EQ(make_composite(std::move(parts), both), Status::ok);
        char memory = 0;
        Region region = 0;
        std::vector<std::byte> key;
        const Status status = both->expose(&memory, 1, region, key);
        memory_lacks = false;
        EXPECT_EQ(status, takes_memory ? Status::out_of_memory : Status::ok);
        EXPECT_EQ(inside, takes_memory ? 0 : 1);
        EXPECT_EQ(between, takes_memory ? 0 : 1);
    }
}

class CompositeCopies : public TwoPorts {};

// Looked at from the wire, the copy of a large message gets on by one chunk at most from poll to poll.
TEST_F(CompositeCopies, StandStillForTheWireBehindEveryChunk) {
    meet("cma_get");
    if (std::strstr(ports[0]->description(), "rings only") != nullptr)
        GTEST_SKIP() << ports[0]->description();
    constexpr std::size_t bytes = 4 << 20;
    InprocNetwork network{2, {}};
    Junction junction;
    std::vector<std::uint64_t> left;  // to copy, at each poll of the wire
    CompositeParts parts;
    parts.inside = channel(0, 1);
    parts.between = std::make_unique<Borrowed>(network.endpoint(0), [&] {
        left.push_back(ports[0]->copies_left());
        return false;
    });
    parts.is_near = std::make_shared<const std::vector<bool>>(std::vector{true, true});
    parts.junction = &junction;
    std::unique_ptr<Transport> both;
    ASSERT_EQ(make_composite(std::move(parts), both), Status::ok);
    const auto from = channel(1, 1);
    for (const bool busy : {false, true}) {
        SCOPED_TRACE(busy ? "the wire is busy" : "the wire is idle");
        ports[0]->set_wire_ns(busy ? 1'000'000'000 : 0);
        const std::size_t chunk = busy ? ShmOptions().chunk_bytes : ShmOptions().longest_chunk_bytes;
        const std::string sent = bytes_of(bytes, busy);
        std::string received(bytes, ' ');
        left.clear();
        ASSERT_EQ(both->post_recv(0, 1, {busy, 0}, received.data(), bytes), Status::ok);
        ASSERT_EQ(from->post_send(0, 0, {busy, 0}, sent.data(), bytes, SendMode::buffered), Status::ok);
        ASSERT_EQ(take(*both, *from, 1), Status::ok);
        ASSERT_EQ(take(*from, *both, 1), Status::ok);
        EXPECT_TRUE(received == sent);
        std::size_t chunks = 0;
        std::uint64_t most = 0;
        for (std::size_t i = 1; i < left.size(); ++i) {
            if (left[i] >= left[i - 1]) continue;
            ++chunks;
            most = std::max(most, left[i - 1] - left[i]);
        }
        EXPECT_LE(most, chunk);
        // The first one is copied in the poll that finds the message; behind the last one nobody may have
        // polled.
        EXPECT_GE(chunks, bytes / chunk - 2);
    }
}

}  // namespace
}  // namespace thalweg
