// What each collective means, written from the MPI standard: one function per collective for what a rank
// holds at the start, and one for what it must hold at the end. Used by the oracle and, as contracts, by the
// validator.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "algorithms/algorithm.h"
#include "algorithms/patterns/parcels.h"
#include "oracle/gaps.h"
#include "schedule/validate.h"

namespace thalweg::oracle {

// splitmix64: small, fast, the same everywhere.
class Random {
  public:
    explicit Random(std::uint64_t seed) : state_(seed) {}
    std::uint64_t next() { return mix(state_ += 0x9e3779b97f4a7c15u); }
    std::uint64_t below(std::uint64_t bound) { return next() % bound; }

    static std::uint64_t mix(std::uint64_t x) {
        x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
        x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
        return x ^ (x >> 31);
    }

  private:
    std::uint64_t state_;
};

// Where rank's block of an allgather ends in out, whatever rank's problem it is.
inline Block block_of(const Problem& problem, int block) {
    if (!problem.blocks.empty()) return problem.blocks[static_cast<std::size_t>(block)];
    return {static_cast<std::uint64_t>(block) * problem.bytes, problem.bytes};
}

inline std::uint64_t end_of(const std::vector<Parcel>& parcels) {
    std::uint64_t end = 0;
    for (const Parcel& parcel : parcels)
        if (parcel.bytes != 0) end = std::max(end, parcel.offset + parcel.bytes);
    return end;
}

// A message of an alltoallv as its receiver has it, and where it lies in its sender's `in`.
struct Arrival {
    Parcel parcel;
    std::uint64_t source_offset = 0;
};

// MPI-4.1, 6.8: the j-th block sent from process i is received by process j and is placed in the i-th block
// of recvbuf; among several messages of a pair the k-th that has bytes meets the k-th. `of(r)` is rank r's
// problem.
template <class ProblemOf>
std::vector<Arrival> arrivals_at(int rank, ProblemOf of) {
    std::vector<Arrival> arrivals;
    std::map<int, std::size_t> seen;
    for (const Parcel& parcel : patterns::incoming_of(of(rank))) {
        if (parcel.bytes == 0) continue;
        std::size_t skip = seen[parcel.peer]++;
        for (const Parcel& sent : patterns::outgoing_of(of(parcel.peer)))
            if (sent.peer == rank && sent.bytes != 0 && skip-- == 0) {
                arrivals.push_back({parcel, sent.offset});
                break;
            }
    }
    return arrivals;
}

inline std::uint64_t out_bytes_of(Collective collective, const Problem& problem) {
    std::uint64_t end = 0;
    if (collective == Collective::barrier) return 0;
    if (collective == Collective::alltoallv) return end_of(patterns::incoming_of(problem));
    if (collective != Collective::allgather) return problem.bytes;
    for (int block = 0; block < problem.size; ++block) {
        const Block it = block_of(problem, block);
        if (it.bytes != 0) end = std::max(end, it.offset + it.bytes);
    }
    return end;
}

inline std::uint64_t in_bytes_of(Collective collective, const Problem& problem) {
    if (problem.in_place && collective != Collective::alltoallv) return 0;
    if (collective == Collective::allgather) return block_of(problem, problem.rank).bytes;
    if (collective == Collective::alltoallv) return end_of(patterns::outgoing_of(problem));
    return collective == Collective::allreduce ? problem.bytes : 0;
}

// What validate() checks the schedule of problem.rank against.
// `of(r)`: rank r's problem.
template <class ProblemOf>
Contract contract_for(Collective collective, const Problem& problem, ProblemOf of) {
    Contract contract;
    contract.in_bytes = in_bytes_of(collective, problem);
    contract.out_bytes = out_bytes_of(collective, problem);
    const Slice in{Buffer::in, 0, contract.in_bytes}, out{Buffer::out, 0, contract.out_bytes};
    switch (collective) {
        case Collective::bcast:
            contract.required = {out};
            contract.expected = {{out, problem.root, Buffer::out, 0}};
            if (problem.rank == problem.root) contract.defined = {out};
            break;
        case Collective::allgather:
            for (int block = 0; block < problem.size; ++block) {
                const Block it = block_of(problem, block);
                if (it.bytes == 0) continue;
                const Slice place{Buffer::out, it.offset, it.bytes};
                contract.required.push_back(place);
                contract.expected.push_back({place, block, problem.in_place ? Buffer::out : Buffer::in,
                                             problem.in_place ? it.offset : 0});
                if (problem.in_place && block == problem.rank) contract.defined = {place};
            }
            if (!problem.in_place) contract.defined = {in};
            break;
        case Collective::allreduce:
            contract.element_bytes = problem.element_bytes;
            contract.defined = {problem.in_place ? out : in};
            contract.required = {out};
            contract.combined = {{out, problem.in_place ? Buffer::out : Buffer::in, 0, !problem.commutative}};
            break;
        case Collective::barrier:
            contract.synchronises = true;
            break;
        case Collective::alltoallv:
            contract.defined = {in};
            for (const Arrival& arrival : arrivals_at(problem.rank, of)) {
                const Slice place{Buffer::out, arrival.parcel.offset, arrival.parcel.bytes};
                contract.required.push_back(place);
                contract.expected.push_back({place, arrival.parcel.peer, Buffer::in, arrival.source_offset});
            }
            break;
    }
    contract.untouched = gaps_between(contract.required, contract.out_bytes);
    return contract;
}

// The contracts of all ranks; problem.rank does not matter.
inline std::vector<Contract> contracts_for(Collective collective, Problem problem) {
    std::vector<Contract> contracts;
    contracts.reserve(static_cast<std::size_t>(problem.size));
    const auto of = [&problem](int rank) {
        Problem other = problem;
        other.rank = rank;
        return other;
    };
    for (int rank = 0; rank < problem.size; ++rank)
        contracts.push_back(contract_for(collective, of(rank), of));
    return contracts;
}

// Where ranks' problems differ: problems[r] is rank r's.
inline std::vector<Contract> contracts_for(Collective collective, const std::vector<Problem>& problems) {
    const auto of = [&problems](int rank) { return problems[static_cast<std::size_t>(rank)]; };
    std::vector<Contract> contracts;
    contracts.reserve(problems.size());
    for (const Problem& problem : problems) contracts.push_back(contract_for(collective, problem, of));
    return contracts;
}

// The operation of a reduction follows from the problem: maps x → ax + b under composition (8 bytes: two
// words of 32 bits) where it need not commute, sums of floats (4 bytes) of which every bracket rounds in its
// own way, else sums of bytes.
class Definition {
  public:
    Definition(Collective collective, const Problem& problem, std::uint64_t seed)
        : collective_(collective),
          seed_(Random::mix(seed + 1)),
          problems_(static_cast<std::size_t>(problem.size)) {
        for (int rank = 0; rank < problem.size; ++rank) {
            Problem& mine = problems_[static_cast<std::size_t>(rank)] = problem;
            mine.rank = rank;
        }
        make();
    }

