// chunked(): what is moved stays, order follows overlap, both ends agree.
#include "schedule/passes.h"

#include <gtest/gtest.h>

#include "schedule/samples.h"

using namespace thalweg;
using namespace thalweg::samples;

namespace {

std::vector<Schedule> cut(const std::vector<Schedule>& schedules, std::uint64_t chunk,
                          std::uint64_t largest) {
    std::vector<Schedule> pieces;
    for (const Schedule& schedule : schedules) pieces.push_back(chunked(schedule, chunk, largest));
    return pieces;
}

bool equal(const Schedule& a, const Schedule& b) {
    if (a.steps().size() != b.steps().size() || a.scratch_bytes() != b.scratch_bytes()) return false;
    for (StepId id = 0; id < a.steps().size(); ++id) {
        const Step &x = a.steps()[id], &y = b.steps()[id];
        if (x.kind != y.kind || x.peer != y.peer || x.message != y.message || x.source != y.source ||
            x.target != y.target)
            return false;
        if (!std::equal(a.after(id).begin(), a.after(id).end(), b.after(id).begin(), b.after(id).end()))
            return false;
    }
    return true;
}

TEST(chunked, every_sample_stays_right_at_every_chunk_edge) {
    constexpr std::uint64_t chunk = 16;
    for (const Sample& sample : all)
        for (int size : {1, 2, 3, 7, 8, 13})
            for (std::uint64_t bytes : std::initializer_list<std::uint64_t>{0, 1, chunk - 1, chunk, chunk + 1,
                                                                            5 * chunk, 5 * chunk + 3}) {
                const auto whole = group(sample.make, size, bytes);
                const auto pieces = cut(whole, chunk, bytes);
                const Verdict before = check(whole, bytes), after = check(pieces, bytes);
                ASSERT_EQ(after.status, Status::ok)
                    << sample.name << " " << size << " " << bytes << after.why;
                EXPECT_EQ(after.bytes, before.bytes);
                EXPECT_EQ(after.redundant_bytes, before.redundant_bytes);
                for (std::uint64_t seed = 0; seed < 8; ++seed)
                    ASSERT_EQ(samples::run(pieces, bytes, seed), "")
                        << sample.name << " " << size << " " << bytes;
            }
}

TEST(chunked, cuts_a_chain_into_a_pipeline) {
    const auto pieces = cut(group(chain, 4, 100), 10, 100);
    const Verdict verdict = check(pieces, 100);
    EXPECT_EQ(verdict.messages, 30u);
    EXPECT_EQ(verdict.rounds, 3u) << "each chunk passes three hops; chunks do not wait for one another";
    for (StepId id = 0; id < pieces[1].steps().size(); id += 2) {
        EXPECT_EQ(pieces[1].steps()[id].kind, StepKind::recv);
        EXPECT_TRUE(pieces[1].after(id).empty());
        ASSERT_EQ(pieces[1].after(id + 1).size(), 1u);
        EXPECT_EQ(pieces[1].after(id + 1)[0], id);
    }
}

TEST(chunked, feeds_all_children_with_a_chunk_before_the_next) {
    const Schedule root = chunked(binomial(0, 8, 30), 10, 30);
    ASSERT_EQ(root.steps().size(), 9u);
    for (StepId id = 0; id < 9; ++id) {
        EXPECT_EQ(root.steps()[id].source.offset, id / 3 * 10u) << id;
        EXPECT_EQ(root.steps()[id].peer, 4 >> id % 3) << id;
    }
}

TEST(chunked, a_piece_waits_only_for_what_it_overlaps) {
    Builder builder(0, 3);
    builder.recv(1, out(0, 40));   // pieces 0 10 20 30
    builder.send(2, out(15, 20));  // pieces 15 25: over 10 20, and over 20 30
    const Schedule pieces = chunked(std::move(builder).finish(), 10, 40);
    ASSERT_EQ(pieces.steps().size(), 6u);
    int sends = 0;
    for (StepId id = 0; id < 6; ++id) {
        if (pieces.steps()[id].kind == StepKind::recv) continue;
        ++sends;
        ASSERT_EQ(pieces.after(id).size(), 2u);
        for (StepId on : pieces.after(id))
            EXPECT_TRUE(overlap(pieces.steps()[on].target, pieces.steps()[id].source));
    }
    EXPECT_EQ(sends, 2);
}

TEST(chunked, order_without_overlap_holds_between_all_pieces) {
    for (std::uint64_t before : {10ull, 40ull})
        for (std::uint64_t after : {10ull, 40ull}) {
            Builder builder(0, 3);
            const StepId first = builder.recv(1, out(0, before));
            builder.recv(2, out(50, after), std::array{first});
            const Schedule pieces = chunked(std::move(builder).finish(), 10, 40);
            // Who comes before whom, through joins too.
            std::vector<std::vector<bool>> precedes(pieces.steps().size());
            for (StepId id = 0; id < pieces.steps().size(); ++id) {
                precedes[id].resize(id + 1, false);
                for (StepId on : pieces.after(id)) {
                    precedes[id][on] = true;
                    for (StepId earlier = 0; earlier < on; ++earlier)
                        if (precedes[on][earlier]) precedes[id][earlier] = true;
                }
            }
            std::uint64_t pairs = 0;
            for (StepId id = 0; id < pieces.steps().size(); ++id)
                for (StepId on = 0; on < id; ++on)
                    if (pieces.steps()[id].peer == 2 && pieces.steps()[on].peer == 1)
                        pairs += precedes[id][on];
            EXPECT_EQ(pairs, before / 10 * after / 10);
        }
}

TEST(chunked, both_ends_number_pieces_alike_whatever_their_order) {
    // Rank 0 may send both messages at once; rank 1 takes the second only after the first: its pieces come in
    // another order there.
    Builder sender(0, 2), receiver(1, 2);
    sender.send(1, out(0, 30));
    sender.send(1, out(30, 20));
    const StepId first = receiver.recv(0, out(0, 30));
    receiver.recv(0, out(30, 20), std::array{first});
    const std::vector<Schedule> whole{std::move(sender).finish(), std::move(receiver).finish()};
    const auto pieces = cut(whole, 10, 30);
    const Verdict verdict = check(pieces, 50);
    EXPECT_EQ(verdict.status, Status::ok) << verdict.why;
    EXPECT_EQ(verdict.messages, 5u);
    EXPECT_EQ(pieces[0].steps()[1].message, 3u) << "the sender's order is chunk by chunk";
}

TEST(chunked, appended_pieces_keep_their_numbers) {
    std::vector<Schedule> schedules;
    for (int rank = 0; rank < 3; ++rank) {
        Builder part(rank % 2, 2);
        if (rank == 0) part.send(1, out(0, 30)), part.send(1, out(30, 20));
        if (rank == 1) {
            const StepId first = part.recv(0, out(0, 30));
            part.recv(0, out(30, 20), std::array{first});
        }
        const Schedule pieces = chunked(std::move(part).finish(), 10, 30);
        Builder builder(rank, 3);
        if (rank == 0) builder.send(1, out(0, 50));
        if (rank == 1) builder.recv(0, out(0, 50));
        if (rank != 2) builder.append(pieces, std::array{0, 1});
        if (rank == 1) builder.send(2, out(0, 50));
        if (rank == 2) builder.recv(1, out(0, 50));
        schedules.push_back(std::move(builder).finish());
    }
    const Verdict verdict = check(schedules, 50);
    EXPECT_EQ(verdict.status, Status::ok) << verdict.why;
    EXPECT_EQ(verdict.redundant_bytes, 50u);
}

TEST(chunked, no_pair_exceeds_its_messages) {
    constexpr std::uint64_t most = max_messages_per_pair;
    // One message: the chunk is raised just enough.
    auto pieces = cut(group(chain, 2, 3 * most), 1, 3 * most);
    EXPECT_EQ(pieces[0].steps().size(), most);
    EXPECT_EQ(pieces[0].steps()[0].source.bytes, 3u);
    pieces = cut(group(chain, 2, most), 1, most);
    EXPECT_EQ(pieces[0].steps().size(), most);
    pieces = cut(group(chain, 2, most + 1), 1, most + 1);
    EXPECT_EQ(pieces[0].steps()[0].source.bytes, 2u);
    // Many messages of one pair, more than the largest alone would tell; equal at both ends.
    auto many = [](int rank) {
        Builder builder(rank, 2);
        for (std::uint64_t i = 0; i < 10; ++i) {
            if (rank == 0)
                builder.send(1, out(i * most, most));
            else
                builder.recv(0, out(i * most, most));
        }
        return std::move(builder).finish();
    };
    pieces = cut(oracle::all_ranks(2, many), 1, most);
    EXPECT_EQ(pieces[0].steps().size(), 10 * most / 16);
    const Verdict verdict = check(pieces, 10 * most);
    EXPECT_EQ(verdict.status, Status::ok) << verdict.why;
    EXPECT_TRUE(equal(chunked(pieces[1], 1, most), pieces[1]));
}

TEST(chunked, twice_is_once_and_a_large_chunk_changes_nothing) {
    for (const Sample& sample : all)
        for (int size : {2, 5, 8}) {
            const auto whole = group(sample.make, size, 1000);
            const auto once = cut(whole, 64, 1000);
            const auto twice = cut(once, 64, 1000);
            for (int rank = 0; rank < size; ++rank) {
                EXPECT_TRUE(equal(once[rank], twice[rank])) << sample.name;
                EXPECT_EQ(chunked(whole[rank], 1000, 1000).steps().size(), whole[rank].steps().size());
                EXPECT_EQ(chunked(whole[rank], 0, 1000).steps().size(), whole[rank].steps().size());
            }
        }
}

}  // namespace
