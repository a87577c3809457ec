// Schedules to test with, made here so that the tests of this room need none of algorithms/.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "oracle/oracle.h"
#include "schedule/builder.h"
#include "schedule/schedule.h"
#include "schedule/validate.h"

namespace thalweg::samples {

inline Slice out(std::uint64_t from, std::uint64_t bytes) { return {Buffer::out, from, bytes}; }

// Root 0, root's neighbour, and so on; the message whole.
inline Schedule chain(int rank, int size, std::uint64_t bytes) {
    Builder builder(rank, size);
    if (rank != 0) builder.recv(rank - 1, out(0, bytes));
    if (rank + 1 < size) builder.send(rank + 1, out(0, bytes));
    return std::move(builder).finish();
}

inline Schedule binomial(int rank, int size, std::uint64_t bytes) {
    Builder builder(rank, size);
    int mask = 1;
    while (mask < size && (rank & mask) == 0) mask <<= 1;
    if (rank != 0) builder.recv(rank - mask, out(0, bytes));
    for (mask >>= 1; mask != 0; mask >>= 1)
        if (rank + mask < size) builder.send(rank + mask, out(0, bytes));
    return std::move(builder).finish();
}

// MPICH's: a binomial scatter, then a ring that passes every block all the way round.
inline Schedule scatter_ring(int rank, int size, std::uint64_t bytes) {
    Builder builder(rank, size);
    const std::uint64_t block = (bytes + size - 1) / static_cast<std::uint64_t>(size);
    auto blocks = [&](int from, int count) {
        const std::uint64_t begin = std::min(bytes, from * block);
        return out(begin, std::min(bytes, (from + count) * block) - begin);
    };
    int mask = 1;
    while (mask < size && (rank & mask) == 0) mask <<= 1;
    const int held = rank == 0 ? size : std::min(mask, size - rank);
    if (rank != 0 && blocks(rank, held).bytes) builder.recv(rank - mask, blocks(rank, held));
    for (mask >>= 1; mask != 0; mask >>= 1) {
        if (rank + mask >= size) continue;
        const Slice half = blocks(rank + mask, std::min(mask, size - rank - mask));
        if (half.bytes) builder.send(rank + mask, half);
    }
    for (int i = 1; i < size; ++i) {
        const Slice to_right = blocks((rank - i + 1 + size) % size, 1);
        const Slice from_left = blocks((rank - i + size) % size, 1);
        if (to_right.bytes) builder.send((rank + 1) % size, to_right);
        if (from_left.bytes) builder.recv((rank - 1 + size) % size, from_left);
    }
    return std::move(builder).finish();
}

// Through scratch memory that is used again for every third of the message, with copies.
inline Schedule staged_chain(int rank, int size, std::uint64_t bytes) {
    Builder builder(rank, size);
    const std::uint64_t part = bytes / 3 + 1;
    const Slice stage = builder.scratch(part);
    for (std::uint64_t from = 0; from < bytes; from += part) {
        const std::uint64_t length = std::min(part, bytes - from);
        const Slice staged{Buffer::scratch, stage.offset, length};
        if (rank == 0) {
            builder.copy(staged, out(from, length));
        } else {
            builder.recv(rank - 1, staged);
            builder.copy(out(from, length), staged);
        }
        if (rank + 1 < size) builder.send(rank + 1, staged);
    }
    return std::move(builder).finish();
}

using Make = Schedule (*)(int rank, int size, std::uint64_t bytes);

struct Sample {
    const char* name;
    Make make;
};

inline constexpr Sample all[] = {
    {"chain", chain}, {"binomial", binomial}, {"scatter_ring", scatter_ring}, {"staged_chain", staged_chain}};

inline std::vector<Schedule> group(Make make, int size, std::uint64_t bytes) {
    return oracle::all_ranks(size, [&](int rank) { return make(rank, size, bytes); });
}

inline Problem problem(int size, std::uint64_t bytes) { return {0, size, 0, bytes}; }

inline Verdict check(std::span<const Schedule> schedules, std::uint64_t bytes) {
    return validate(schedules, oracle::contracts_for(Collective::bcast,
                                                     problem(static_cast<int>(schedules.size()), bytes)));
}

inline std::string run(std::span<const Schedule> schedules, std::uint64_t bytes, std::uint64_t seed) {
    return oracle::run(Collective::bcast, problem(static_cast<int>(schedules.size()), bytes), schedules,
                       seed);
}

// A schedule taken apart, so that a test can change anything in it.
struct Parts {
    int rank = 0, size = 1;
    std::vector<Step> steps;
    std::vector<std::vector<StepId>> after;
    std::uint64_t scratch_bytes = 0;

    explicit Parts(const Schedule& schedule)
        : rank(schedule.rank()),
          size(schedule.size()),
          steps(schedule.steps().begin(), schedule.steps().end()),
          scratch_bytes(schedule.scratch_bytes()) {
        for (StepId id = 0; id < steps.size(); ++id)
            after.emplace_back(schedule.after(id).begin(), schedule.after(id).end());
    }

    Schedule whole() const {
        std::vector<StepId> list;
        std::vector<std::uint32_t> begin{0};
        for (const auto& of_step : after) {
            list.insert(list.end(), of_step.begin(), of_step.end());
            begin.push_back(static_cast<std::uint32_t>(list.size()));
        }
        return Schedule(rank, size, steps, list, begin, scratch_bytes);
    }
};

// One rank of `schedules` after `change` (a function of Parts&).
template <class Change>
std::vector<Schedule> changed(std::vector<Schedule> schedules, int rank, Change change) {
    Parts parts(schedules[static_cast<std::size_t>(rank)]);
    change(parts);
    schedules[static_cast<std::size_t>(rank)] = parts.whole();
    return schedules;
}

}  // namespace thalweg::samples
