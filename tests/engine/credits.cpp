// Credits: what a peer has been sent and has not shown to have received stays bounded, whatever it does.
#include "engine/credits.h"

#include <gtest/gtest.h>

#include "engine/group.h"
#include "schedule/builder.h"

namespace thalweg {
namespace {

using test::Bytes;
using test::Group;
using test::GroupOptions;

std::shared_ptr<const Schedule> one_message(int rank, std::uint64_t bytes) {
    Builder builder(rank, 2);
    if (rank == 0)
        builder.send(1, {Buffer::out, 0, bytes});
    else
        builder.recv(0, {Buffer::out, 0, bytes});
    return std::make_shared<const Schedule>(std::move(builder).finish());
}

// Rank 0 sends operation after operation while rank 1 does nothing at all: it may complete only so many.
void sleep_through(std::uint64_t bytes, std::uint64_t credit_bytes) {
    GroupOptions options;
    options.network.eager_bytes = 1 << 20;
    options.limits.credit_bytes = credit_bytes;
    Group group(2, options);
    constexpr int operations = 3000;
    Bytes sent(bytes), received(bytes, 1);
    Execution send(one_message(0, bytes), group.channel(0));
    Execution recv(one_message(1, bytes), group.channel(1));
    int completed = 0, synchronous = 0;
    for (int polls = 0; polls < 100 * operations && completed < operations; ++polls) {
        if (!send.running()) {
            ASSERT_EQ(send.start({nullptr, sent.data(), {}}, completed), Status::ok);
        }
        if (send.advance() == Status::ok) ++completed;
    }
    ASSERT_LT(completed, operations) << "never blocked";
    const std::uint64_t bound = credit_bytes + bytes + message_overhead_bytes;
    EXPECT_LE(group.channel(0)->credits().largest_owed(), bound);
    EXPECT_LE(group.network().largest_unexpected_bytes(1), bound);
    // Not earlier than needed either: at least a quarter of the credit was used.
    EXPECT_GE((completed + 1) * (bytes + message_overhead_bytes), credit_bytes / 4);
    // Now the peer wakes up; everything flows, and the bound still holds.
    for (int received_count = 0; received_count < operations;) {
        if (!recv.running()) {
            ASSERT_EQ(recv.start({nullptr, received.data(), {}}, received_count), Status::ok);
        }
        if (recv.advance() == Status::ok) ++received_count;
        if (!send.running() && completed < operations) {
            ASSERT_EQ(send.start({nullptr, sent.data(), {}}, completed), Status::ok);
        }
        if (send.running()) {
            const bool waits = send.advance() != Status::ok;
            completed += !waits;
            synchronous += waits;
        }
    }
    EXPECT_LE(group.channel(0)->credits().largest_owed(), bound);
    EXPECT_LE(group.network().largest_unexpected_bytes(1), bound);
    EXPECT_GT(synchronous, 0);
}

TEST(credits, a_sleeping_peer_bounds_what_it_is_sent) {
    sleep_through(64 << 10, 1 << 20);
    sleep_through(1000, 1 << 16);
    sleep_through(0, 1 << 16);
    sleep_through(1, 1 << 16);
    sleep_through(5000, 1 << 10);  // every message is larger than the credit
}

// Where a large synchronous message asks, and those behind it overtake it, messages of no bytes ask.
TEST(credits, what_would_be_overtaken_does_not_ask) {
    for (const bool receipts : {true, false})
        for (const std::uint64_t bytes : {64u << 10, 128u << 10, 384u << 10}) {
            GroupOptions options;
            options.network.eager_bytes = 1 << 20;
            options.network.overtakes = true;
            Group group(2, options);
            std::vector<std::unique_ptr<Execution>> executions;
            for (int rank : {0, 1}) {
                Builder builder(rank, 2);
                for (std::uint64_t i = 0; i < 2; ++i)
                    rank == 0 ? builder.send(1, {Buffer::out, i * bytes, bytes})
                              : builder.recv(0, {Buffer::out, i * bytes, bytes});
                auto schedule = std::make_shared<const Schedule>(std::move(builder).finish());
                if (receipts) schedule = suited_to(*group.channel(rank), std::move(schedule));
                executions.push_back(std::make_unique<Execution>(std::move(schedule), group.channel(rank)));
            }
            Bytes sent(2 * bytes), received(2 * bytes);
            for (std::uint32_t operation = 0; operation < 50; ++operation) {
                ASSERT_EQ(executions[0]->start({nullptr, sent.data(), {}}, operation), Status::ok);
                ASSERT_EQ(executions[1]->start({nullptr, received.data(), {}}, operation), Status::ok);
                ASSERT_EQ(group.run({executions[0].get(), executions[1].get()}), "");
            }
            EXPECT_GT(group.channel(0)->credits().acknowledgements(), 0u);
            EXPECT_LE(group.channel(0)->credits().largest_owed(), options.limits.credit_bytes + bytes);
            EXPECT_EQ(group.network().synchronous_bytes(0) == 0, receipts) << bytes;
        }
}

TEST(credits, small_operations_are_seldom_synchronous) {
    CreditLedger ledger(1 << 20);
    Credit& credit = *ledger.account(3);
    int synchronous = 0;
    constexpr int messages = 100000;
    for (int i = 0; i < messages; ++i) {
        const std::uint64_t cost = 8 + message_overhead_bytes;
        const Admission admission = ledger.admit(credit, cost, Turn::late, true);
        ASSERT_NE(admission, Admission::hold);
        const std::uint64_t mark = ledger.post(credit, cost, admission == Admission::synchronous);
        if (admission != Admission::synchronous) continue;
        ++synchronous;
        ledger.acknowledge(credit, mark);
    }
    EXPECT_LE(synchronous, messages / 1900);
    EXPECT_GE(synchronous, messages / 2100);
}

std::vector<Turn> turns_of(const std::vector<std::uint64_t>& messages, std::uint64_t credit_bytes) {
    Turns turns(credit_bytes);
    for (const std::uint64_t bytes : messages) turns.add(bytes);
    std::vector<Turn> each;
    for (const std::uint64_t bytes : messages) each.push_back(turns.next(bytes));
    return each;
}

TEST(credits, what_has_little_behind_it_is_late) {
    constexpr auto early = Turn::early, late = Turn::late, confirmed = Turn::confirmed;
    using Each = std::vector<Turn>;
    EXPECT_EQ(turns_of({100}, 400), Each({late}));
    EXPECT_EQ(turns_of({1000}, 400), Each({late}));
    EXPECT_EQ(turns_of({10, 10}, 400), Each({early, late}));
    EXPECT_EQ(turns_of({10, 10, 10}, 400), Each({early, late, late}));
    EXPECT_EQ(turns_of({50, 50, 50, 50, 50}, 400), Each({early, early, early, late, late}));
    EXPECT_EQ(turns_of({0, 0, 0}, 400), Each({early, late, late}));
    EXPECT_EQ(turns_of({50, 50, 0}, 400), Each({confirmed, confirmed, early}));
    EXPECT_EQ(turns_of({200, 0, 200, 0}, 400), Each({confirmed, early, confirmed, early}));
}

// A ring sends as many pieces to its neighbour in every operation: whatever was sent before, the pieces that
// ask have a quarter of the credit behind them, or are the first.
TEST(credits, a_piece_that_asks_is_not_among_the_last) {
    constexpr std::uint64_t piece = 32 << 10, credit_bytes = 2 << 20;
    const std::vector<std::uint64_t> pieces(96, piece);
    const std::vector<Turn> turns = turns_of(pieces, credit_bytes);
    for (std::uint64_t before = 0; before <= credit_bytes / 2; before += 1000) {
        CreditLedger ledger(credit_bytes);
        Credit& credit = *ledger.account(0);
        ledger.post(credit, before, false);
        int synchronous = 0;
        for (std::size_t i = 0; i < pieces.size(); ++i) {
            const std::uint64_t cost = piece + message_overhead_bytes;
            const Admission admission = ledger.admit(credit, cost, turns[i], true);
            const std::uint64_t mark = ledger.post(credit, cost, admission == Admission::synchronous);
            if (admission != Admission::synchronous) continue;
            ++synchronous;
            ledger.acknowledge(credit, mark);
            EXPECT_GE((pieces.size() - 1 - i) * piece, credit_bytes / 4) << before;
        }
        EXPECT_GE(synchronous, 4) << before;
    }
}

// Of the messages of one operation an early one is made synchronous, so that the operation need not wait at
// its end.
TEST(credits, late_messages_to_a_peer_are_spared) {
    CreditLedger ledger(1 << 20);
    Credit& credit = *ledger.account(0);
    ledger.post(credit, (1 << 20) / 3, false);
    EXPECT_EQ(ledger.admit(credit, 1000, Turn::late, true), Admission::buffered);
    EXPECT_EQ(ledger.admit(credit, 1000, Turn::early, true), Admission::synchronous);
    ledger.post(credit, (1 << 20) / 3, false);
    EXPECT_EQ(ledger.admit(credit, 1000, Turn::late, true), Admission::synchronous);
    EXPECT_EQ(ledger.admit(credit, 1000, Turn::confirmed, true), Admission::buffered);
    EXPECT_EQ(ledger.admit(credit, 1 << 20, Turn::confirmed, true), Admission::synchronous);
}

TEST(credits, a_message_without_room_waits_for_the_acknowledgement) {
    CreditLedger ledger(1000);
    Credit& credit = *ledger.account(0);
    EXPECT_EQ(ledger.account(0), &credit);
    EXPECT_EQ(ledger.admit(credit, 900, Turn::early, false), Admission::synchronous);
    const std::uint64_t mark = ledger.post(credit, 900, true);
    EXPECT_EQ(ledger.admit(credit, 200, Turn::early, false), Admission::hold);
    EXPECT_EQ(ledger.admit(credit, 200, Turn::early, true), Admission::synchronous)
        << "the oldest is never held";
    EXPECT_EQ(ledger.admit(credit, 100, Turn::early, false), Admission::buffered);
    ledger.acknowledge(credit, mark);
    EXPECT_EQ(credit.owed(), 0u);
    EXPECT_NE(ledger.admit(credit, 200, Turn::early, false), Admission::hold);
}

}  // namespace
}  // namespace thalweg
