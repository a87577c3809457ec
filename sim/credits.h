// Which messages of the replayed engine are synchronous, and which wait for a peer's acknowledgement:
// production's own ledger (engine/credits.h). Private to the replay.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "engine/credits.h"
#include "sim/matching.h"

namespace thalweg::sim {

class Credits {
  public:
    using MessageId = std::uint32_t;

    // As `before` operations of the same messages left them, each acknowledged before the next. What every
    // pair had been sent before those is drawn from `seed`; 0: nothing. `puts`: direct messages are, and
    // count for nothing, as those that are left to the library. The reference must outlive this.
    Credits(const Matching& matching, bool puts, unsigned before, std::uint64_t seed);

    // Message m is ready to be posted; `oldest`: no send of its rank before it is incomplete. False: it is
    // held, and acknowledge() names it again. Pre: messages of a pair come in their order, but for those that
    // are held.
    bool post(MessageId m, bool oldest);

    bool synchronous(MessageId m) const { return marks_[m] != 0; }

    // Synchronous message m is complete. What was held for its peer: to be posted again, in this order.
    std::vector<MessageId> acknowledge(MessageId m);

  private:
    bool counts(MessageId m) const {
        const Matched& message = matching_.messages[m];
        return !message.left && !(puts_ && message.direct);
    }
    Admission admit(MessageId m, bool oldest);
    Credit& account(MessageId m) { return *accounts_[matching_.messages[m].pair]; }
    std::uint64_t cost(MessageId m) const;
    void take_turns();
    void one_operation();

    const Matching& matching_;
    bool puts_;
    CreditLedger ledger_;
    std::vector<Credit*> accounts_;            // per pair
    std::vector<std::uint64_t> marks_;         // per message; 0: buffered
    std::vector<Turn> turns_;                  // per message
    std::vector<std::deque<MessageId>> held_;  // per pair
};

}  // namespace thalweg::sim
