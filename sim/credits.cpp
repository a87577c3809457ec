#include "sim/credits.h"

#include <random>

#include "engine/engine.h"

namespace thalweg::sim {

Credits::Credits(const Matching& matching, bool puts, unsigned before, std::uint64_t seed)
    : matching_(matching),
      puts_(puts),
      ledger_(Limits{}.credit_bytes),
      accounts_(matching.pairs),
      marks_(matching.messages.size(), 0),
      turns_(matching.messages.size(), Turn::early),
      held_(matching.pairs) {
    for (std::uint32_t pair = 0; pair < matching.pairs; ++pair)
        accounts_[pair] = ledger_.account(static_cast<int>(pair));
    if (seed != 0) {
        std::mt19937_64 random(seed);
        for (Credit* credit : accounts_)
            credit->posted = credit->acknowledged = random() % (Limits{}.credit_bytes / 4);
    }
    take_turns();
    for (unsigned i = 0; i < before; ++i) one_operation();
}

// As the engine gives them out (Execution::Impl::sort_messages).
void Credits::take_turns() {
    const auto& messages = matching_.messages;
    for (MessageId begin = 0, end = 0; begin < messages.size(); begin = end) {
        Turns turns(ledger_.credit_bytes());
        const auto together = [&, first = messages[begin]](const Matched& other) {
            return other.pair == first.pair && other.operation == first.operation;
        };
        for (; end < messages.size() && together(messages[end]); ++end) turns.add(messages[end].bytes);
        for (MessageId m = begin; m < end; ++m) turns_[m] = turns.next(messages[m].bytes);
    }
}

void Credits::one_operation() {
    const auto settle = [this](Credit& credit) {
        while (credit.pending > 0) ledger_.acknowledge(credit, credit.synchronous);
    };
    for (MessageId m = 0; m < marks_.size(); ++m) {
        if (!counts(m)) continue;
        Credit& credit = account(m);
        Admission admission = admit(m, false);
        if (admission == Admission::hold) {
            settle(credit);
            admission = admit(m, false);
        }
        ledger_.post(credit, cost(m), admission == Admission::synchronous);
    }
    for (Credit* credit : accounts_) settle(*credit);
}

std::uint64_t Credits::cost(MessageId m) const {
    return matching_.messages[m].bytes + message_overhead_bytes;
}

Admission Credits::admit(MessageId m, bool oldest) {
    return ledger_.admit(account(m), cost(m), turns_[m], oldest);
}

bool Credits::post(MessageId m, bool oldest) {
    const Admission admission = admit(m, oldest);
    if (admission == Admission::hold) {
        held_[matching_.messages[m].pair].push_back(m);
        return false;
    }
    const bool synchronous = admission == Admission::synchronous;
    const std::uint64_t mark = ledger_.post(account(m), cost(m), synchronous);
    if (synchronous) marks_[m] = mark;
    return true;
}

std::vector<Credits::MessageId> Credits::acknowledge(MessageId m) {
    ledger_.acknowledge(account(m), marks_[m]);
    std::deque<MessageId>& held = held_[matching_.messages[m].pair];
    std::vector<MessageId> again(held.begin(), held.end());
    held.clear();
    return again;
}

}  // namespace thalweg::sim
