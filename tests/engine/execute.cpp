// The engine against the sequential meaning of random schedules, over every kind of network that inproc can
// be.
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "engine/orderly.h"
#include "engine/random_schedules.h"
#include "engine/receiving.h"
#include "engine/window.h"

namespace thalweg {
namespace {

using test::Group;
using test::GroupOptions;
using test::Memory;
using test::RandomGroup;

std::vector<Schedule> values(const std::vector<std::shared_ptr<const Schedule>>& schedules) {
    std::vector<Schedule> copies;
    for (const auto& schedule : schedules) copies.push_back(*schedule);
    return copies;
}

// Runs a random group `runs` times with fresh contents and compares every byte of out.
void check(const RandomGroup& random, const GroupOptions& options, int runs) {
    const auto schedules = random.build();
    std::string why;
    ASSERT_TRUE(orderly(values(schedules), why)) << why;
    Group group(random.size, options);
    std::vector<std::unique_ptr<Execution>> executions;
    for (int rank = 0; rank < random.size; ++rank) {
        executions.push_back(std::make_unique<Execution>(schedules[rank], group.channel(rank)));
    }
    for (int run = 0; run < runs; ++run) {
        Memory memory = random.fill(options.seed * 100 + run);
        Memory expected = memory;
        random.play(expected);
        std::vector<Execution*> started;
        for (int rank = 0; rank < random.size; ++rank) {
            const Bindings bindings{
                memory.in[rank].data(), memory.out[rank].data(), {&RandomGroup::combine, nullptr, 1}};
            ASSERT_EQ(executions[rank]->start(bindings, 0xfffffffeu + run), Status::ok);
            started.push_back(executions[rank].get());
        }
        ASSERT_EQ(group.run(started), "");
        ASSERT_EQ(memory.out, expected.out) << "run " << run;
    }
}

// in_flight, delay_polls, eager_bytes, max_message_bytes
using Network = std::tuple<std::uint32_t, std::uint32_t, std::size_t, std::size_t>;

class EveryNetwork : public testing::TestWithParam<Network> {};

TEST_P(EveryNetwork, random_schedules_leave_what_their_sequential_order_leaves) {
    const auto [in_flight, delay_polls, eager_bytes, max_message_bytes] = GetParam();
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
        GroupOptions options;
        options.seed = options.network.seed = seed;
        options.limits.in_flight = in_flight;
        // No slots to widen the window with: these schedules are orderly and must do without.
        options.network.slots = std::max(smallest_window, in_flight);
        options.network.fixed_slots = true;
        options.network.delay_polls = delay_polls;
        options.network.eager_bytes = eager_bytes;
        options.network.max_message_bytes = max_message_bytes;
        const int size = 1 + static_cast<int>(seed % 9);
        check(RandomGroup::make(size, 60, 300, seed), options, 3);
        if (HasFatalFailure()) FAIL() << "seed " << seed;
    }
}

INSTANTIATE_TEST_SUITE_P(engine, EveryNetwork,
                         testing::Combine(testing::Values(1u, 2u, 3u, 4u, 64u), testing::Values(0u, 7u),
                                          testing::Values(std::size_t{0}, std::size_t{100},
                                                          std::size_t{1} << 20),
                                          testing::Values(std::size_t{1} << 20, std::size_t{64})));

// Large enough that copies are cut into pieces and a message into parts between polls.
TEST(execute, long_copies_and_messages_in_parts) {
    GroupOptions options;
    options.network.max_message_bytes = 300'000;
    check(RandomGroup::make(3, 25, 1'500'000, 5), options, 2);
}

TEST(execute, tight_credits_change_nothing) {
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
        GroupOptions options;
        options.seed = options.network.seed = seed;
        options.network.eager_bytes = 1 << 20;
        options.network.delay_polls = 5;
        options.limits.credit_bytes = seed % 2 ? 1000 : 1;
        options.limits.in_flight = 2 + seed % 4;
        check(RandomGroup::make(4, 120, 300, seed), options, 2);
        if (HasFatalFailure()) FAIL() << "seed " << seed;
    }
}

