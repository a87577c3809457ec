// What exchanges took with each peer, as the report tells it.
#include "transport/peer_account.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "transport/shm/protocol.h"

extern thread_local std::size_t memory_asked_bytes;  // shm_port.cpp

namespace thalweg {
namespace {

constexpr WayTaken reads{Way::cma_get, "copies"}, writes{Way::cma_put, "copies"}, hides{Way::cma_get, "wire"};

TEST(PeerAccount, TheWaysInsideAreTheProtocols) {
    for (std::size_t i = 0; i < shm::protocols.size(); ++i)
        EXPECT_STREQ(name_of(static_cast<Way>(i)), shm::protocols[i]->name);
}

TEST(PeerAccount, WhatIsInUseIsThatOfTheLargestMessages) {
    PeerAccount account;
    EXPECT_STREQ(account.figures().in_use.because, "");
    account.takes(3, reads);
    account.takes(0, {Way::eager, "short"});
    EXPECT_EQ(account.figures().in_use.way, Way::cma_get);
    EXPECT_EQ(account.figures().switches, 0u);
    account.takes(3, hides);  // another reason is no switch
    EXPECT_EQ(account.figures().switches, 0u);
    EXPECT_STREQ(account.figures().in_use.because, "wire");
    account.takes(3, writes);
    account.takes(3, writes);
    account.takes(3, reads);
    EXPECT_EQ(account.figures().switches, 2u);
}

TEST(PeerAccount, MessagesOfNoBytesAreSignals) {
    PeerAccount account;
    account.sent(Way::put, 0);
    account.received(Way::eager, 0);
    EXPECT_EQ(account.figures().messages(), 0u);
    account.sent(Way::put, 3);
    account.received(Way::eager, 4);
    EXPECT_EQ(account.figures().messages(), 2u);
    EXPECT_EQ(account.figures().bytes(), 7u);
}

// Every second rank is on this host; the ranks beyond the first share an account per kind of place.
TEST(PeerAccount, OnlySoManyPeersAreToldApart) {
    constexpr int size = 200, apart = PeerAccounts::most_apart;
    std::vector<bool> is_near(size);
    for (int rank = 0; rank < size; rank += 2) is_near[static_cast<std::size_t>(rank)] = true;
    PeerAccounts accounts(is_near);
    for (int time = 0; time < 2; ++time)
        for (int rank = 0; rank < size; ++rank) accounts.of(rank).sent(Way::eager, 1);
    const std::vector<PeerAccounts::Row> rows = accounts.rows();
    ASSERT_EQ(rows.size(), static_cast<std::size_t>(apart) + 2);
    for (int rank = 0; rank < apart; ++rank) {
        const PeerAccounts::Row& row = rows[static_cast<std::size_t>(rank)];
        EXPECT_EQ(row.peer, rank);
        EXPECT_EQ(row.inside, rank % 2 == 0);
        EXPECT_EQ(row.figures.bytes(), 2u);
    }
    for (const std::size_t shared : {rows.size() - 2, rows.size() - 1}) {
        EXPECT_EQ(rows[shared].peer, -1);
        EXPECT_EQ(rows[shared].peers, static_cast<std::uint64_t>(size - apart) / 2);
        EXPECT_EQ(rows[shared].figures.bytes(), static_cast<std::uint64_t>(size - apart));
    }
    EXPECT_NE(rows[rows.size() - 2].inside, rows[rows.size() - 1].inside);
}

// A thousand communicators of ten thousand ranks are nothing out of the way.
TEST(PeerAccount, OfEachRankLittleIsKept) {
    constexpr std::size_t ranks = 1'000'000;
    std::vector<bool> is_near(ranks);
    const std::size_t before = memory_asked_bytes;
    const PeerAccounts accounts(std::move(is_near));
    EXPECT_GT(memory_asked_bytes, before) << "the count sees nothing";
    EXPECT_LT(memory_asked_bytes - before, 2 * ranks);
}

TEST(PeerAccount, CommunicatorsThatAreGoneAreAddedUp) {
    PeerAccounts all({});
    for (int i = 0; i < 3; ++i) {
        PeerAccounts one({true, false, true});
        one.of(1).sent(Way::rendezvous_put, 100);
        one.of(2).received(Way::coop, 10);
        one.of(2).copied(500'000'000);
        one.of(2).takes(1, reads);
        one.of(2).takes(1, writes);
        one.measures_wire();
        one.wire().posted(WireMeter::out, 100, 1000);
        one.wire().completed(WireMeter::out, 100, 1000 + 7);
        all.fold(one, 2000);
    }
    EXPECT_TRUE(all.wire_is_measured());
    EXPECT_EQ(all.wire_ns(3000), 21u);
    const std::vector<PeerAccounts::Row> rows = all.rows();
    ASSERT_EQ(rows.size(), 2u);
    EXPECT_FALSE(rows[0].inside);
    EXPECT_EQ(rows[0].peers, 3u);
    EXPECT_EQ(rows[0].figures.sent[static_cast<std::size_t>(Way::rendezvous_put)].bytes, 300u);
    EXPECT_TRUE(rows[1].inside);
    EXPECT_EQ(rows[1].figures.received[static_cast<std::size_t>(Way::coop)].messages, 3u);
    EXPECT_EQ(rows[1].figures.switches, 3u);
    EXPECT_EQ(rows[1].figures.copying_ns, 1'500'000'000u);
    EXPECT_STREQ(rows[1].figures.in_use.because, "");
}

TEST(PeerAccount, ThreadsCountAtTheSameTime) {
    constexpr int times = 20000, size = 80;
    PeerAccounts accounts(std::vector<bool>(size, true));
    const auto count = [&accounts] {
        for (int i = 0; i < times; ++i) accounts.of(i % size).received(Way::eager, 2);
    };
    std::thread other(count);
    count();
    other.join();
    std::uint64_t bytes = 0, peers = 0;
    for (const PeerAccounts::Row& row : accounts.rows()) bytes += row.figures.bytes(), peers += row.peers;
    EXPECT_EQ(bytes, 4u * times);
    EXPECT_EQ(peers, static_cast<std::uint64_t>(size));
}

}  // namespace
}  // namespace thalweg
