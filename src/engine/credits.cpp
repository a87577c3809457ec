#include "engine/credits.h"

namespace thalweg {

Credit* CreditLedger::account(int peer) {
    std::unique_ptr<Credit>& credit = accounts_[peer];
    if (!credit) credit = std::make_unique<Credit>();
    return credit.get();
}

}  // namespace thalweg