// Slots are what all executions of a channel share: 3 for 4 operations of every rank means that most wait for
// their turn, and the ranks may not disagree about whose turn it is.
TEST(execute, concurrent_operations_share_few_slots) {
    for (Slot slots : {2u, 3u, 5u, 64u}) {
        for (std::uint64_t seed = 1; seed <= 20; ++seed) {
            GroupOptions options;
            options.seed = options.network.seed = seed;
            options.network.slots = slots;
            options.network.fixed_slots = seed % 2;
            options.network.delay_polls = 3;
            options.limits.in_flight = 4;
            const int size = 5, operations = 4;
            Group group(size, options);
            std::vector<RandomGroup> random;
            std::vector<Memory> memory, expected;
            std::vector<std::unique_ptr<Execution>> executions;
            for (int i = 0; i < operations; ++i) {
                random.push_back(RandomGroup::make(size, 40, 200, seed * 10 + i));
                memory.push_back(random[i].fill(i));
                expected.push_back(memory[i]);
                random[i].play(expected[i]);
                const auto schedules = random[i].build();
                for (int rank = 0; rank < size; ++rank) {
                    executions.push_back(std::make_unique<Execution>(schedules[rank], group.channel(rank)));
                    const Bindings bindings{memory[i].in[rank].data(),
                                            memory[i].out[rank].data(),
                                            {&RandomGroup::combine, nullptr, 1}};
                    ASSERT_EQ(executions.back()->start(bindings, i), Status::ok);
                }
            }
            std::vector<Execution*> started;
            for (auto& execution : executions) started.push_back(execution.get());
            ASSERT_EQ(group.run(started), "") << slots << " slots, seed " << seed;
            for (int i = 0; i < operations; ++i) ASSERT_EQ(memory[i].out, expected[i].out);
        }
    }
}

// Valid, but its messages have no common order. With synchronous sends no window of a fixed size serves such
// schedules; the engine must widen it.
TEST(execute, a_schedule_that_is_not_orderly_widens_its_window) {
    constexpr int messages = 40;
    std::string why;
    // Rank 0 sends to 1 before it sends to 2; rank 1 takes its messages after one that 2 sends when it has
    // its own.
    Builder zero(0, 3), one(1, 3), two(2, 3);
    for (std::uint64_t i = 0; i < messages; ++i) zero.send(1, {Buffer::out, 0, 1});
    for (std::uint64_t i = 0; i < messages; ++i) zero.send(2, {Buffer::out, 0, 1});
    StepId last = 0;
    for (std::uint64_t i = 0; i < messages; ++i) last = two.recv(0, {Buffer::out, 1 + i, 1});
    two.send(1, {Buffer::out, messages, 1});
    last = one.recv(2, {Buffer::out, 0, 1});
    const StepId after[] = {last};
    for (std::uint64_t i = 0; i < messages; ++i) one.recv(0, {Buffer::out, 1 + i, 1}, after);
    std::vector<std::shared_ptr<const Schedule>> crossed = {
        std::make_shared<const Schedule>(std::move(zero).finish()),
        std::make_shared<const Schedule>(std::move(one).finish()),
        std::make_shared<const Schedule>(std::move(two).finish())};
    ASSERT_FALSE(orderly(values(crossed), why));
    EXPECT_NE(why.find("rank"), std::string::npos);

    for (bool fixed_slots : {false, true}) {
        GroupOptions options;
        options.network.slots = 8;
        options.network.fixed_slots = fixed_slots;
        options.limits.in_flight = 2;
        Group group(3, options);
        test::Bytes out[3];
        std::vector<std::unique_ptr<Execution>> executions;
        std::vector<Execution*> started;
        for (int rank = 0; rank < 3; ++rank) {
            out[rank].assign(messages + 1, static_cast<std::uint8_t>(10 + rank));
            executions.push_back(std::make_unique<Execution>(crossed[rank], group.channel(rank)));
            ASSERT_EQ(executions.back()->start({nullptr, out[rank].data(), {}}, 0), Status::ok);
            started.push_back(executions.back().get());
        }
        if (!fixed_slots) {
            EXPECT_EQ(group.run(started), "");
            EXPECT_EQ(out[1], test::Bytes(messages + 1, 10));
        } else {
            // Fewer slots than such a schedule needs: this is the limit that orderly() is there to tell.
            EXPECT_NE(group.run(started), "");
        }
    }
}

