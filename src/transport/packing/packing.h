// Stand-ins (stand_in.h) for a transport that only knows runs of memory: elements are packed when their
// message is posted, so that it is on the wire while the next face is packed, and unpacked when their message
// has come, while others are on their way.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "transport/peer_account.h"
#include "transport/stand_in.h"
#include "transport/transport.h"

namespace thalweg {

// The stand-ins of one channel, and its receives that meet them.
class Packing {
  public:
    // Room for the receives of so many slots. Throws std::bad_alloc.
    void grow(Slot slots);

    // Throws std::bad_alloc.
    void add(StandIn memory) { stand_ins_.add(std::move(memory)); }
    void remove(const std::byte* memory) { stand_ins_.remove(memory); }

    // Where the bytes of a message lie that is sent now; `packed`: how many were packed for it.
    const void* load(const void* data, std::size_t bytes, std::size_t& packed) const;
    // Where a message of this slot shall be received; its elements wait for arrived().
    void* expect(Slot slot, void* data, std::size_t bytes, bool unequal);
    // Whether what was last expected there is elements.
    bool expects(Slot slot) const { return static_cast<bool>(expected_[slot].part); }

    // Of slots that the transport has returned: how many have nothing to be unpacked. They become the first
    // of `slots`; the others are returned by unpack().
    std::size_t arrived(std::span<Slot> slots);
    // All that has arrived is in its place.
    bool idle() const { return arrived_.empty(); }
    // Puts some more of what has arrived in its place, the first that came first: about as much as may lie
    // between two looks at the wire. True: that were the last bytes of `slot`. Pre: not idle(); `transport`
    // received them.
    bool unpack(const Transport& transport, Slot& slot);

  private:
    // A receive of elements.
    struct Expected {
        StandInPart part;  // nothing: the bytes are received where they belong
        std::size_t bytes = 0;
        bool unequal = false;  // others may come
    };

    StandIns stand_ins_;
    std::vector<Expected> expected_;  // by slot
    std::vector<Slot> arrived_;       // in the order of their arrival
    std::size_t unpacked_ = 0;        // bytes of the first of them
};

// `inner` with stand-ins; as it is where it has them. While many faces are packed one after another, without
// a progress() in between, it is polled. What is packed for a peer is noted in `accounts`, if there are any.
// Throws std::bad_alloc.
std::unique_ptr<Transport> with_packing(std::unique_ptr<Transport> inner, PeerAccounts* accounts = nullptr);

}  // namespace thalweg
