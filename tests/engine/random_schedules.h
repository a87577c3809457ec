// Random groups of schedules: messages, copies and reductions between random slices, added to every rank's
// builder in one global order. The builder derives the dependencies, so playing the list in order gives the
// right answer.
#pragma once

#include <algorithm>
#include <cstring>
#include <random>

#include "engine/group.h"
#include "schedule/builder.h"

namespace thalweg::test {

// Eight bytes of every number: ranks that share cores would spend most of a test on drawing each
// byte by itself.
inline void draw(Bytes& data, std::mt19937_64& random) {
    for (std::size_t at = 0; at < data.size(); at += sizeof(std::uint64_t)) {
        const std::uint64_t number = random();
        std::memcpy(data.data() + at, &number, std::min(sizeof number, data.size() - at));
    }
}

struct RandomGroup {
    int size = 0;
    std::uint64_t in_bytes = 0, out_bytes = 0, scratch_bytes = 0;
    struct Action {
        StepKind kind;  // send stands for the whole message
        int from, to;   // equal for local steps
        Slice source, target;
        Side source_side = Side::left;
    };
    std::vector<Action> actions;

    static RandomGroup make(int size, int actions, std::uint64_t largest_bytes, std::uint64_t seed) {
        RandomGroup group;
        group.size = size;
        group.in_bytes = group.out_bytes = group.scratch_bytes = 3 * largest_bytes;
        std::mt19937_64 random(seed);
        auto slice = [&](bool writable, std::uint64_t bytes) {
            const auto buffer = static_cast<Buffer>(writable ? 1 + random() % 2 : random() % 3);
            return Slice{buffer, random() % (2 * largest_bytes + 1), bytes};
        };
        for (int i = 0; i < actions; ++i) {
            Action action;
            const std::uint64_t bytes = random() % 8 == 0 ? 0 : random() % largest_bytes;
            action.from = action.to = static_cast<int>(random() % size);
            action.kind = random() % 6 == 0 ? StepKind::reduce : StepKind::copy;
            action.source_side = static_cast<Side>(random() % 2);
            action.source = slice(false, bytes);
            action.target = slice(true, bytes);
            if (size > 1 && random() % 5 != 0) {
                action.kind = StepKind::send;
                while (action.to == action.from) action.to = static_cast<int>(random() % size);
            } else if (overlap(action.source, action.target)) {
                action.source.buffer = Buffer::in;
            }
            group.actions.push_back(action);
        }
        return group;
    }

    std::vector<std::shared_ptr<const Schedule>> build() const {
        std::vector<std::shared_ptr<const Schedule>> schedules;
        for (int rank = 0; rank < size; ++rank) {
            Builder builder(rank, size);
            const Slice scratch = builder.scratch(scratch_bytes);
            // Defines the scratch, which is undefined at the start.
            builder.copy(scratch, Slice{Buffer::in, 0, scratch_bytes});
            for (const Action& action : actions) {
                if (action.kind == StepKind::send) {
                    if (action.from == rank) builder.send(action.to, action.source);
                    if (action.to == rank) builder.recv(action.from, action.target);
                } else if (action.from == rank) {
                    if (action.kind == StepKind::copy)
                        builder.copy(action.target, action.source);
                    else
                        builder.reduce(action.target, action.source, action.source_side);
                }
            }
            schedules.push_back(std::make_shared<const Schedule>(std::move(builder).finish()));
        }
        return schedules;
    }

    Memory fill(std::uint64_t seed) const {
        std::mt19937_64 random(seed);
        auto bytes = [&](std::uint64_t count) {
            Bytes data(count);
            draw(data, random);
            return data;
        };
        Memory memory;
        for (int rank = 0; rank < size; ++rank) {
            memory.in.push_back(bytes(in_bytes));
            memory.out.push_back(bytes(out_bytes));
        }
        return memory;
    }

    // Plays the list in order.
    void play(Memory& memory) const {
        memory.scratch.clear();
        for (int rank = 0; rank < size; ++rank) {
            memory.scratch.emplace_back(memory.in[rank].begin(), memory.in[rank].begin() + scratch_bytes);
        }
        auto at = [&](int rank, Slice slice) {
            Bytes& bytes = slice.buffer == Buffer::in    ? memory.in[rank]
                           : slice.buffer == Buffer::out ? memory.out[rank]
                                                         : memory.scratch[rank];
            return bytes.data() + slice.offset;
        };
        for (const Action& action : actions) {
            const std::uint8_t* source = at(action.from, action.source);
            std::uint8_t* target = at(action.to, action.target);
            if (action.kind == StepKind::reduce) {
                const bool source_left = action.source_side == Side::left;
                combine(source_left ? source : target, source_left ? target : source, target,
                        action.source.bytes, nullptr);
            } else {
                std::memmove(target, source, action.source.bytes);
            }
        }
    }

    // Neither commutative nor associative: whatever is swapped or bracketed otherwise shows.
    static void combine(const void* left, const void* right, void* target, std::size_t bytes, void*) {
        const auto* a = static_cast<const std::uint8_t*>(left);
        const auto* b = static_cast<const std::uint8_t*>(right);
        for (std::size_t i = 0; i < bytes; ++i)
            static_cast<std::uint8_t*>(target)[i] = static_cast<std::uint8_t>(3 * a[i] + b[i]);
    }
};

}  // namespace thalweg::test