TEST(execute, start_refuses_what_it_cannot_run) {
    GroupOptions options;
    options.network.live_operations = 4;
    Group group(2, options);
    Builder builder(0, 2);
    builder.recv(1, {Buffer::out, 0, 1});
    const auto schedule = std::make_shared<const Schedule>(std::move(builder).finish());
    test::Bytes out(8);
    std::vector<std::unique_ptr<Execution>> executions;
    for (int i = 0; i < 5; ++i) {
        executions.push_back(std::make_unique<Execution>(schedule, group.channel(0)));
        // The fifth would share its tags with the first.
        EXPECT_EQ(executions[i]->start({nullptr, out.data(), {}}, 0xfffffffeu + i),
                  i < 4 ? Status::ok : Status::unsupported);
    }
    EXPECT_EQ(executions[0]->start({nullptr, out.data(), {}}, 9), Status::invalid_argument);
    EXPECT_EQ(Execution(schedule, group.channel(1)).start({nullptr, out.data(), {}}, 0),
              Status::invalid_argument);
    EXPECT_EQ(executions[4]->advance(), Status::invalid_argument);

    Builder reduces(1, 2);
    reduces.reduce({Buffer::out, 0, 4}, {Buffer::in, 0, 4});
    Execution sum(std::make_shared<const Schedule>(std::move(reduces).finish()), group.channel(1));
    EXPECT_EQ(sum.start({out.data(), out.data(), {}}, 0), Status::unsupported);
    EXPECT_FALSE(sum.running());

    // One message more than there are numbers: its tag would be that of the next operation's first.
    for (const std::uint32_t messages : {max_messages_per_pair + 1, max_messages_per_pair}) {
        Builder many(1, 2);
        for (std::uint32_t i = 0; i < messages; ++i) many.recv(0, {Buffer::out, 0, 1});
        Execution all(std::make_shared<const Schedule>(std::move(many).finish()), group.channel(1));
        EXPECT_EQ(all.start({nullptr, out.data(), {}}, 0),
                  messages == max_messages_per_pair ? Status::ok : Status::invalid_argument);
        EXPECT_EQ(all.running(), messages == max_messages_per_pair);
    }
}

TEST(execute, a_message_of_the_wrong_size_is_a_mismatch_and_ends_the_channel) {
    Group group(2, {});
    Builder sender(0, 2), receiver(1, 2);
    sender.send(1, {Buffer::out, 0, 5});
    receiver.recv(0, {Buffer::out, 0, 6});
    test::Bytes out(8);
    Execution send(std::make_shared<const Schedule>(std::move(sender).finish()), group.channel(0));
    Execution recv(std::make_shared<const Schedule>(std::move(receiver).finish()), group.channel(1));
    ASSERT_EQ(send.start({nullptr, out.data(), {}}, 0), Status::ok);
    ASSERT_EQ(recv.start({nullptr, out.data(), {}}, 0), Status::ok);
    EXPECT_EQ(send.advance(), Status::in_progress);
    EXPECT_EQ(recv.advance(), Status::mismatch);
    EXPECT_FALSE(recv.running());
    EXPECT_EQ(recv.start({nullptr, out.data(), {}}, 1), Status::mismatch);
}

// It does not know by itself that nobody will poll it any more.
TEST(execute, a_channel_that_fails_gives_its_transport_up_once) {
    struct Refusing final : test::Receiving {
        Refusing() : Receiving(2) {}
        Status post_recv(Slot, int, MessageId, void*, std::size_t) override { return posts; }
        Status progress(std::span<Slot>, std::size_t& count) override {
            count = 0;
            return Status::ok;
        }
        void give_up() override { ++given_up; }
        Status posts = Status::out_of_memory;
        int given_up = 0;
    } refusing, left;
    Builder builder(0, 2);
    builder.recv(1, {Buffer::out, 0, 6});
    const auto schedule = std::make_shared<const Schedule>(std::move(builder).finish());
    test::Bytes out(8);
    Execution execution(schedule, make_channel(refusing, {}));
    ASSERT_EQ(execution.start({nullptr, out.data(), {}}, 0), Status::ok);
    EXPECT_EQ(execution.advance(), Status::out_of_memory);
    EXPECT_EQ(execution.start({nullptr, out.data(), {}}, 1), Status::out_of_memory);
    EXPECT_EQ(refusing.given_up, 1);

    left.posts = Status::ok;
    const auto channel = make_channel(left, {});
    {
        Execution ended(schedule, channel);
        ASSERT_EQ(ended.start({nullptr, out.data(), {}}, 0), Status::ok);
        EXPECT_EQ(ended.advance(), Status::in_progress);
        EXPECT_EQ(left.given_up, 0);
    }
    EXPECT_EQ(left.given_up, 1);
}

