// Calls of the alltoall family and of neighbourhoods that are made again and again with the same arguments:
// what was made of them is kept on their lane, so that the next call like them only starts it.
//
// Nothing that the program may change behind a call is taken from the one before: a datatype that was freed,
// and whose handle another one has, has another identity; and whose memory it is is asked again.
#pragma once

#include <cstdint>
#include <memory>

#include "algorithms/algorithm.h"
#include "plan/collective_call.h"
#include "plan/exchange.h"
#include "plan/lane.h"
#include "plan/ongoing.h"

namespace thalweg {

// All that an operation depends on, but its communicator, whose lane it is kept on.
struct ExchangeKey {
    CallKind kind = CallKind::ibcast;  // what it is counted as
    const void* send = nullptr;
    const void* receive = nullptr;
    Letters letters;
    Choice choice;
    std::uint64_t slot_bytes = 0;  // Exchange's
    bool in_pairs = false;         // Exchange's: what the ranks know of the calls may change it
    std::uint32_t generation = 0;  // of the settings that chose it
};

// The same of a call that is being made.
struct ExchangeView {
    const CollectiveCall& call;
    const CallShape& shape;
    const Choice& choice;
    std::uint64_t slot_bytes;
    bool in_pairs;
    std::uint32_t generation;

    // Whether calls like it can be told from others. Not persistent ones, which are kept by the program.
    bool repeatable() const;
    bool operator==(const ExchangeKey& key) const;
    // Throws std::bad_alloc.
    ExchangeKey key() const {
        return {call.kind, call.send, call.receive, shape.letters, choice, slot_bytes, in_pairs, generation};
    }
};

// What a call like this one left on its lane, ready to be started; null: nothing. As Lane::take_kept.
std::unique_ptr<Ongoing> take_kept(const std::shared_ptr<Lane>& lane, const ExchangeView& view);

}  // namespace thalweg
