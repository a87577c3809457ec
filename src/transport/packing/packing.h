// Stand-ins (stand_in.h) for a transport that only knows runs of memory: elements are packed when their
// message is posted, so that it is on the wire while the next face is packed, and unpacked when their message
// has come, while others are on their way.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
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
    const void* load(const void* data, std::size_t bytes, std::size_t& packed);
    // Where a message of this slot shall be received; its elements wait for arrived().
    void* expect(Slot slot, void* data, std::size_t bytes, bool unequal);
    // Whether what was last expected there is elements.
    bool expects(Slot slot) const { return static_cast<bool>(expected_[slot].part); }

    // Of slots that the transport has returned: how many have nothing to be unpacked. They become the first
    // of `slots`; the others are returned by unpack().
    std::size_t arrived(std::span<Slot> slots);
    // So much was packed since the last poll that the wire is looked at before more is: an engine posts all
    // that its window admits without a poll, and a large message asks its receiver before it leaves.
    bool wants_look() const;
    // Polls `transport`, in the midst of posting. arrived(slots): as this class's own. What it finds complete
    // take_early() returns.
    template <typename Arrived>
    Status look(Transport& transport, Arrived arrived) {
        packed_bytes_ = 0;
        std::size_t found = 0;
        if (const Status status = transport.progress(looked_, found); failed(status)) return status;
        found = arrived(std::span(looked_).first(found));
        early_.insert(early_.end(), looked_.begin(), looked_.begin() + static_cast<std::ptrdiff_t>(found));
        return Status::ok;
    }
    // To be called by every progress(), first: how many of `done` it has written.
    std::size_t take_early(std::span<Slot> done);
    // All that has arrived is in its place, and its slots are returned.
    bool rests() const { return idle() && early_.empty(); }
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
    std::vector<Slot> looked_;        // room for what a look finds
    std::vector<Slot> early_;         // complete, to be returned
    std::size_t packed_bytes_ = 0;    // since the last poll
};

// `inner` with stand-ins; as it is where it has them. While many faces are packed one after another, without
// a progress() in between, it is polled. `accounts`, where not null, count what is packed, and outlive it.
// Throws std::bad_alloc.
std::unique_ptr<Transport> with_packing(std::unique_ptr<Transport> inner, PeerAccounts* accounts = nullptr);

}  // namespace thalweg