    // With places of blocks that differ from rank to rank: problems[r] is rank r's.
    Definition(Collective collective, std::vector<Problem> problems, std::uint64_t seed)
        : collective_(collective), seed_(Random::mix(seed + 1)), problems_(std::move(problems)) {
        make();
    }

    std::uint64_t in_bytes(int rank) const { return in_bytes_[static_cast<std::size_t>(rank)]; }
    std::uint64_t out_bytes(int rank) const { return out_bytes_[static_cast<std::size_t>(rank)]; }
    bool synchronises() const { return collective_ == Collective::barrier; }

    // Writes what `rank` holds before the first step: its data, and elsewhere in `out` what is certainly
    // wrong.
    void fill(int rank, std::uint8_t* in, std::uint8_t* out) const {
        const Problem& mine = problem(rank);
        switch (collective_) {
            case Collective::bcast:
                for (std::uint64_t i = 0; i < mine.bytes; ++i)
                    out[i] = rank == mine.root ? message_[i] : static_cast<std::uint8_t>(~message_[i]);
                return;
            case Collective::allgather:
                for (std::uint64_t i = 0; i < out_bytes(rank); ++i) out[i] = gap(rank, i);
                for (int block = 0; block < mine.size; ++block) {
                    const Block it = block_of(mine, block);
                    const bool right = mine.in_place && block == rank;
                    for (std::uint64_t i = 0; i < it.bytes; ++i)
                        out[it.offset + i] =
                            right ? operand(block, i) : static_cast<std::uint8_t>(~operand(block, i));
                    if (!mine.in_place && block == rank)
                        for (std::uint64_t i = 0; i < it.bytes; ++i) in[i] = operand(block, i);
                }
                return;
            case Collective::allreduce:
                for (std::uint64_t i = 0; i < mine.bytes; ++i) {
                    out[i] = mine.in_place ? operand(rank, i) : static_cast<std::uint8_t>(~message_[i]);
                    if (!mine.in_place) in[i] = operand(rank, i);
                }
                return;
            case Collective::barrier:
                return;
            case Collective::alltoallv:
                for (std::uint64_t i = 0; i < in_bytes(rank); ++i) in[i] = operand(rank, i);
                for (std::uint64_t i = 0; i < out_bytes(rank); ++i) out[i] = gap(rank, i);
                each_arrival(rank, [&](std::uint64_t place, std::uint8_t right) {
                    out[place] = static_cast<std::uint8_t>(~right);
                });
                return;
        }
        std::abort();
    }

