// Greetings: both ends of a pair have their endpoints before either sends anything else.
//
// Over TCP libucp opens a connection from the side whose endpoint is made first, for one direction. Where the
// other side makes its endpoint later, that takes the connection over, both ways, and the two agree on it by
// messages in the same stream. While data was on its way there they do not (seen in 1.20.1): the data never
// arrives, nor does anything behind it. Receivers make endpoints, too (post_recv says why), and where the
// sender was first its data was on its way: a rank that was late, and busy with something else.
//
// So who wants to send something to a peer, or waits for something of it, first sends a greeting, an active
// message of eight bytes, on each rail; who is greeted makes its endpoints and greets back when it polls for
// the first time; and until a peer has greeted on all rails, and what greets it has left on all of them, what
// is to be sent to it is held. From then on nothing takes over any connection of the pair, and nothing waits
// within libucp for one to be complete: puts to a peer that died before were never answered. Endpoints that
// are made for other reasons say nothing: the peer would answer when it polls, which may be as both end.
//
// Over several devices a greeting crosses the first connection of an endpoint alone. libucp makes all of
// them, or takes them over, as it makes the endpoint, which is before the greeting.
#include <cstring>
#include <new>
#include <utility>

#include "transport/ucx/channel.h"

namespace thalweg {

using ucx::Channel;
using ucx::Greeting;
using ucx::Held;
using ucx::Peer;
using ucx::Rail;

namespace {

constexpr unsigned greeting_id = 1;

}  // namespace

ucs_status_t UcxPort::Impl::listen(const Rail& rail) {
    ucp_am_handler_param_t parameters = {};
    parameters.field_mask =
        UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
    parameters.id = greeting_id;
    parameters.cb = &Impl::on_greeting;
    parameters.arg = this;
    return ucp_.worker_set_am_recv_handler(rail.worker, &parameters);
}

Status UcxPort::Impl::reach(std::uint32_t process, Peer*& peer) {
    peer = find(process);
    if (!peer || peer->dead) return Status::transport_failed;
    if (peer->reached) return Status::ok;
    for (std::size_t rail = 0; rail < rails_.size(); ++rail)
        if (!peer->endpoints[rail] && failed(connect(*peer, rail))) return Status::transport_failed;
    peer->reached = true;
    return Status::ok;
}

Status UcxPort::Impl::meet(std::uint32_t process, Peer*& peer) {
    if (failed(reach(process, peer))) return Status::transport_failed;
    if (std::exchange(peer->greets, true)) return Status::ok;
    for (std::size_t rail = 0; rail < rails_.size(); ++rail)
        if (failed(greet(*peer, rail))) return Status::transport_failed;
    return Status::ok;
}

Status UcxPort::Impl::connect(Peer& peer, std::size_t rail) {
    ucx::AddressView view;
    parse_address(address_of(peer.process), view);
    ucp_ep_params_t parameters = {};
    parameters.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                            UCP_EP_PARAM_FIELD_ERR_HANDLER;
    parameters.address = reinterpret_cast<const ucp_address_t*>(view.rails[rail].data());
    parameters.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    parameters.err_handler.cb = &Impl::on_error;
    parameters.err_handler.arg = &peer;
    const ucs_status_t status = ucp_.ep_create(rails_[rail].worker, &parameters, &peer.endpoints[rail]);
    if (status == UCS_OK) return Status::ok;
    peer.endpoints[rail] = nullptr;
    peer.reason = status;
    return Status::transport_failed;
}

Status UcxPort::Impl::greet(Peer& peer, std::size_t rail) {
    peer.greetings[rail] = {options_.process, static_cast<std::uint32_t>(rail)};
    ucp_request_param_t parameters = {};
    parameters.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    parameters.user_data = &peer;
    parameters.cb.send = [](void* request, ucs_status_t status, void* user_data) {
        Peer& greets = *static_cast<Peer*>(user_data);
        Impl& port = *greets.port;
        port.ucp_.request_free(request);
        if (status != UCS_OK) return;  // on_error hears of it
        ++greets.said;
        // If the peer has, too, what waits for both leaves: as if it had greeted in this moment.
        if (port.has_met(greets)) port.note_greeting({greets.process, 0});
    };
    count_sent();
    const ucs_status_ptr_t answer = ucp_.am_send_nbx(peer.endpoints[rail], greeting_id, &peer.greetings[rail],
                                                     sizeof(Greeting), nullptr, 0, &parameters);
    if (answer == nullptr) ++peer.said;
    // To this process itself it may have come by now, and waits for a poll.
    if (UCS_PTR_IS_PTR(answer) || is_greeted()) posted(rail);
    if (!UCS_PTR_IS_ERR(answer)) return Status::ok;
    // The peer waits for it, and who wants something of the peer would wait as long: both are told.
    on_error(&peer, peer.endpoints[rail], UCS_PTR_STATUS(answer));
    return Status::transport_failed;
}

// Called by libucp within a poll, or a greeting to this process, where no endpoints are made.
ucs_status_t UcxPort::Impl::on_greeting(void* argument, const void* header, std::size_t header_bytes, void*,
                                        std::size_t, const ucp_am_recv_param_t*) {
    Greeting greeting;
    if (header_bytes != sizeof greeting) return UCS_OK;
    std::memcpy(&greeting, header, sizeof greeting);
    static_cast<Impl*>(argument)->note_greeting(greeting);
    return UCS_OK;
}

void UcxPort::Impl::note_greeting(Greeting greeting) noexcept {
    if (greeting.process >= options_.processes || greeting.rail >= rails_.size()) return;
    try {
        greetings_.push_back(greeting);
    } catch (const std::bad_alloc&) {
        unlisted_[greeting.process * rails_.size() + greeting.rail] = true;
        any_unlisted_ = true;
    }
}

void UcxPort::Impl::list_unlisted() {
    for (std::size_t at = 0; at < unlisted_.size(); ++at) {
        if (!unlisted_[at]) continue;
        if (greetings_.size() == greetings_.capacity()) return;
        greetings_.push_back(
            {static_cast<std::uint32_t>(at / rails_.size()), static_cast<std::uint32_t>(at % rails_.size())});
        unlisted_[at] = false;
    }
    any_unlisted_ = false;
}

void UcxPort::Impl::hear_strangers() {
    std::erase_if(strangers_, [this](const auto& stranger) {
        const auto& [process, greeted] = stranger;
        if (address_of(process).empty()) return false;
        for (std::uint32_t rail = 0; rail < rails_.size(); ++rail)
            if ((greeted >> rail & 1u) != 0) greetings_.push_back({process, rail});
        return true;
    });
    if (!greetings_.empty()) posted(0);
}

// One for which there is no memory stays, for the next poll.
void UcxPort::Impl::answer_greetings() try {
    if (any_unlisted_) list_unlisted();
    while (!greetings_.empty()) {
        const auto at = greetings_.end() - greetings_.begin() - 1;  // a process may greet itself meanwhile
        answer(greetings_.back());
        greetings_.erase(greetings_.begin() + at);
    }
} catch (const std::bad_alloc&) {
}

void UcxPort::Impl::answer(Greeting greeting) {
    Peer* peer = find(greeting.process);
    // The peer knew its directory earlier than this process does: it is greeted when that comes.
    std::uint32_t& greeted = peer != nullptr ? peer->greeted : strangers_[greeting.process];
    greeted |= 1u << greeting.rail;
    if (peer == nullptr || failed(meet(greeting.process, peer)) || !has_met(*peer)) return;
    while (!peer->held.empty()) {
        const Held post = peer->held.front();
        peer->held.pop_front();
        post.channel->post_held(post);
    }
}

void UcxPort::Impl::forget(const Channel& channel, std::uint32_t process) {
    const auto known = peers_.find(process);
    if (known == peers_.end()) return;
    std::erase_if(known->second->held, [&](const Held& post) { return post.channel == &channel; });
}

namespace ucx {

Status Channel::post(const Held& post) try {
    if (failed(failure_)) return failure_;
    const std::uint32_t process = process_of(post.peer);
    const SlotState::Kind kind = post.put ? SlotState::Kind::put : SlotState::Kind::send;
    storage_->slots[post.slot] = {kind, process, 1, 0};
    Peer* reached = nullptr;
    if (failed(port_.meet(process, reached))) return lose(reached);
    if (!port_.has_met(*reached)) {
        port_.hold(*reached, post);
        return Status::ok;
    }
    return post.put ? put_now(post, *reached) : send_now(post, *reached);
} catch (const std::bad_alloc&) {
    return Status::out_of_memory;
}

// What is held is in its slots: of a port's peers, which may be thousands, only theirs are looked at.
void Channel::forget_held() {
    for (const SlotState& slot : storage_->slots) {
        const bool posts = slot.kind == SlotState::Kind::send || slot.kind == SlotState::Kind::put;
        if (posts) port_.forget(*this, slot.process);
    }
}

// What goes wrong is the channel's failure, of which its next progress() tells.
void Channel::post_held(const Held& post) {
    if (failed(failure_)) return;
    Peer* const peer = port_.find(process_of(post.peer));
    const Status status = post.put ? put_now(post, *peer) : send_now(post, *peer);
    if (failed(status)) fail(status);
}

}  // namespace ucx
}  // namespace thalweg
