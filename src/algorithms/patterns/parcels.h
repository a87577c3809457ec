// The messages of one rank of an alltoallv in the order in which an algorithm exchanges them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "algorithms/algorithm.h"
#include "algorithms/exchange.h"
#include "schedule/builder.h"

namespace thalweg::patterns {

// How far `to` is behind `from` in the ring of ranks: 0 … size-1.
constexpr int distance(int from, int to, int size) { return to >= from ? to - from : to - from + size; }

// In which place ranks a and b meet, where they meet in pairs; 0: they are one.
std::uint64_t meeting(int a, int b);

// The same of a message from one host to another: hosts meet, and of the ranks of the two each sends first to
// the one whose place on its host is its own, then to the next. Pre: not on one host.
std::uint64_t meeting(const Topology& topology, int from, int to);

// Messages to and from others: those with bytes, and those without where Exchange::empty_travel. Both ends of
// a message give it the same place in the order of all messages, so that an exchange in this order settles in
// the smallest window (engine/window.h).
class Parcels {
  public:
    // By distance; with `far_first`, those that leave the host come before those that stay, and where
    // Exchange::in_pairs hosts, and the ranks of a host, meet in pairs.
    //
    // By distance, a rank sends to the one i places behind it while the one i places before it sends to it:
    // so each has one to send to and one to receive from, as long as everybody has a message for every
    // distance. Who has none goes on to the next, and where neighbours are few, two soon send to one while
    // another receives nothing: a square of four hosts needs 1.5 times what its links do. In pairs, a and b
    // meet in the same place: |a - b|, and of equal ones those first for whom min(a, b) / |a - b|, whole, is
    // even. Those of one place are pairs that have no rank in common, because v - d and v have another parity
    // than v and v + d; who has nobody to meet there is left out at both ends, and what follows stays in
    // step. On a grid whose ranks are numbered row by row those are, dimension by dimension, the even edges
    // and then the odd ones.
    Parcels(const Problem& problem, const Topology& topology, bool far_first);

    // A message and its place among all: equal at both ends.
    struct Placed {
        std::uint64_t place = 0;
        Parcel parcel;
    };
    std::span<const Placed> outgoing() const { return outgoing_; }
    std::span<const Placed> incoming() const { return incoming_; }
    // Adds the copies of what this rank sends to itself.
    void copy_own(Builder& builder) const;

    // Visits both lists merged by place: send(Parcel) for outgoing, recv(Parcel) for incoming. Of one place
    // the receive comes first, so that it is there when its message is sent.
    template <typename Send, typename Receive>
    void each(Send send, Receive receive) const {
        std::size_t next = 0;
        for (const Placed& out : outgoing_) {
            for (; next < incoming_.size() && incoming_[next].place <= out.place; ++next)
                receive(incoming_[next].parcel);
            send(out.parcel);
        }
        for (; next < incoming_.size(); ++next) receive(incoming_[next].parcel);
    }

    std::uint64_t sent_bytes() const;
    // Of outgoing(), those of no bytes.
    std::uint64_t empty_messages() const;

  private:
    std::vector<Placed> outgoing_, incoming_;
    std::vector<Parcel> from_own_, to_own_;
};

// What a rank sends to itself and receives from itself, where these are not of the same size.
struct OwnMisfit {
    std::vector<Slice> gaps;  // of `out`, that nothing comes for
    bool truncated = false;   // more is sent than is received
};
OwnMisfit own_misfit(const Exchange& exchange, int rank);

// All parcels of a rank, those to itself included, where every pair exchanges problem.bytes or as
// problem.exchange says.
std::vector<Parcel> outgoing_of(const Problem& problem);
std::vector<Parcel> incoming_of(const Problem& problem);

}  // namespace thalweg::patterns
