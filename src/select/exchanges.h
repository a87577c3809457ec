// Exchanges between all ranks, whose pairs may differ: what their messages are like together, and how a plan
// of one runs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

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
    // Each message is the k-th of both its ends (count_steps), as sure as sizes agree: where ranks are in the
    // order by distance, and where they meet in pairs.
    bool in_step = false, in_step_in_pairs = false;
};

// What one rank says of its messages; the sums of what all ranks say are what all messages look like. Bytes,
// messages, what is left over where sizes do not agree, sizes and their squares in KiB, and what is left over
// where ranks are out of step, by distance and in pairs.
inline constexpr std::size_t trait_words = 7, word_of_digests = 2, word_by_distance = 5, word_in_pairs = 6;
using TraitWords = std::array<std::uint64_t, trait_words>;
// Adds a message of its sender to another rank; one of no bytes does not count.
void count_message(TraitWords& words, std::uint64_t bytes);
// Numbers what `rank` of `size` sends to others, from the first message to the last in an order of all, less
// what it receives: nothing is left over of all ranks where each message is the k-th of both its ends. Ranks
// that exchange message after message are in step then: by distance, where messages are between all or shift
// along a ring, one way or both; in pairs, on cubes and along lines. Of several hosts only what leaves its
// host is in pairs: the rest does not wait (alltoallv/pairwise.cpp). A topology of another size says nothing
// of hosts.
void count_steps(TraitWords& words, std::vector<int> to, std::vector<int> from, int rank, int size,
                 const Topology& topology);
// Both, of all that `rank` sends and receives. Without memory it is out of step.
template <typename List>
void count_exchange(TraitWords& words, const List& outgoing, const List& incoming, int rank, int size,
                    const Topology& topology) noexcept {
    for (const auto& message : outgoing)
        if (message.peer != rank) count_message(words, message.bytes);
    const auto peers_of = [rank](const List& messages) {
        std::vector<int> peers;
        for (const auto& message : messages)
            if (message.bytes != 0 && message.peer != rank) peers.push_back(message.peer);
        return peers;
    };
    try {
        count_steps(words, peers_of(outgoing), peers_of(incoming), rank, size, topology);
    } catch (const std::bad_alloc&) {
        ++words[word_by_distance];
        ++words[word_in_pairs];
    }
}
// Of `calls` calls between `size` ranks, whose words were all added up: what one of them is like on average.
// Pre: calls > 0.
Traits traits_of(const TraitWords& sums, int size, std::uint64_t calls = 1);

// Whether most pairs of `size` ranks have no message.
bool is_sparse(const Traits& traits, int size);
// Whether messages go in the order in which hosts and ranks meet in pairs: those that go straight to their
// ranks, where a pair has none and ranks are not in step by distance, and pieces between hosts, where rounds
// would be upset and pairs are in step.
bool meets_in_pairs(const Choice& choice, const Traits& traits, const Topology& topology);
// Whether so many pairs have none, and ranks are out of step, that rounds, pieces that flow or not, are
// upset: who has nothing for the one it meets is a message ahead of it from then on, two send to one while
// nobody sends to another, and pieces wait for the wrong ones.
bool is_upset(const Choice& choice, const Traits& traits, const Topology& topology);

// How a persistent exchange between all ranks runs.
struct PlannedExchange {
    Decision decision;
    bool in_pairs = false;  // Exchange::in_pairs
};

// What the selector of a communicator is asked for, of which exchanges between all ranks are like that.
std::uint64_t deciding_bytes(const Traits& traits, const Topology& topology);
// What decides of a sparse exchange between hosts: neighbours, unless by size the library has it (`by_size`)
// and no table names what neighbours take instead. What a table says of calls in which all pairs have a
// message is not said of a few of them.
Decision decide_sparse(Decision by_size, const Traits& traits, const NeighbourSelector& neighbours);
// `by_size`: what it decides for messages of deciding_bytes(); what was asked for there stays. Where sizes do
// not agree, every message goes straight. Where rounds would wait for uneven messages, `selector` decides.
// `neighbours`: what decides of a sparse one; null elsewhere.
PlannedExchange decide_planned(Decision by_size, const Traits& traits, const Selector& selector,
                               const NeighbourSelector* neighbours, const Topology& topology);

// Where sizes differ by more (Traits::unevenness), rounds wait for their largest message. Of messages of
// which one in ten is three times as large as the others it is 1.25.
inline constexpr double even = 1.25;
// The same of neighbours, who are few: rounds gain where all messages are alike, and wait where they are not.
// A refined mesh, whose messages differ by a fifth and more, takes 2 % less without them.
inline constexpr double even_neighbours = 1.05;
// How a plan between neighbours runs, of which `decision` knows the largest message alone: rounds are left
// where messages differ by more than that, and where ranks are out of step in pairs and by distance, unless
// they were asked for. Returns Exchange::in_pairs: false where ranks are in step by distance only, as on a
// ring of odd length, and where all have a message for all.
bool settle_neighbours(Decision& decision, const Traits& traits, const Topology& topology);

}  // namespace thalweg