    // Empty when `rank` holds what it must after the last step, else one sentence.
    std::string compare(int rank, const std::uint8_t* in, const std::uint8_t* out) const {
        const Problem& mine = problem(rank);
        if (in != nullptr)
            for (std::uint64_t i = 0; i < in_bytes(rank); ++i)
                if (in[i] != operand(rank, i))
                    return "rank " + std::to_string(rank) + ": byte " + std::to_string(i) +
                           " of in has changed";
        switch (collective_) {
            case Collective::bcast:  // MPI-4.1, 6.4: the contents of root's buffer are copied to all
                                     // processes
                return difference(rank, "the root's", out, 0, mine.bytes,
                                  [&](std::uint64_t i) { return message_[i]; });
            case Collective::allgather: {  // 6.7: the block sent from the j-th process is placed in the j-th
                                           // block of every process's buffer; what is between is not touched
                std::vector<std::uint8_t> right(out_bytes(rank));
                for (std::uint64_t i = 0; i < right.size(); ++i) right[i] = gap(rank, i);
                for (int block = 0; block < mine.size; ++block) {
                    const Block it = block_of(mine, block);
                    for (std::uint64_t i = 0; i < it.bytes; ++i) right[it.offset + i] = operand(block, i);
                }
                return difference(rank, "it should be", out, 0, right.size(),
                                  [&](std::uint64_t i) { return right[i]; });
            }
            case Collective::allreduce:  // 6.9.6: the result of the reduction appears in all processes
                if (operation() == Operation::add_floats) return compare_floats(rank, out);
                return difference(rank, "it should be", out, 0, mine.bytes,
                                  [&](std::uint64_t i) { return message_[i]; });
            case Collective::barrier:
                return {};
            case Collective::alltoallv: {
                std::vector<std::uint8_t> right(out_bytes(rank));
                for (std::uint64_t i = 0; i < right.size(); ++i) right[i] = gap(rank, i);
                each_arrival(rank, [&](std::uint64_t place, std::uint8_t byte) { right[place] = byte; });
                return difference(rank, "it should be", out, 0, right.size(),
                                  [&](std::uint64_t i) { return right[i]; });
            }
        }
        std::abort();
    }

    // The operation of the reduction; `context` is the definition.
    static void combine(const void* left, const void* right, void* target, std::size_t bytes, void* context) {
        const auto* a = static_cast<const std::uint8_t*>(left);
        const auto* b = static_cast<const std::uint8_t*>(right);
        auto* to = static_cast<std::uint8_t*>(target);
        switch (static_cast<const Definition*>(context)->operation()) {
            case Operation::add_bytes:
                for (std::size_t i = 0; i < bytes; ++i) to[i] = static_cast<std::uint8_t>(a[i] + b[i]);
                return;
            case Operation::add_floats:
                for (std::size_t i = 0; i + 4 <= bytes; i += 4) {
                    float x = 0, y = 0;
                    std::memcpy(&x, a + i, 4);
                    std::memcpy(&y, b + i, 4);
                    x += y;
                    std::memcpy(to + i, &x, 4);
                }
                return;
            case Operation::compose:
                for (std::size_t i = 0; i + 8 <= bytes; i += 8) {
                    std::uint32_t f[2], g[2];
                    std::memcpy(f, a + i, 8);
                    std::memcpy(g, b + i, 8);
                    const std::uint32_t both[2] = {f[0] * g[0], f[0] * g[1] + f[1]};
                    std::memcpy(to + i, both, 8);
                }
                return;
        }
    }

