// The validator finds every kind of fault and names the step; its counts are those of the papers.
#include "schedule/validate.h"

#include <gtest/gtest.h>

#include <functional>

#include "cpu_time.h"
#include "schedule/samples.h"

using namespace thalweg;
using namespace thalweg::samples;

namespace {

void expect_fault(const Verdict& verdict, std::initializer_list<const char*> words) {
    EXPECT_EQ(verdict.status, Status::invalid_schedule);
    for (const char* word : words) EXPECT_NE(verdict.why.find(word), std::string::npos) << verdict.why;
}

TEST(validate, accepts_every_sample_for_every_number_of_ranks) {
    for (const Sample& sample : all)
        for (int size = 1; size <= 40; ++size)
            for (std::uint64_t bytes : {0ull, 1ull, 7ull, 100ull, 1009ull}) {
                const Verdict verdict = check(group(sample.make, size, bytes), bytes);
                ASSERT_EQ(verdict.status, Status::ok)
                    << sample.name << ", " << size << " ranks, " << bytes << " bytes: " << verdict.why;
            }
}

TEST(validate, closed_ring_of_8_resends_12_blocks) {
    const Verdict verdict = check(group(scatter_ring, 8, 800), 800);
    EXPECT_EQ(verdict.status, Status::ok) << verdict.why;
    EXPECT_EQ(verdict.redundant_messages, 12u);
    EXPECT_EQ(verdict.redundant_bytes, 1200u);
    EXPECT_EQ(verdict.messages, 7u + 56u);
    EXPECT_EQ(verdict.bytes, 100u * (4 + 2 + 2 + 1 + 1 + 1 + 1) + 5600u);
}

// Zhou et al., arXiv 1603.06809: transfers of the native ring minus those of the tuned one.
TEST(validate, closed_ring_redundancy_is_that_of_the_paper) {
    for (auto [size, saved] : {std::pair{9, 13},
                               {10, 15},
                               {16, 32},
                               {17, 33},
                               {24, 52},
                               {33, 81},
                               {64, 192},
                               {65, 193},
                               {129, 449}}) {
        const auto bytes = static_cast<std::uint64_t>(size) * 3;
        const Verdict verdict = check(group(scatter_ring, size, bytes), bytes);
        EXPECT_EQ(verdict.redundant_messages, static_cast<std::uint64_t>(saved)) << size << " ranks";
        EXPECT_EQ(verdict.redundant_bytes, static_cast<std::uint64_t>(saved) * 3) << size << " ranks";
    }
}

TEST(validate, counts_rounds_messages_and_bytes) {
    Verdict verdict = check(group(chain, 9, 10), 10);
    EXPECT_EQ(verdict.rounds, 8u);
    EXPECT_EQ(verdict.messages, 8u);
    EXPECT_EQ(verdict.bytes, 80u);
    EXPECT_EQ(verdict.redundant_bytes, 0u);
    verdict = check(group(binomial, 16, 10), 10);
    EXPECT_EQ(verdict.rounds, 4u);
    verdict = check(group(binomial, 1, 10), 10);
    EXPECT_EQ(verdict.rounds, 0u);
    verdict = check(group(chain, 5, 0), 0);
    EXPECT_EQ(verdict.messages, 0u) << "messages without bytes are not counted";
    EXPECT_EQ(verdict.rounds, 1u) << "and nothing makes them wait for one another";
}

TEST(validate, bytes_that_changed_between_are_not_redundant) {
    // Rank 0 sends a, then b, then a again to the same place of rank 1: only a fourth, equal message is
    // redundant.
    auto build = [](int rank, int sends) {
        Builder builder(rank, 2);
        for (int i = 0; i < sends; ++i) {
            if (rank == 0)
                builder.send(1, out(i == 1 ? 10 : 0, 10));
            else
                builder.recv(0, out(0, 10));
        }
        return std::move(builder).finish();
    };
    for (int sends : {3, 4}) {
        const std::vector<Schedule> schedules{build(0, sends), build(1, sends)};
        const std::vector<Contract> contracts{{0, 20, {out(0, 20)}, {}, {}}, {0, 10, {}, {out(0, 10)}, {}}};
        const Verdict verdict = validate(schedules, contracts);
        EXPECT_EQ(verdict.status, Status::ok) << verdict.why;
        EXPECT_EQ(verdict.redundant_bytes, sends == 3 ? 0u : 10u);
    }
}

TEST(validate, a_partly_known_message_counts_its_known_bytes) {
    auto build = [](int rank) {
        Builder builder(rank, 2);
        if (rank == 0) builder.send(1, out(0, 6)), builder.send(1, out(2, 8));
        if (rank == 1) builder.recv(0, out(0, 6)), builder.recv(0, out(2, 8));
        return std::move(builder).finish();
    };
    const Verdict verdict = check(oracle::all_ranks(2, build), 10);
    EXPECT_EQ(verdict.status, Status::ok) << verdict.why;
    EXPECT_EQ(verdict.redundant_bytes, 4u);
    EXPECT_EQ(verdict.redundant_messages, 0u);
}

TEST(validate, names_a_send_without_receive_and_a_receive_without_send) {
    auto schedules = changed(group(chain, 3, 8), 1, [](Parts& parts) {
        parts.steps.pop_back();
        parts.after.pop_back();
    });
    expect_fault(check(schedules, 8), {"rank 2 step 0 (recv from 1, message 0)", "never sent"});
    schedules =
        changed(group(chain, 3, 8), 2, [](Parts& parts) { parts.steps.clear(), parts.after.clear(); });
    expect_fault(check(schedules, 8), {"rank 1 step 1 (send to 2, message 0)", "never received"});
}

TEST(validate, names_both_ends_of_a_message_with_two_sizes) {
    const auto schedules =
        changed(group(chain, 3, 8), 2, [](Parts& parts) { parts.steps[0].target.bytes = 7; });
    expect_fault(check(schedules, 8), {"rank 1 step 1", "8 bytes", "rank 2 step 0", "takes 7"});
}

TEST(validate, finds_two_messages_of_one_number) {
    auto schedules = group(staged_chain, 2, 30);
    schedules = changed(schedules, 0, [](Parts& parts) { parts.steps[3].message = 0; });
    expect_fault(check(schedules, 30), {"rank 0 step 3", "number of another message"});
    schedules = changed(group(chain, 2, 8), 0, [](Parts& parts) { parts.steps[0].message = 1u << 14; });
    expect_fault(check(schedules, 8), {"rank 0 step 0", "more than one pair"});
}

TEST(validate, finds_a_peer_that_does_not_exist) {
    for (int peer : {-1, 3, 0}) {
        const auto schedules =
            changed(group(chain, 3, 8), 0, [&](Parts& parts) { parts.steps[0].peer = peer; });
        expect_fault(check(schedules, 8), {"rank 0 step 0", "no such peer"});
    }
}

TEST(validate, finds_slices_out_of_bounds_also_where_the_sum_overflows) {
    auto schedules = changed(group(chain, 3, 8), 2, [](Parts& parts) { parts.steps[0].target.offset = 1; });
    expect_fault(check(schedules, 8), {"rank 2 step 0", "out of bounds", "8 bytes at 1 of out, which has 8"});
    schedules =
        changed(group(chain, 3, 8), 2, [](Parts& parts) { parts.steps[0].target.offset = ~0ull - 3; });
    expect_fault(check(schedules, 8), {"rank 2 step 0", "out of bounds"});
    schedules = changed(group(staged_chain, 2, 30), 1, [](Parts& parts) { parts.scratch_bytes -= 1; });
    expect_fault(check(schedules, 30), {"rank 1 step 0", "of scratch"});
}

TEST(validate, finds_writes_to_in_and_copies_onto_themselves) {
    const std::vector<Contract> contracts{{8, 8, {{Buffer::in, 0, 8}}, {}, {}}};
    Builder to_in(0, 1);
    to_in.copy({Buffer::in, 0, 4}, {Buffer::in, 4, 4});
    expect_fault(validate(std::vector{std::move(to_in).finish()}, contracts),
                 {"rank 0 step 0 (copy)", "read only"});
    Builder onto_itself(0, 1);
    onto_itself.copy(out(0, 4), {Buffer::in, 0, 4});
    onto_itself.copy(out(2, 4), out(0, 4));
    expect_fault(validate(std::vector{std::move(onto_itself).finish()}, contracts),
                 {"rank 0 step 1 (copy)", "reads bytes that it writes"});
}

TEST(validate, finds_a_dependency_on_a_later_step) {
    const auto schedules = changed(group(chain, 3, 8), 1, [](Parts& parts) { parts.after[0] = {1}; });
    expect_fault(check(schedules, 8), {"rank 1 step 0", "follows step 1"});
}

TEST(validate, finds_a_cycle_through_messages) {
    // Each of three ranks passes on what it gets from the other side before it sends.
    auto build = [](int rank) {
        Builder builder(rank, 3);
        const StepId got = builder.recv((rank + 2) % 3, out(0, 4));
        builder.send((rank + 1) % 3, out(4, 4), std::array{got});
        return std::move(builder).finish();
    };
    const auto schedules = oracle::all_ranks(3, build);
    const std::vector<Contract> contracts(3, {0, 8, {out(4, 4)}, {}, {}});
    expect_fault(validate(schedules, contracts), {"waits for rank", "a cycle of 3 steps"});
}

TEST(validate, finds_sends_that_would_wait_for_each_other) {
    auto build = [](int rank) {
        Builder builder(rank, 2);
        const StepId sent = builder.send(1 - rank, out(4, 4));
        builder.recv(1 - rank, out(0, 4), std::array{sent});
        return std::move(builder).finish();
    };
    const std::vector<Contract> contracts(2, {0, 8, {out(4, 4)}, {}, {}});
    expect_fault(validate(oracle::all_ranks(2, build), contracts), {"a cycle of 2 steps"});
}

TEST(validate, finds_unordered_steps_that_touch_one_byte) {
    // read after write, write after read, write after write; named with the byte
    auto schedules = changed(group(chain, 3, 8), 1, [](Parts& parts) { parts.after[1].clear(); });
    expect_fault(check(schedules, 8), {"rank 1 step 1", "step 0", "byte 0 of out", "neither follows"});
    schedules = changed(group(staged_chain, 3, 30), 1, [](Parts& parts) { parts.after[3].clear(); });
    expect_fault(check(schedules, 30), {"rank 1 step 3 (recv from 0, message 1)", "of scratch"});
    Builder twice(0, 1);
    twice.copy(out(0, 4), {Buffer::in, 0, 4});
    twice.copy(out(3, 4), {Buffer::in, 4, 4});
    auto broken = changed({std::move(twice).finish()}, 0, [](Parts& parts) { parts.after[1].clear(); });
    expect_fault(validate(broken, std::vector<Contract>{{8, 8, {{Buffer::in, 0, 8}}, {}, {}}}),
                 {"rank 0 step 1 (copy)", "step 0", "byte 3 of out"});
}

TEST(validate, accepts_order_that_follows_from_other_steps) {
    // recv; copy of other bytes after it; send after the copy only: ordered through the copy.
    Builder middle(1, 3);
    const StepId got = middle.recv(0, out(0, 8));
    const Slice aside = middle.scratch(0);
    const StepId between = middle.copy(aside, {Buffer::in, 0, 0}, std::array{got});
    middle.send(2, out(0, 8), std::array{between});
    auto schedules = group(chain, 3, 8);
    schedules[1] = std::move(middle).finish();
    schedules = changed(schedules, 1, [&](Parts& parts) { parts.after[2] = {between}; });
    EXPECT_EQ(check(schedules, 8).status, Status::ok) << check(schedules, 8).why;
}

TEST(validate, finds_reads_of_undefined_bytes_and_bytes_left_undefined) {
    auto schedules = group(chain, 3, 8);
    schedules = changed(schedules, 1, [](Parts& parts) { parts.steps[0].target = {Buffer::scratch, 0, 8}; });
    schedules = changed(schedules, 1, [](Parts& parts) { parts.scratch_bytes = 8; });
    expect_fault(check(schedules, 8), {"rank 1 step 1", "reads byte 0 of out, which is undefined"});
    auto build = [](int rank) {
        Builder builder(rank, 2);
        if (rank == 0) builder.send(1, out(0, 3)), builder.send(1, out(5, 3));
        if (rank == 1) builder.recv(0, out(0, 3)), builder.recv(0, out(5, 3));
        return std::move(builder).finish();
    };
    expect_fault(check(oracle::all_ranks(2, build), 8), {"rank 1: byte 3 of out is undefined at the end"});
}

TEST(validate, finds_bytes_that_end_in_the_wrong_place) {
    auto build = [](int rank) {
        Builder builder(rank, 2);
        if (rank == 0) builder.send(1, out(0, 4)), builder.send(1, out(4, 4));
        if (rank == 1) builder.recv(0, out(4, 4)), builder.recv(0, out(0, 4));
        return std::move(builder).finish();
    };
    const auto schedules = oracle::all_ranks(2, build);
    expect_fault(check(schedules, 8), {"rank 1: byte 0 of out does not end as byte 0 of rank 0's out"});
    EXPECT_NE(samples::run(schedules, 8, 1), "");
}

TEST(validate, a_reduction_reads_its_target) {
    Builder builder(0, 1);
    builder.reduce(out(0, 4), {Buffer::in, 0, 4});
    const std::vector<Schedule> schedules{std::move(builder).finish()};
    expect_fault(validate(schedules, std::vector<Contract>{{4, 4, {{Buffer::in, 0, 4}}, {}, {}}}),
                 {"rank 0 step 0 (reduce)", "byte 0 of out, which is undefined"});
    const std::vector<Contract> defined{{4, 4, {{Buffer::in, 0, 4}, out(0, 4)}, {out(0, 4)}, {}}};
    EXPECT_EQ(validate(schedules, defined).status, Status::ok);
}

// Rank 0 sends 10 bytes in pieces of 4: what `change` makes of both ends, a number of the piece each time.
Verdict pieces_after(const std::function<void(Step&, std::uint32_t)>& change) {
    std::vector<Schedule> schedules;
    for (int rank = 0; rank < 2; ++rank) {
        Builder builder(rank, 2);
        for (std::uint32_t i = 0; i < 3; ++i) {
            const Slice slice = out(4 * i, i < 2 ? 4 : 2);
            const Builder::Piece piece{i, 7 - i, 4};
            if (rank == 0)
                builder.send_piece(1, slice, piece);
            else
                builder.recv_piece(0, slice, piece);
        }
        Parts parts(std::move(builder).finish());
        for (std::uint32_t i = 0; i < 3; ++i) change(parts.steps[i], i);
        schedules.push_back(parts.whole());
    }
    return check(schedules, 10);
}

// Of a message that says itself where it ends, the receiver takes what its pieces say: these lose bytes, or
// wait for ever, although both ends agree.
TEST(validate, finds_pieces_that_do_not_make_up_their_message) {
    EXPECT_EQ(pieces_after([](Step&, std::uint32_t) {}).status, Status::ok);
    expect_fault(pieces_after([](Step& step, std::uint32_t i) {
                     if (i == 1) step.full_bytes = 8;
                 }),
                 {"rank 1 step 2", "stands behind the last piece"});
    expect_fault(pieces_after([](Step& step, std::uint32_t i) {
                     if (i == 2) step.full_bytes = 2;
                 }),
                 {"rank 1 step 2", "is a full piece, and none follows"});
    expect_fault(pieces_after([](Step& step, std::uint32_t i) {
                     if (i == 0) step.full_bytes = 3;
                 }),
                 {"rank 1 step 0", "is larger than a full piece"});
    const char* goes_on = "does not go on where the piece before it ends";
    expect_fault(pieces_after([](Step& step, std::uint32_t i) {
                     if (i == 2) step.message = 3;
                 }),
                 {"rank 1 step 2", goes_on});
    expect_fault(pieces_after([](Step& step, std::uint32_t i) {
                     if (i == 2) step.may_follow = 4;
                 }),
                 {"rank 1 step 2", goes_on});
    expect_fault(pieces_after([](Step& step, std::uint32_t i) {
                     if (i == 2) step.full_bytes = 0;
                 }),
                 {"rank 1 step 2", goes_on});
    // The first two in each other's place.
    expect_fault(pieces_after([](Step& step, std::uint32_t i) {
                     (step.kind == StepKind::send ? step.source : step.target).offset = i < 2 ? 4 - 4 * i : 8;
                 }),
                 {"rank 1 step 1", goes_on});
}

// The second piece is taken when the first has come, which is sent when rank 1 has the second.
TEST(validate, finds_a_cycle_through_pieces) {
    std::vector<Schedule> schedules;
    for (const bool waits : {false, true}) {
        schedules.clear();
        Builder sender(0, 2), receiver(1, 2);
        const StepId heard = sender.recv(1, out(0, 0));
        sender.send_piece(1, out(0, 4), {0, 1, 4}, std::span(&heard, waits ? 1 : 0));
        sender.send_piece(1, out(4, 2), {1, 0, 4});
        receiver.recv_piece(0, out(0, 4), {0, 1, 4});
        const StepId second = receiver.recv_piece(0, out(4, 2), {1, 0, 4});
        receiver.send(0, out(0, 0), std::span(&second, 1));
        schedules.push_back(std::move(sender).finish());
        schedules.push_back(std::move(receiver).finish());
        if (waits)
            expect_fault(check(schedules, 6), {"waits for", "a cycle of 3 steps"});
        else
            EXPECT_EQ(check(schedules, 6).status, Status::ok);
    }
}

TEST(validate, large_groups_and_long_schedules_take_seconds_at_most) {
    // 130 ranks × 4,000 chunks: a million steps.
    auto chunks = [](int rank) {
        Builder builder(rank, 130);
        for (std::uint64_t chunk = 0; chunk < 4000; ++chunk) {
            if (rank != 0) builder.recv(rank - 1, out(chunk * 10, 10));
            if (rank != 129) builder.send(rank + 1, out(chunk * 10, 10));
        }
        return std::move(builder).finish();
    };
    const auto schedules = oracle::all_ranks(130, chunks);
    const double start = thalweg::test::thread_cpu_seconds();
    const Verdict verdict = check(schedules, 40000);
    const double took = thalweg::test::thread_cpu_seconds() - start;
    EXPECT_EQ(verdict.status, Status::ok) << verdict.why;
    EXPECT_EQ(verdict.messages, 129u * 4000u);
    EXPECT_LT(took, 30.0) << "about 1 s on an idle core of 2020";
    RecordProperty("seconds", std::to_string(took));
}

}  // namespace
