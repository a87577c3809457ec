#include "transport/ucx/channel.h"

#include <algorithm>
#include <new>
#include <utility>

#include "base/log.h"

namespace thalweg::ucx {
namespace {

using Poster = UcxPort::Impl::Poster;
using Driver = UcxPort::Impl::Driver;

// A message is cut up over the rails when every rail gets this much at least: below, one rail's latency
// counts.
constexpr std::size_t piece_bytes = 64 * 1024;
constexpr std::size_t most_bytes = std::size_t{1} << 40;

}  // namespace

Channel::Channel(UcxPort::Impl& port, const UcxGroup& group)
    : port_(port),
      ucp_(port.ucp()),
      group_(group),
      name_(port.layout().channel(group.name, group.space)),
      // A put needs one request to write and one to flush, on every rail.
      parts_per_slot_(2 * port.rails().size()),
      storage_(std::make_unique<Storage>(port)),
      place_(1) {
    storage_->channel = this;
    capabilities_.name = "ucx";
    capabilities_.max_message_bytes = most_bytes;
    capabilities_.live_operations = port.layout().live_operations();
    capabilities_.wakeup_descriptor = true;
    capabilities_.any_thread = true;
    capabilities_.one_sided = true;
    capabilities_.tells_excess = true;
    capabilities_.rails = static_cast<int>(port.rails().size());
}

Status Channel::open() {
    if (const Status status = grow(std::max<Slot>(group_.slots, 2)); failed(status)) return status;
    const Poster lock(port_);
    opened_ = port_.open(*this);
    return opened_ ? Status::ok : Status::invalid_argument;
}

Channel::~Channel() {
    if (port_.in_child()) {
        (void)storage_.release();
        return;
    }
    const Poster lock(port_);
    if (opened_)
        port_.close(*this, !has_failed() && storage_->in_flight == 0);
    else
        port_.awake(*this);
    forget_held();
    storage_->channel = nullptr;
    withdraw_receives();
    for (Exposed& exposed : exposed_) unmap(exposed.handles);
    if (storage_->in_flight != 0)
        port_.adopt(std::move(storage_), place_);
    else
        storage_.reset();  // while the lock is held
}

// Calls back at once, unless the data is on its way already. Sends libucp does not give back.
void Channel::withdraw_receives() {
    for (Part& part : storage_->parts) {
        if (part.request && part.receive) ucp_.request_cancel(port_.rails()[part.rail].worker, part.request);
    }
}

Status Channel::grow(Slot slots) try {
    const Poster lock(port_);
    const Slot had = this->slots();
    if (slots <= had) return Status::ok;
    completed_.reserve(slots);
    storage_->parts.resize(slots * parts_per_slot_);
    for (std::size_t i = had * parts_per_slot_; i < storage_->parts.size(); ++i) {
        storage_->parts[i].slot = static_cast<Slot>(i / parts_per_slot_);
        storage_->parts[i].storage = storage_.get();
    }
    storage_->slots.resize(slots);  // the last, because it is what slots() says
    return Status::ok;
} catch (const std::bad_alloc&) {
    return Status::out_of_memory;
}

// Both ends decide alike: the sizes are equal, and so is what each knows of the other's host.
std::size_t Channel::pieces_of(std::size_t bytes, std::uint32_t process) {
    const std::size_t rails = port_.rails().size();
    if (rails == 1 || bytes < rails * piece_bytes) return 1;
    const Peer* peer = port_.find(process);
    return peer && !peer->same_host ? rails : 1;
}

// All whole messages of a pair take one rail, so that they are matched in their order, as credits need it.
std::uint8_t Channel::rail_of(int rank) const {
    if (group_.rails != nullptr) return group_.rails[rank];
    return static_cast<std::uint8_t>((process_of(rank) + port_.process()) % port_.rails().size());
}

Status Channel::fail(Status status) {
    if (!failed(failure_)) failure_ = status;
    port_.tell(*this);
    return status;
}

Status Channel::lose(const Peer* peer) {
    if (peer && !failed(failure_)) {
        THALWEG_LOG_AT(error, "process %u cannot be reached any more: %s", peer->process,
                       ucp_.status_string(peer->reason));
    }
    return fail(Status::transport_failed);
}

// How one message of a process travels, or each piece of one.
void Channel::note_way(PeerAccount& account, std::uint32_t process, std::uint64_t bytes, std::size_t pieces,
                       void (PeerAccount::*count)(Way, std::uint64_t)) {
    const Peer* const peer = port_.find(process);
    const Manner& manner = port_.manner(peer != nullptr && peer->same_host);
    const std::uint64_t piece = bytes / pieces;
    (account.*count)(manner.of(piece).way, bytes);
    account.takes(piece < manner.rendezvous_from ? 0 : 1, manner.of(piece));
    if (pieces > 1) account.cut_over_rails();
}

void Channel::note_sent(int rank, std::uint64_t bytes, std::size_t pieces) {
    PeerAccount* const account = account_of(rank);
    if (account == nullptr || bytes == 0) return;
    note_way(*account, process_of(rank), bytes, pieces, &PeerAccount::sent);
}

void Channel::note_received(const SlotState& slot) {
    std::uint64_t bytes = slot.unequal ? slot.received : slot.bytes;
    if (bytes == too_many_bytes) bytes = slot.bytes;
    if (bytes == 0) return;
    const std::size_t pieces = slot.unequal ? 1 : pieces_of(bytes, slot.process);
    note_way(*slot.account, slot.process, bytes, pieces, &PeerAccount::received);
}

void Channel::finish(Slot slot) {
    SlotState& state = storage_->slots[slot];
    if (state.account != nullptr) note_received(state);
    state.account = nullptr;
    state.kind = SlotState::Kind::idle;
    completed_.push_back(slot);
    port_.tell(*this);
}

void Channel::part_done(Part& part, ucs_status_t status, std::size_t received) {
    SlotState& slot = storage_->slots[part.slot];
    if (part.receive && slot.unequal) {  // in one part
        const bool longer = status == UCS_ERR_MESSAGE_TRUNCATED;
        slot.received = longer && received <= part.bytes ? too_many_bytes : received;
        if (longer) status = UCS_OK;
    } else if (status == UCS_OK && part.receive && received != part.bytes) {
        status = UCS_ERR_MESSAGE_TRUNCATED;
    }
    if (status != UCS_OK) {
        fail(status == UCS_ERR_MESSAGE_TRUNCATED ? Status::mismatch : Status::transport_failed);
        return;
    }
    if (--slot.left != 0) return;
    if (slot.kind == SlotState::Kind::put) {
        port_.defer(part);
    } else {
        finish(part.slot);
    }
}

ucp_request_param_t Channel::request_for(Part& part, const void* data, std::size_t bytes) {
    part.memory = data;
    part.memory_bytes = bytes;
    ucp_request_param_t parameters = {};
    // Memory of devices is staged above us, so libucp need not look.
    parameters.op_attr_mask =
        UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_MEMORY_TYPE;
    parameters.memory_type = UCS_MEMORY_TYPE_HOST;
    parameters.cb.send = &Channel::on_sent;
    parameters.user_data = &part;
    if (!ucp_.needs_registration || bytes < rendezvous_bytes) return parameters;
    ucp_mem_map_params_t memory = {};
    memory.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
    memory.address = const_cast<void*>(data);
    memory.length = bytes;
    if (ucp_.mem_map(port_.rails()[part.rail].context, &memory, &part.registered) == UCS_OK) {
        parameters.op_attr_mask |= UCP_OP_ATTR_FIELD_MEMH;
        parameters.memh = part.registered;
    } else {
        part.registered = nullptr;  // the message travels all the same
    }
    return parameters;
}

void Channel::unregister(Part& part) {
    if (!part.registered) return;
    const UcxPort::Impl& port = part.storage->port;
    port.ucp().mem_unmap(port.rails()[part.rail].context, std::exchange(part.registered, nullptr));
}

Status Channel::started(Part& part, ucs_status_ptr_t answer) {
    if (UCS_PTR_IS_PTR(answer)) {
        part.request = answer;
        ++storage_->in_flight;
        port_.posted(part.rail);
        return Status::ok;
    }
    unregister(part);
    const ucs_status_t status = UCS_PTR_RAW_STATUS(answer);
    part_done(part, status, part.bytes);
    // A mismatch is progress()'s to tell.
    return status == UCS_OK || status == UCS_ERR_MESSAGE_TRUNCATED ? Status::ok : failure_;
}

void Channel::on_sent(void* request, ucs_status_t status, void* user_data) {
    Part& part = *static_cast<Part*>(user_data);
    Storage& storage = *part.storage;
    part.request = nullptr;
    --storage.in_flight;
    unregister(part);
    storage.port.ucp().request_free(request);
    if (storage.channel) storage.channel->part_done(part, status, part.bytes);
}

void Channel::on_received(void* request, ucs_status_t status, const ucp_tag_recv_info_t* info,
                          void* user_data) {
    Part& part = *static_cast<Part*>(user_data);
    Storage& storage = *part.storage;
    // Of a message that is longer than its receive: what was sent.
    const bool told = status == UCS_OK || status == UCS_ERR_MESSAGE_TRUNCATED;
    const std::size_t received = told ? info->length : 0;
    storage.port.count_sent();  // an acknowledgement, perhaps
    if (storage.posting == &part) {
        storage.outcome = {status, received};
        return;
    }
    part.request = nullptr;
    --storage.in_flight;
    unregister(part);
    storage.port.ucp().request_free(request);
    if (storage.channel) storage.channel->part_done(part, status, received);
}

// Hot path: one uncontended lock; no allocation of ours but at a peer's first use.
Status Channel::post_send(Slot slot, int peer, MessageId id, const void* data, std::size_t bytes,
                          SendMode mode) {
    if (port_.in_child()) return Status::transport_failed;
    const Poster lock(port_);
    return post({this, slot, data, bytes, id, false, peer, mode});
}

Status Channel::send_now(const Held& post, const Peer& reached) {
    const std::uint64_t tag = port_.layout().tag(name_, port_.process(), post.id);
    const std::size_t pieces = post.id.unequal ? 1 : pieces_of(post.bytes, reached.process);
    storage_->slots[post.slot].left = static_cast<std::uint32_t>(pieces);
    note_sent(post.peer, post.bytes, pieces);
    const auto call = post.mode == SendMode::synchronous ? ucp_.tag_send_sync_nbx : ucp_.tag_send_nbx;
    for (std::size_t i = 0; i < pieces; ++i) {
        Part& part = this->part(post.slot, i);
        part.rail = pieces == 1 ? rail_of(post.peer) : static_cast<std::uint8_t>(i);
        part.receive = false;
        port_.count_sent();
        const std::size_t begin = piece_begin(post.bytes, i, pieces);
        const std::size_t end = piece_begin(post.bytes, i + 1, pieces);
        const auto* from = static_cast<const std::byte*>(post.data) + begin;
        const ucp_request_param_t parameters = request_for(part, from, end - begin);
        const Status status =
            started(part, call(reached.endpoints[part.rail], from, end - begin, tag, &parameters));
        if (failed(status)) return status;
    }
    return Status::ok;
}

// Hot path, as post_send.
Status Channel::post_recv(Slot slot, int peer, MessageId id, void* data, std::size_t bytes) try {
    if (port_.in_child()) return Status::transport_failed;
    const Poster lock(port_);
    if (failed(failure_)) return failure_;
    const std::uint32_t process = process_of(peer);
    const std::uint64_t tag = port_.layout().tag(name_, process, id);
    const std::size_t pieces = id.unequal ? 1 : pieces_of(bytes, process);
    storage_->slots[slot] = {
        SlotState::Kind::receive, process, static_cast<std::uint32_t>(pieces), 0, id.unequal, 0,
        account_of(peer),         bytes};
    for (std::size_t i = 0; i < pieces; ++i) {
        Part& part = this->part(slot, i);
        const std::size_t begin = piece_begin(bytes, i, pieces), end = piece_begin(bytes, i + 1, pieces);
        part.rail = pieces == 1 ? rail_of(peer) : static_cast<std::uint8_t>(i);
        part.receive = true;
        part.bytes = end - begin;
        // Only an endpoint of our own tells when the sender dies. Without one, what it sent while it lived
        // counts.
        Peer* reached = nullptr;
        const bool reachable = !failed(port_.meet(process, reached));
        auto* to = static_cast<std::byte*>(data) + begin;
        ucp_request_param_t parameters = request_for(part, to, part.bytes);
        // 1.13 does not say how long a message is that was there already; its callback does, within the call.
        parameters.op_attr_mask |= UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
        parameters.cb.recv = &Channel::on_received;
        storage_->posting = &part;
        storage_->outcome.reset();
        const ucs_status_ptr_t answer = ucp_.tag_recv_nbx(port_.rails()[part.rail].worker, to, part.bytes,
                                                          tag, ~ucp_tag_t{0}, &parameters);
        storage_->posting = nullptr;
        if (storage_->outcome) {
            ucp_.request_free(answer);
            unregister(part);
            part_done(part, storage_->outcome->status, storage_->outcome->received);
            continue;
        }
        const Status status = started(part, answer);
        if (failed(status)) return status;
        if (!reachable) {
            port_.poll();
            if (part.request) return lose(reached);
        }
    }
    return Status::ok;
} catch (const std::bad_alloc&) {
    return Status::out_of_memory;
}

Status Channel::progress(std::span<Slot> done, std::size_t& count) {
    if (port_.in_child()) return Status::transport_failed;
    const Driver lock(port_);
    stirred_ = port_.poll();
    // What wakes a thread that sleeps for this channel stays as it is while another one looks in vain.
    if (asleep && (pthread_equal(sleeper, pthread_self()) || has_news())) port_.awake(*this);
    if (failed(failure_)) return failure_;
    count = std::min(done.size(), completed_.size());
    std::copy_n(completed_.begin(), count, done.begin());
    completed_.erase(completed_.begin(), completed_.begin() + static_cast<std::ptrdiff_t>(count));
    return Status::ok;
}

std::uint64_t Channel::sent() const { return port_.in_child() ? 0 : port_.sent(); }

// One lock, for what may begin a flush; none where it is known already.
bool Channel::has_left(std::uint64_t sent) {
    if (port_.in_child() || port_.is_known_to_have_left(sent)) return true;
    const Driver lock(port_);
    return port_.has_left(sent);
}

void Channel::drive_host() {
    if (group_.drive_host) group_.drive_host(group_.host);
}

Status Channel::arm() {
    if (port_.in_child()) return Status::transport_failed;
    const Driver lock(port_);
    return port_.arm(*this);
}

void Channel::give_up() {
    if (port_.in_child()) return;
    {
        const Poster lock(port_);
        fail(Status::transport_failed);
        forget_held();
        withdraw_receives();
        // Who gives up will not ask for its news any more, as whoever sleeps otherwise does.
        if (asleep && pthread_equal(sleeper, pthread_self())) port_.awake(*this);
    }
    await_requests();
}

void Channel::peer_died(const Peer& peer) {
    for (const SlotState& slot : storage_->slots) {
        if (slot.kind == SlotState::Kind::idle || slot.process != peer.process) continue;
        lose(&peer);
        return;
    }
}

}  // namespace thalweg::ucx
