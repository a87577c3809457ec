// Credits: how many bytes a peer may be sent before it has shown that it receives them.
//
// No message carries credits. A *synchronous* send completes only after its receiver has matched it; as
// messages of a pair are matched in their order, its completion acknowledges everything posted to that peer
// before it. So one message in about credit_bytes / 4 is made synchronous, preferably one of no bytes, and a
// message that would exceed the credit is held until the synchronous one before it completes.
//
// Bound: posted - acknowledged <= credit_bytes, or one message alone where that message is larger. The oldest
// incomplete send of an execution is never held (window.h needs that); it is then synchronous, so each
// running execution may exceed the bound by that one message and no more.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>

namespace thalweg {

// What one peer has been sent, in bytes that count (message_overhead_bytes included), from the channel's
// beginning.
struct Credit {
    std::uint64_t posted = 0;
    std::uint64_t acknowledged = 0;
    std::uint64_t synchronous = 0;  // `posted` right after the latest synchronous message
    std::uint32_t pending = 0;      // synchronous messages not complete yet

    std::uint64_t owed() const { return posted - acknowledged; }
};

enum class Admission : std::uint8_t { buffered, synchronous, hold };

// When it is a message's turn to be synchronous: when more than the credit divided by this has gone since the
// latest one. The last message of an operation to a peer would make the operation wait for that peer's
// arrival, so an earlier one is made synchronous where there is a choice. One that is confirmed, by a message
// of no bytes behind it (schedule/receipts.h), leaves it to that one.
enum class Turn : std::uint8_t { confirmed = 1, last = 2, early = 4 };

// The messages of one operation to one peer, in their order: what turn each of them has.
class Turns {
  public:
    void add(std::uint64_t bytes) {
        has_bytes_ |= bytes != 0;
        ends_empty_ = bytes == 0;
    }
    // Of a message of `bytes` bytes, when all have been added.
    Turn of(std::uint64_t bytes, bool last) const {
        if (has_bytes_ && ends_empty_) return bytes != 0 ? Turn::confirmed : Turn::early;
        return last ? Turn::last : Turn::early;
    }

  private:
    bool has_bytes_ = false, ends_empty_ = false;
};

class CreditLedger {
  public:
    explicit CreditLedger(std::uint64_t credit_bytes) : credit_bytes_(credit_bytes) {}

    // The peer's account; its address stays valid for the ledger's life. Allocates on the first call for a
    // peer.
    Credit* account(int peer);

    // How a message of `cost` bytes may be posted now.
    Admission admit(const Credit& credit, std::uint64_t cost, Turn turn, bool oldest) const {
        const std::uint64_t since = credit.posted - credit.synchronous + cost;
        if (credit.pending != 0 && credit.owed() + cost > credit_bytes_) {
            return oldest ? Admission::synchronous : Admission::hold;
        }
        return since > credit_bytes_ / static_cast<std::uint64_t>(turn) ? Admission::synchronous
                                                                        : Admission::buffered;
    }

    // Returns the mark that acknowledge() wants back when a synchronous message is complete.
    std::uint64_t post(Credit& credit, std::uint64_t cost, bool synchronous) {
        credit.posted += cost;
        if (synchronous) {
            credit.synchronous = credit.posted;
            ++credit.pending;
        }
        if (credit.owed() > largest_owed_) largest_owed_ = credit.owed();
        return credit.posted;
    }
    void acknowledge(Credit& credit, std::uint64_t mark) {
        --credit.pending;
        if (mark > credit.acknowledged) credit.acknowledged = mark;
        ++acknowledgements_;
    }

    std::uint64_t acknowledgements() const { return acknowledgements_; }
    // The most that any peer has ever owed; what the tests hold against the bound.
    std::uint64_t largest_owed() const { return largest_owed_; }

  private:
    std::uint64_t credit_bytes_;
    std::uint64_t acknowledgements_ = 0;
    std::uint64_t largest_owed_ = 0;
    std::unordered_map<int, std::unique_ptr<Credit>> accounts_;
};

}  // namespace thalweg
