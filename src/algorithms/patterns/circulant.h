// Träff's broadcast schedules on circulant graphs: which block a rank receives and sends in every round, for
// any number of ranks p, computed by each rank for itself.
//
// J. L. Träff, "Fast(er) Construction of Round-optimal n-Block Broadcast Schedules", IEEE CLUSTER 2022
// (arXiv 2205.10072), and "Optimal Broadcast Schedules in Logarithmic Time with Applications to Broadcast,
// All-Broadcast, Reduction and All-Reduction" (arXiv 2312.11236).
//
// With q = ⌈log2 p⌉, the skips are p halved and rounded up again and again: skip[q] = p, skip[k] =
// ⌈skip[k+1]/2⌉, skip[0] = 1. In a round of kind k every rank sends to the one skip[k] after it and receives
// from the one skip[k] before it. In q consecutive rounds a rank receives q different blocks.
#pragma once

#include <vector>

namespace thalweg::patterns {

// skip[0 … q]. p >= 1; q = 0 for p = 1.
std::vector<int> circulant_skips(int p);

// For place v != 0: the block, relative to the current phase of q rounds, that v receives in a round of kind
// k: exactly one is >= 0 (a block of this phase), the others are -1 … -q, each once at most (blocks of the
// phase before). O(log p) time.
std::vector<int> circulant_receives(int v, const std::vector<int>& skip);

// What v sends in a round of kind k: what the receiver expects. For the root block k. O(log² p) time.
std::vector<int> circulant_sends(int v, const std::vector<int>& skip);

}  // namespace thalweg::patterns
