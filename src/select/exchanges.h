// Exchanges between all ranks, whose pairs may differ: what their messages are like together, and how a plan
// of one runs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/mixing.h"
#include "select/neighbours.h"
#include "select/select.h"
#include "topology/topology.h"

namespace thalweg {

// What all ranks' messages look like together.
struct Traits {
    std::uint64_t mean_bytes = 0;          // of an ordered pair of different ranks, rounded up
    std::uint64_t messages = 0;            // of a call, that have bytes, between different ranks; rounded up
    std::uint64_t mean_message_bytes = 0;  // of these: of few neighbours most pairs have none; rounded up
    // Mean of the squares of their sizes over the square of the mean: 1 where they are alike.
    double unevenness = 1;
    // Both ends of every message give it the same bytes, as the standard demands; where they do not, it is
    // false with all but one chance in 2^64.
    bool sizes_agree = false;
    // At every distance in the ring of ranks who sends receives, too (is_in_step), on all ranks and in every
    // call.
    bool in_step = false;
};

// What one rank says of its messages; the sums of what all ranks say are what all messages look like. Bytes,
// messages, what is left over where sizes do not agree, sizes and their squares in KiB, and whether it is out
// of step.
inline constexpr std::size_t trait_words = 6, word_of_digests = 2, word_out_of_step = 5;
using TraitWords = std::array<std::uint64_t, trait_words>;
// Adds a message of its sender to another rank; one of no bytes does not count.
void count_message(TraitWords& words, std::uint64_t bytes);
// Of `calls` calls between `size` ranks, whose words were all added up: what one of them is like on average.
// Pre: calls > 0.
Traits traits_of(const TraitWords& sums, int size, std::uint64_t calls = 1);

// Whether most pairs of `size` ranks have no message.
bool is_sparse(const Traits& traits, int size);
// Whether so many have none, and ranks out of step, that rounds are upset.
bool upsets_rounds(const Traits& traits, int size);
// Whether messages that go straight to their ranks go in the order in which hosts and ranks meet in pairs:
// where a pair has none, and some rank is out of step. By distance, who has none for the rank it would meet
// is a message ahead from then on, and two send to one while nobody sends to another.
bool meets_in_pairs(const Choice& choice, const Traits& traits, const Topology& topology);

// Whether `rank` of `size`, at each distance in the ring of ranks, receives a message where it sends one, and
// else none: true with one chance in 2^64 where it does not. Where all ranks do, messages by distance find
// every rank either sending to one and receiving from one, or left out together with those it would have met:
// a shift along a ring, one way or both, and messages between all, but neither a square nor a line.
template <typename List>
bool is_in_step(const List& outgoing, const List& incoming, int rank, int size) {
    const auto of = [size](int from, int to) {
        return mixed(static_cast<std::uint64_t>(to < from ? to - from + size : to - from));
    };
    std::uint64_t left_over = 0;  // a message to itself adds nothing
    for (const auto& message : outgoing)
        if (message.bytes != 0) left_over += of(rank, message.peer);
    for (const auto& message : incoming)
        if (message.bytes != 0) left_over -= of(message.peer, rank);
    return left_over == 0;
}

// How a persistent exchange between all ranks runs.
struct PlannedExchange {
    Decision decision;
    bool in_pairs = false;  // Exchange::in_pairs
};

// `by_mean`: what the selector of the communicator decides for messages of traits.mean_bytes; what was asked
// for there stays. Where sizes do not agree, every message goes straight. `neighbours`: what decides of a
// sparse one; null elsewhere.
PlannedExchange decide_planned(Decision by_mean, const Traits& traits, const NeighbourSelector* neighbours,
                               const Topology& topology);

// Where sizes differ by more (Traits::unevenness), rounds wait for their largest message. Of messages of
// which one in ten is three times as large as the others it is 1.25.
inline constexpr double even = 1.25;
// The same of neighbours, who are few: rounds gain where all messages are alike, and wait where they are not.
// A refined mesh, whose messages differ by a fifth and more, takes 2 % less without them.
inline constexpr double even_neighbours = 1.05;
// A plan between neighbours whose messages differ by more is not in rounds, unless those were asked for.
void at_once_if_uneven(Decision& decision, double unevenness);

}  // namespace thalweg
