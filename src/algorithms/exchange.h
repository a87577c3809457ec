// What one rank sends to and receives from others where every pair has its own amount: alltoallv, and
// neighbourhoods. Each rank knows its own messages only; what both ends of a message know is its bytes.
#pragma once

#include <cstdint>
#include <vector>

namespace thalweg {

// One message as one of its ends sees it: `bytes` bytes at `offset`, in `in` where it is sent and in `out`
// where it is received. `peer` is the other end, of the same group; it may be this rank itself, and one peer
// may occur several times.
struct Parcel {
    int peer = 0;
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;

    bool operator==(const Parcel&) const = default;
};

// All bytes that `from` sends to `to`, ranks of the group.
struct Traffic {
    int from = 0;
    int to = 0;
    std::uint64_t bytes = 0;

    bool operator==(const Traffic&) const = default;
};

// The k-th outgoing parcel to a peer meets the k-th incoming one that the peer has from this rank, counted
// in the order of the lists, without those of no bytes (unless `empty_travel`): who means another pairing
// (two edges between the same ranks, a torus of two) orders `incoming` so. Parcels of `incoming` do not
// overlap; those of `outgoing` may.
struct Exchange {
    std::vector<Parcel> outgoing, incoming;
    // Of a rank that sends for its whole host (the lowest rank there), where messages of a host travel
    // together: what every rank of this host sends to, and receives from, every rank of other hosts; only
    // pairs with bytes (or with edges, where those have slots), in ascending order of (from, to). Elsewhere
    // empty.
    std::vector<Traffic> crossing;
    // Whether those ranks know `crossing`: equal on all ranks.
    bool hosts_informed = false;
    // Where they know the edges between hosts but not their bytes: each edge has this much room in what
    // travels together, whatever its message has, and `crossing` counts it. What is larger goes straight to
    // its rank. 0: they know the bytes. Equal on all ranks; with `empty_travel`, because every edge counts.
    std::uint64_t slot_bytes = 0;
    // Whether both ends of every message are known to give it the same bytes: equal on all ranks. Elsewhere
    // the messages travel as they are, each to a receive that may be for more.
    bool sizes_agree = false;
    // Whether parcels of no bytes are messages, too: of edges that both ends know of, and of which the other
    // end may say that it has bytes. Equal on all ranks; for node_leader with slots only.
    bool empty_travel = false;
    // Whether hosts meet in pairs (patterns/parcels.h): the order for those who exchange with a few others
    // that exchange with them. Equal on all ranks.
    bool in_pairs = false;

    bool operator==(const Exchange&) const = default;
};

}  // namespace thalweg