  private:
    enum class Operation { add_bytes, add_floats, compose };

    const Problem& problem(int rank) const { return problems_[static_cast<std::size_t>(rank)]; }

    Operation operation() const {
        const Problem& any = problems_.front();
        if (!any.commutative) return Operation::compose;
        return any.element_bytes == 4 ? Operation::add_floats : Operation::add_bytes;
    }

    // How long the buffers are; for a broadcast the message, for a reduction the result.
    void make() {
        const Problem& any = problems_.front();
        for (const Problem& mine : problems_) {
            in_bytes_.push_back(in_bytes_of(collective_, mine));
            out_bytes_.push_back(out_bytes_of(collective_, mine));
        }
        if (collective_ == Collective::bcast) {
            message_.resize(any.bytes);
            for (std::uint64_t i = 0; i < any.bytes; ++i) message_[i] = operand(0, i);
        }
        if (collective_ != Collective::allreduce) return;
        std::vector<std::uint8_t> next(any.bytes);
        for (const Problem& mine : problems_) {
            for (std::uint64_t i = 0; i < any.bytes; ++i) next[i] = operand(mine.rank, i);
            if (mine.rank == 0)
                message_ = next;
            else
                combine(message_.data(), next.data(), message_.data(), any.bytes, this);
        }
    }

    // Byte i of what a rank contributes; no two neighbourhoods are alike.
    std::uint8_t operand(int rank, std::uint64_t i) const {
        const std::uint64_t start = seed_ + (static_cast<std::uint64_t>(rank) << 40);
        if (collective_ == Collective::allreduce && operation() == Operation::add_floats) {
            const auto value = static_cast<float>(Random::mix(start + i / 4) % 100003) / 7.0f;
            std::uint8_t bytes[4];
            std::memcpy(bytes, &value, 4);
            return bytes[i % 4];
        }
        return static_cast<std::uint8_t>(Random::mix(start + i / 8) >> (i % 8 * 8));
    }

    // visit(place in out, the byte that ends there) of an alltoallv.
    template <class Visit>
    void each_arrival(int rank, Visit visit) const {
        const auto of = [this](int other) -> const Problem& { return problem(other); };
        for (const Arrival& arrival : arrivals_at(rank, of))
            for (std::uint64_t i = 0; i < arrival.parcel.bytes; ++i)
                visit(arrival.parcel.offset + i, operand(arrival.parcel.peer, arrival.source_offset + i));
    }

    std::uint8_t gap(int rank, std::uint64_t i) const {
        return static_cast<std::uint8_t>(Random::mix(~seed_ + (static_cast<std::uint64_t>(rank) << 40) + i));
    }

    template <class Right>
    std::string difference(int rank, const char* who, const std::uint8_t* out, std::uint64_t from,
                           std::uint64_t to, Right right) const {
        for (std::uint64_t i = from; i < to; ++i)
            if (out[i] != right(i))
                return "rank " + std::to_string(rank) + ": byte " + std::to_string(i) + " of " +
                       std::to_string(out_bytes(rank)) + " is " + std::to_string(out[i]) + ", " + who +
                       " is " + std::to_string(right(i));
        return {};
    }

    // About the sum, and every bit as on the rank that was compared first.
    std::string compare_floats(int rank, const std::uint8_t* out) const {
        const std::uint64_t bytes = problem(rank).bytes;
        for (std::uint64_t i = 0; i + 4 <= bytes; i += 4) {
            float got = 0, about = 0;
            std::memcpy(&got, out + i, 4);
            std::memcpy(&about, message_.data() + i, 4);
            if (!(std::abs(got - about) <= 1e-3f * about))
                return "rank " + std::to_string(rank) + ": element " + std::to_string(i / 4) + " is " +
                       std::to_string(got) + ", it should be about " + std::to_string(about);
        }
        if (first_.empty()) first_.assign(out, out + bytes);
        return difference(rank, "the first rank's", out, 0, bytes,
                          [&](std::uint64_t i) { return first_[i]; });
    }

    Collective collective_;
    std::uint64_t seed_;
    std::vector<Problem> problems_;
    std::vector<std::uint64_t> in_bytes_, out_bytes_;  // by rank
    std::vector<std::uint8_t> message_;
    mutable std::vector<std::uint8_t> first_;
};

}  // namespace thalweg::oracle
