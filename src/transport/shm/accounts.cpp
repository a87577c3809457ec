// What messages took, for reports: by peer, over all channels; and by peer of a channel that has accounts.
// And whose memory the port holds.
#include <algorithm>

#include "base/clock.h"
#include "base/float_modes.h"
#include "transport/shm/channel.h"

namespace thalweg {

static_assert(ShmAccount::protocols == static_cast<int>(shm::protocols.size()));
static_assert(ShmAccount::reasons == shm::reasons);

const char* ShmAccount::name_of(int protocol) {
    return shm::protocols[static_cast<std::size_t>(protocol)]->name;
}

const char* ShmAccount::reason_of(int reason) { return describe(static_cast<shm::Because>(reason)); }

std::vector<ShmAccount> ShmPort::Impl::accounts() {
    const Poster lock(*this);
    std::vector<ShmAccount> all;
    for (const auto& [process, peer] : peers_) {
        ShmAccount account = peer->account;
        for (int i = 0; i < shm::Chooser::classes; ++i) {
            const shm::Chooser::Account& sizes = peer->chooser.account(i);
            account.switches += sizes.switches;
            for (std::size_t why = 0; why < sizes.messages_because.size(); ++why)
                account.messages_because[why] += sizes.messages_because[why];
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

void ShmPort::Impl::note_copied(const Request& job, std::uint64_t taken_ns) {
    if (PeerAccount* const account = account_of(job)) account->copied(taken_ns);
}

void ShmPort::Impl::note_out_of_ring(const Request& receive, std::size_t bytes, std::uint64_t taken_ns) {
    in_standard_modes(
        [&] { rates_.measured_out_of_ring(shm::size_class_of(receive.bytes), bytes, seconds(taken_ns)); });
}

void ShmPort::Impl::note_received(const Request& request, std::uint64_t taken_ns) {
    if (request.kind != Request::Kind::receive) return;
    PeerAccount* const account = account_of(request);
    if (account == nullptr) return;
    const bool whole = request.protocol == nullptr;
    account->received(whole ? Way::eager : way_of(*request.protocol), request.bytes);
    if (!whole)
        account->arrived_after(taken_ns);
    else if (request.bytes != 0)
        account->takes(0, {Way::eager, "short messages travel at once"});
}

namespace {

// Where the bytes of a message lie in this process, and what is in between.
std::pair<std::uintptr_t, std::uintptr_t> place_of(const Request& request) {
    if (!request.elements) {
        const auto begin = reinterpret_cast<std::uintptr_t>(request.data);
        return {begin, begin + request.bytes};
    }
    const StandIn& whole = *request.elements.whole;
    const std::uint64_t count = whole.bytes / whole.layout->size();
    const auto base = reinterpret_cast<std::uintptr_t>(whole.elements);
    return {base + static_cast<std::uintptr_t>(whole.layout->lower(count)),
            base + static_cast<std::uintptr_t>(whole.layout->upper(count))};
}

}  // namespace

// Of a send that was given up the peer may still read what it was told of, until it says that it does not.
bool ShmPort::Impl::holds(const void* memory, std::size_t bytes) {
    const auto begin = reinterpret_cast<std::uintptr_t>(memory), end = begin + bytes;
    const Poster lock(*this);
    for (const Request& request : requests_) {
        const bool early = request.kind == Request::Kind::none || request.kind == Request::Kind::early;
        const bool touched = request.channel != nullptr || request.copying ||
                             (request.awaits_peer && request.bytes > options_.eager_bytes);
        if (early || !touched || request.bytes == 0) continue;
        const auto [first, last] = place_of(request);
        if (first < end && begin < last) return true;
    }
    return std::any_of(channels_.begin(), channels_.end(),
                       [&](const auto& known) { return known.second->holds(begin, end); });
}

bool shm::Channel::holds(std::uintptr_t begin, std::uintptr_t end) const {
    const auto meets = [&](std::uintptr_t first, std::uintptr_t last) { return first < end && begin < last; };
    return std::any_of(exposed_.begin(), exposed_.end(),
                       [&](const Exposed& exposed) {
                           return exposed.bytes != 0 &&
                                  meets(exposed.address, exposed.address + exposed.bytes);
                       }) ||
           std::any_of(known_.begin(), known_.end(),
                       [&](const Mapped& known) { return known.place && meets(known.begin, known.end); });
}

}  // namespace thalweg
