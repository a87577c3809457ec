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
// latest one. An operation waits for the answers to all of its messages, and one to a late message stands
// behind other bytes when everything else is there: `late` are those with less than a quarter of the credit
// behind them in their operation, but for the first of several. One that is confirmed, by a message of no
// bytes behind it (schedule/receipts.h), leaves it to that one.
enum class Turn : std::uint8_t { confirmed = 1, late = 2, early = 4 };

// The messages of one operation to one peer: what turn each of them has.
class Turns {
  public:
    explicit Turns(std::uint64_t credit_bytes) : credit_bytes_(credit_bytes) {}

    // In their order.
    void add(std::uint64_t bytes) {
        ++messages_;
        behind_ += bytes;
        has_bytes_ |= bytes != 0;
        ends_empty_ = bytes == 0;
    }
    // The turn of the next message, in the same order, when all have been added.
    Turn next(std::uint64_t bytes) {
        const bool first_of_several = messages_ > 1 && !begun_;
        begun_ = true;
        behind_ -= bytes;
        if (has_bytes_ && ends_empty_) return bytes != 0 ? Turn::confirmed : Turn::early;
        const bool early = behind_ >= credit_bytes_ / static_cast<std::uint64_t>(Turn::early);
        return first_of_several || early ? Turn::early : Turn::late;
    }

  private:
    std::uint64_t credit_bytes_, behind_ = 0;
    std::uint32_t messages_ = 0;
    bool begun_ = false, has_bytes_ = false, ends_empty_ = false;
};

class CreditLedger {
  public:
    explicit CreditLedger(std::uint64_t credit_bytes) : credit_bytes_(credit_bytes) {}

    std::uint64_t credit_bytes() const { return credit_bytes_; }

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
