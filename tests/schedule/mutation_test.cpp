// One fault at a time, of every kind and at every place: validator or oracle must see each one that changes
// the meaning. What neither sees must be harmless, and is counted.
#include <gtest/gtest.h>

#include "schedule/passes.h"
#include "schedule/samples.h"

using namespace thalweg;
using namespace thalweg::samples;

namespace {

bool oracle_objects(const std::vector<Schedule>& schedules, std::uint64_t bytes) {
    for (std::uint64_t seed = 0; seed < 24; ++seed)
        if (!samples::run(schedules, bytes, seed).empty()) return true;
    return false;
}

// Which of the two judges see a fault.
struct Count {
    int planted = 0, by_validator = 0, by_oracle = 0, missed = 0;

    void judge(const std::vector<Schedule>& schedules, std::uint64_t bytes) {
        ++planted;
        const bool validator = check(schedules, bytes).status != Status::ok;
        const bool oracle = oracle_objects(schedules, bytes);
        by_validator += validator;
        by_oracle += oracle;
        missed += !validator && !oracle;
    }
};

constexpr std::uint64_t bytes = 60;

// `change` one step of one rank, at every place where it says it can.
template <class Change>
Count plant(Change change) {
    Count count;
    for (const Sample& sample : all)
        for (int size : {2, 3, 6})
            for (std::uint64_t chunk : {0, 7}) {
                std::vector<Schedule> good = group(sample.make, size, bytes);
                for (Schedule& schedule : good) schedule = chunked(schedule, chunk, bytes);
                for (int rank = 0; rank < size; ++rank)
                    for (StepId step = 0; step < good[rank].steps().size(); ++step) {
                        bool possible = false;
                        const auto bad =
                            changed(good, rank, [&](Parts& parts) { possible = change(parts, step); });
                        if (possible) count.judge(bad, bytes);
                    }
            }
    EXPECT_GT(count.planted, 50);
    return count;
}

TEST(mutation, every_deleted_dependency_is_found) {
    // In these schedules no dependency is implied by others, so every deletion leaves a race.
    const Count count = plant([](Parts& parts, StepId step) {
        if (parts.after[step].empty()) return false;
        parts.after[step].erase(parts.after[step].begin());
        return true;
    });
    EXPECT_EQ(count.by_validator, count.planted);
    EXPECT_GT(count.by_oracle, count.planted / 2)
        << "random order brings most of them to light as wrong bytes too";
}

TEST(mutation, every_shifted_slice_is_found) {
    for (std::int64_t shift : {-1, 1, 64})
        for (bool source : {false, true}) {
            const Count count = plant([&](Parts& parts, StepId step) {
                Step& it = parts.steps[step];
                if (source ? it.kind == StepKind::recv : it.kind == StepKind::send) return false;
                Slice& slice = source ? it.source : it.target;
                slice.offset += static_cast<std::uint64_t>(shift);
                return true;
            });
            EXPECT_EQ(count.missed, 0) << count.planted << " planted";
        }
}

TEST(mutation, every_wrong_size_is_found) {
    const Count count = plant([](Parts& parts, StepId step) {
        Step& it = parts.steps[step];
        (it.kind == StepKind::recv ? it.target : it.source).bytes -= 1;
        return true;
    });
    EXPECT_EQ(count.by_validator, count.planted);
}

TEST(mutation, every_wrong_peer_is_found) {
    const Count count = plant([](Parts& parts, StepId step) {
        Step& it = parts.steps[step];
        if (!is_message(it.kind) || parts.size == 2) return false;
        do it.peer = (it.peer + 1) % parts.size;
        while (it.peer == parts.rank);
        return true;
    });
    EXPECT_EQ(count.by_validator, count.planted);
    EXPECT_EQ(count.by_oracle, count.planted);
}

TEST(mutation, two_swapped_peers_are_found) {
    const Count count = plant([](Parts& parts, StepId step) {
        for (StepId other = step + 1; other < parts.steps.size(); ++other) {
            Step &a = parts.steps[step], &b = parts.steps[other];
            if (!is_message(a.kind) || a.kind != b.kind || a.peer == b.peer) continue;
            std::swap(a.peer, b.peer);
            std::swap(a.message, b.message);
            // A broadcast's root that sends the same bytes to two children may swap them.
            return a.source != b.source || a.target != b.target;
        }
        return false;
    });
    EXPECT_EQ(count.missed, 0) << count.planted << " planted";
}

TEST(mutation, every_dropped_step_is_found) {
    const Count count = plant([](Parts& parts, StepId step) {
        parts.steps.erase(parts.steps.begin() + step);
        parts.after.erase(parts.after.begin() + step);
        for (auto& list : parts.after) {
            std::erase(list, step);
            for (StepId& on : list) on -= on > step;
        }
        return true;
    });
    EXPECT_EQ(count.by_validator, count.planted);
    EXPECT_EQ(count.by_oracle, count.planted);
}

TEST(mutation, two_swapped_messages_are_found) {
    const Count count = plant([](Parts& parts, StepId step) {
        for (StepId other = step + 1; other < parts.steps.size(); ++other) {
            Step &a = parts.steps[step], &b = parts.steps[other];
            if (!is_message(a.kind) || a.kind != b.kind || a.peer != b.peer) continue;
            if ((a.kind == StepKind::send ? a.source : a.target) ==
                (b.kind == StepKind::send ? b.source : b.target))
                return false;
            std::swap(a.message, b.message);
            return true;
        }
        return false;
    });
    EXPECT_EQ(count.missed, 0) << count.planted << " planted";
}

// An allgather into memory with gaps, which are the program's: every write of one more byte, or of another
// step, is found.
TEST(mutation, every_write_beside_the_result_is_found) {
    constexpr int size = 3;
    const std::vector<Block> blocks{{2, 4}, {12, 0}, {8, 5}};
    Problem problem{0, size, 0, 3};
    problem.blocks = blocks;
    const std::vector<Contract> contracts = oracle::contracts_for(Collective::allgather, problem);
    EXPECT_EQ(contracts[0].untouched, (std::vector<Slice>{out(0, 2), out(6, 2)}));
    const std::vector<Schedule> good = oracle::all_ranks(size, [&](int rank) {
        Builder builder(rank, size);
        const std::uint64_t own = blocks[static_cast<std::size_t>(rank)].bytes;
        for (int peer = 0; peer < size; ++peer) {
            const Block& block = blocks[static_cast<std::size_t>(peer)];
            if (peer == rank && own != 0) builder.copy(out(block.offset, own), {Buffer::in, 0, own});
            if (peer != rank && own != 0) builder.send(peer, {Buffer::in, 0, own});
            if (peer != rank && block.bytes != 0) builder.recv(peer, out(block.offset, block.bytes));
        }
        return std::move(builder).finish();
    });
    EXPECT_EQ(validate(good, contracts).status, Status::ok);
    for (const std::uint64_t gap : {0, 1, 6, 7}) {
        const auto bad = changed(good, 0, [&](Parts& parts) {
            parts.steps.push_back({.source = {Buffer::in, 0, 1}, .target = out(gap, 1)});
            parts.after.emplace_back();
        });
        EXPECT_NE(validate(bad, contracts).why.find("no part of the result"), std::string::npos) << gap;
        EXPECT_NE(oracle::run(Collective::allgather, problem, bad, 1), "") << gap;
    }
}

}  // namespace
