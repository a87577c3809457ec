// What messages took, for reports: by peer, over all channels; and by peer of a channel that has accounts.
#include "transport/shm/channel.h"

namespace thalweg {

static_assert(ShmAccount::protocols == static_cast<int>(shm::protocols.size()));

const char* ShmAccount::name_of(int protocol) {
    return shm::protocols[static_cast<std::size_t>(protocol)]->name;
}

std::vector<ShmAccount> ShmPort::Impl::accounts() {
    const Poster lock(*this);
    std::vector<ShmAccount> all;
    for (const auto& [process, peer] : peers_) {
        ShmAccount account = peer->account;
        for (int i = 0; i < shm::Chooser::classes; ++i) {
            const shm::Chooser::Account& sizes = peer->chooser.account(i);
            account.switches += sizes.switches;
            if (sizes.protocol == nullptr) continue;
            account.protocol = sizes.protocol->name;
            account.because = describe(sizes.because);
        }
        if (account.protocol[0] != '\0') all.push_back(account);
    }
    return all;
}

namespace {

using shm::Request;

// Null: nobody counts it, or nobody wants to know of it any more.
PeerAccount* account_of(const Request& request) {
    return request.channel == nullptr ? nullptr : request.channel->account_of(request.slot);
}

static_assert(PeerAccount::classes == 1 + shm::size_classes);

Way way_of(const shm::Protocol& protocol) { return static_cast<Way>(number_of(protocol)); }

}  // namespace

// A trial is not what is in use.
void ShmPort::Impl::note_decision(const Request& receive) {
    PeerAccount* const account = account_of(receive);
    if (account == nullptr) return;
    const int size_class = shm::size_class_of(receive.bytes);
    const shm::Chooser::Account& taken = receive.peer->chooser.account(size_class);
    if (taken.protocol != nullptr)
        account->takes(1 + size_class, {way_of(*taken.protocol), describe(taken.because)});
}

void ShmPort::Impl::note_copied(const Request& job, double seconds) {
    if (PeerAccount* const account = account_of(job)) account->copied(seconds);
}

void ShmPort::Impl::note_received(const Request& request, double taken_s) {
    if (request.kind != Request::Kind::receive) return;
    PeerAccount* const account = account_of(request);
    if (account == nullptr) return;
    const bool whole = request.protocol == nullptr;
    account->received(whole ? Way::eager : way_of(*request.protocol), request.bytes);
    if (!whole)
        account->arrived_after(taken_s);
    else if (request.bytes != 0)
        account->takes(0, {Way::eager, "short messages travel at once"});
}

}  // namespace thalweg
