// What each collective means, written from the MPI standard: one function per collective for what a rank
// holds at the start, and one for what it must hold at the end. Used by the oracle and, as contracts, by the
// validator.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "algorithms/algorithm.h"
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

class Definition {
  public:
    Definition(Collective collective, const Problem& problem, std::uint64_t seed)
        : collective_(collective), problem_(problem), seed_(Random::mix(seed + 1)) {
        // One table of message bytes, shared by all ranks; no two neighbourhoods in it are alike.
        message_.resize(problem.bytes);
        for (std::uint64_t i = 0; i < problem.bytes; ++i)
            message_[i] = static_cast<std::uint8_t>(Random::mix(seed_ + i / 8) >> (i % 8 * 8));
    }

    std::uint64_t in_bytes(int rank) const { return contract(collective_, problem_, rank).in_bytes; }
    std::uint64_t out_bytes(int rank) const { return contract(collective_, problem_, rank).out_bytes; }

    // Writes what `rank` holds before the first step: its data, and elsewhere in `out` what is certainly
    // wrong.
    void fill(int rank, std::uint8_t* in, std::uint8_t* out) const {
        (void)in;
        switch (collective_) {
            case Collective::bcast:
                for (std::uint64_t i = 0; i < problem_.bytes; ++i)
                    out[i] = rank == problem_.root ? message_[i] : static_cast<std::uint8_t>(~message_[i]);
                return;
        }
        std::abort();
    }

    // Empty when `rank` holds what it must after the last step, else one sentence.
    std::string compare(int rank, const std::uint8_t* in, const std::uint8_t* out) const {
        (void)in;
        switch (collective_) {
            case Collective::bcast:  // MPI-4.1, 6.4: the contents of root's buffer are copied to all
                                     // processes
                if (problem_.bytes == 0 || std::memcmp(out, message_.data(), problem_.bytes) == 0) return {};
                for (std::uint64_t i = 0;; ++i)
                    if (out[i] != message_[i])
                        return "rank " + std::to_string(rank) + ": byte " + std::to_string(i) + " of " +
                               std::to_string(problem_.bytes) + " is " + std::to_string(out[i]) +
                               ", the root's is " + std::to_string(message_[i]);
        }
        std::abort();
    }

    static Contract contract(Collective collective, const Problem& problem, int rank) {
        switch (collective) {
            case Collective::bcast: {
                Contract contract;
                contract.out_bytes = problem.bytes;
                contract.required = {{Buffer::out, 0, problem.bytes}};
                contract.expected = {{{Buffer::out, 0, problem.bytes}, problem.root, Buffer::out, 0}};
                if (rank == problem.root) contract.defined = contract.required;
                return contract;
            }
        }
        std::abort();
    }

  private:
    Collective collective_;
    Problem problem_;
    std::uint64_t seed_;
    std::vector<std::uint8_t> message_;
};

// What validate() checks the schedule of problem.rank against.
inline Contract contract_for(Collective collective, const Problem& problem) {
    return Definition::contract(collective, problem, problem.rank);
}

// The contracts of all ranks; problem.rank does not matter.
inline std::vector<Contract> contracts_for(Collective collective, const Problem& problem) {
    std::vector<Contract> contracts;
    contracts.reserve(static_cast<std::size_t>(problem.size));
    for (int rank = 0; rank < problem.size; ++rank)
        contracts.push_back(Definition::contract(collective, problem, rank));
    return contracts;
}

}  // namespace thalweg::oracle