// One message from rank 0 to rank 1, of `sent` bytes into room for `room`, and one of 3 bytes behind it.
struct Unequal {
    Unequal(Group& group, std::uint64_t sent, std::uint64_t room) {
        Builder sender(0, 2), receiver(1, 2);
        sender.send(1, {Buffer::out, 0, sent});
        sender.send(1, {Buffer::out, 0, 3});
        receiver.recv(0, {Buffer::out, 1, room});
        receiver.recv(0, {Buffer::out, 40, 3});
        send = std::make_unique<Execution>(std::make_shared<const Schedule>(std::move(sender).finish()),
                                           group.channel(0));
        recv = std::make_unique<Execution>(std::make_shared<const Schedule>(std::move(receiver).finish()),
                                           group.channel(1));
        send->expect_unequal();
        recv->expect_unequal();
    }
    // What the receiver's last advance said.
    Status run(std::uint32_t number) {
        out.assign(64, 0xEE);
        EXPECT_EQ(send->start({nullptr, in.data(), {}}, number), Status::ok);
        EXPECT_EQ(recv->start({nullptr, out.data(), {}}, number), Status::ok);
        Status sent = Status::in_progress, received = Status::in_progress;
        for (int i = 0; i < 1000 && (sent == Status::in_progress || received == Status::in_progress); ++i) {
            if (sent == Status::in_progress) sent = send->advance();
            if (received == Status::in_progress) received = recv->advance();
        }
        EXPECT_EQ(sent, Status::ok);
        return received;
    }
    std::unique_ptr<Execution> send, recv;
    test::Bytes in = test::Bytes(64, 0x11), out;
};

TEST(execute, a_message_shorter_than_its_room_is_taken_for_what_it_is) {
    for (const std::size_t part : {std::size_t{100}, std::size_t{4}}) {
        GroupOptions options;
        options.network.max_message_bytes = part;
        Group group(2, options);
        for (std::uint32_t number = 0; number < 3; ++number) {
            Unequal pair(group, 6 + number, 21);
            ASSERT_EQ(pair.run(number), Status::ok);
            for (std::size_t i = 0; i < pair.out.size(); ++i)
                EXPECT_EQ(pair.out[i], (i >= 1 && i < 7 + number) || (i >= 40 && i < 43) ? 0x11 : 0xEE) << i;
            ASSERT_EQ(pair.recv->gaps().size(), 1u);
            EXPECT_EQ(pair.recv->gaps()[0], (Slice{Buffer::out, 7 + number, 15 - number}));
        }
    }
}

// Larger than what the transport takes at a time, and its receiver could not tell how many parts are to come.
TEST(execute, a_large_message_longer_than_its_room_leaves_nothing_behind) {
    GroupOptions options;
    options.network.max_message_bytes = 4;
    options.network.eager_bytes = 0;
    Group group(2, options);
    Unequal wrong(group, 19, 3), right(group, 19, 19);
    EXPECT_EQ(wrong.run(0), Status::truncated);
    EXPECT_EQ(wrong.out[4], 0xEE);
    EXPECT_EQ(right.run(1), Status::ok);
    EXPECT_TRUE(right.recv->gaps().empty());
    EXPECT_EQ(right.out[19], 0x11);
}

TEST(execute, a_message_longer_than_its_room_ends_its_own_run_only) {
    Group group(2, {});
    Unequal wrong(group, 9, 8), right(group, 8, 8);
    EXPECT_EQ(wrong.run(0), Status::truncated);
    EXPECT_EQ(wrong.out[9], 0xEE);   // behind the room
    EXPECT_EQ(wrong.out[40], 0x11);  // the other message
    EXPECT_FALSE(wrong.recv->running());
    EXPECT_EQ(right.run(1), Status::ok);
    EXPECT_TRUE(right.recv->gaps().empty());
    EXPECT_EQ(wrong.run(2), Status::truncated);
}

}  // namespace
}  // namespace thalweg
