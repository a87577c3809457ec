// Memory that peers write into. A put is written, flushed (then it is in the peer's memory, whatever carried
// it), and told by a message of no bytes, which wakes the peer if it sleeps.
#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "transport/ucx/channel.h"

namespace thalweg::ucx {
namespace {

using Poster = UcxPort::Impl::Poster;

// A key: where the memory is, then what libucp says per rail, in the form of an address.
struct KeyHeader {
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
};

// The lowest number of `all` whose `list` is empty, or a new one.
template <typename Entry, typename List>
std::uint32_t free_number(std::vector<Entry>& all, List list) {
    for (std::size_t i = 0; i < all.size(); ++i) {
        if ((all[i].*list).empty()) return static_cast<std::uint32_t>(i);
    }
    all.emplace_back();
    return static_cast<std::uint32_t>(all.size() - 1);
}

}  // namespace

Storage::~Storage() {
    for (const Attached& each : attached)
        for (ucp_rkey_h key : each.keys) port.ucp().rkey_destroy(key);
}

// What it has registered when it fails is in `handles`, which have room for one per rail.
Status Channel::map(void* memory, std::size_t bytes, std::vector<ucp_mem_h>& handles,
                    std::vector<std::byte>& key) noexcept try {
    const auto refused = [](ucs_status_t status) {
        return status == UCS_ERR_NO_MEMORY ? Status::out_of_memory : Status::unsupported;
    };
    std::vector<std::vector<std::byte>> packed;
    for (const Rail& rail : port_.rails()) {
        ucp_mem_map_params_t parameters = {};
        parameters.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
        parameters.address = memory;
        parameters.length = bytes;
        ucp_mem_h handle = nullptr;
        ucs_status_t status = ucp_.mem_map(rail.context, &parameters, &handle);
        if (status != UCS_OK) return refused(status);
        handles.push_back(handle);
        void* buffer = nullptr;
        std::size_t length = 0;
        status = ucp_.rkey_pack(rail.context, handle, &buffer, &length);
        if (status != UCS_OK) return refused(status);
        const std::unique_ptr<void, void (*)(void*)> owned(buffer, ucp_.rkey_buffer_release);
        const auto* first = static_cast<const std::byte*>(buffer);
        packed.emplace_back(first, first + length);
    }
    const KeyHeader header{reinterpret_cast<std::uintptr_t>(memory), bytes};
    const std::vector<std::byte> rails = format_address(0, packed);
    key.resize(sizeof header + rails.size());
    std::memcpy(key.data(), &header, sizeof header);
    std::memcpy(key.data() + sizeof header, rails.data(), rails.size());
    return Status::ok;
} catch (const std::bad_alloc&) {
    return Status::out_of_memory;
}

void Channel::unmap(std::vector<ucp_mem_h>& handles) {
    for (std::size_t rail = 0; rail < handles.size(); ++rail)
        ucp_.mem_unmap(port_.rails()[rail].context, handles[rail]);
    handles.clear();
}

Status Channel::expose(void* memory, std::size_t bytes, Region& region, std::vector<std::byte>& key) try {
    if (port_.in_child()) return Status::transport_failed;
    if (bytes == 0) return Status::invalid_argument;
    const Poster lock(port_);
    // All that may lack memory and could not be undone comes first.
    const Region free = free_number(exposed_, &Exposed::handles);
    Exposed exposed;
    exposed.handles.reserve(port_.rails().size());
    if (const Status status = map(memory, bytes, exposed.handles, key); failed(status)) {
        unmap(exposed.handles);
        return status;
    }
    exposed.begin = reinterpret_cast<std::uintptr_t>(memory);
    exposed.end = exposed.begin + bytes;
    exposed_[region = free] = std::move(exposed);
    return Status::ok;
} catch (const std::bad_alloc&) {
    return Status::out_of_memory;
}

void Channel::conceal(Region region) {
    if (port_.in_child()) return;
    const Poster lock(port_);
    unmap(exposed_[region].handles);
}

Status Channel::attach(int peer, std::span<const std::byte> key, Target& target) try {
    if (port_.in_child()) return Status::transport_failed;
    KeyHeader header;
    AddressView view;
    if (key.size() < sizeof header || !parse_address(key.subspan(sizeof header), view) ||
        view.rails.size() != port_.rails().size()) {
        return Status::invalid_argument;
    }
    std::memcpy(&header, key.data(), sizeof header);
    const Poster lock(port_);
    Attached attached{peer, process_of(peer), header.address, header.bytes, {}};
    Peer* reached = nullptr;
    if (failed(port_.reach(attached.process, reached))) return Status::transport_failed;
    const Target free = free_number(storage_->attached, &Attached::keys);
    attached.keys.reserve(view.rails.size());
    for (std::size_t rail = 0; rail < view.rails.size(); ++rail) {
        ucp_rkey_h unpacked = nullptr;
        if (ucp_.ep_rkey_unpack(reached->endpoints[rail], view.rails[rail].data(), &unpacked) != UCS_OK) {
            for (ucp_rkey_h made : attached.keys) ucp_.rkey_destroy(made);
            return Status::transport_failed;
        }
        attached.keys.push_back(unpacked);
    }
    storage_->attached[target = free] = std::move(attached);
    return Status::ok;
} catch (const std::bad_alloc&) {
    return Status::out_of_memory;
}

void Channel::detach(Target target) {
    if (port_.in_child()) return;
    const Poster lock(port_);
    std::vector<ucp_rkey_h>& keys = storage_->attached[target].keys;
    for (ucp_rkey_h key : keys) ucp_.rkey_destroy(key);
    keys.clear();
}

Status Channel::post_put(Slot slot, Target target, std::uint64_t offset, const void* data, std::size_t bytes,
                         MessageId signal) {
    if (port_.in_child()) return Status::transport_failed;
    const Poster lock(port_);
    if (failed(failure_)) return failure_;
    const Attached& attached = storage_->attached[target];
    if (offset > attached.bytes || bytes > attached.bytes - offset) return Status::invalid_argument;
    const Status status = post({this, slot, data, bytes, signal, true, attached.rank, {}, target, offset});
    if (failed(status)) return status;
    port_.run_deferred();
    return failure_;
}

Status Channel::put_now(const Held& post, const Peer& reached) {
    const Attached& attached = storage_->attached[post.target];
    const std::size_t bytes = post.bytes, pieces = pieces_of(bytes, attached.process);
    if (PeerAccount* const account = account_of(attached.rank)) {
        account->sent(Way::put, bytes);
        if (pieces > 1) account->cut_over_rails();
    }
    SlotState& state = storage_->slots[post.slot];
    state.left = static_cast<std::uint32_t>(2 * pieces);
    state.tag = port_.layout().tag(name_, port_.process(), post.id);
    state.rail = rail_of(attached.rank);
    for (std::size_t i = 0; i < pieces; ++i) {
        const std::size_t rail = pieces == 1 ? state.rail : i;
        const std::size_t begin = piece_begin(bytes, i, pieces), end = piece_begin(bytes, i + 1, pieces);
        for (const bool flush : {false, true}) {
            Part& part = this->part(post.slot, 2 * i + flush);
            part.rail = static_cast<std::uint8_t>(rail);
            part.receive = false;
            const auto* from = static_cast<const std::byte*>(post.data) + begin;
            ucp_request_param_t parameters = request_for(part, from, flush ? 0 : end - begin);
            if (flush) parameters.op_attr_mask &= ~std::uint32_t{UCP_OP_ATTR_FIELD_MEMORY_TYPE};
            const ucs_status_ptr_t answer = flush ? ucp_.ep_flush_nbx(reached.endpoints[rail], &parameters)
                                                  : ucp_.put_nbx(reached.endpoints[rail], from, end - begin,
                                                                 attached.address + post.offset + begin,
                                                                 attached.keys[rail], &parameters);
            const Status status = started(part, answer);
            if (failed(status)) return status;
        }
    }
    return Status::ok;
}

void Channel::send_signal(Slot slot) {
    SlotState& state = storage_->slots[slot];
    state.kind = SlotState::Kind::signal;
    state.left = 1;
    Part& part = this->part(slot, 0);
    part.rail = state.rail;
    part.receive = false;
    Peer* reached = nullptr;
    if (failed(port_.reach(state.process, reached))) {
        lose(reached);
        return;
    }
    const ucp_request_param_t parameters = request_for(part, nullptr, 0);
    port_.count_sent();
    started(part, ucp_.tag_send_nbx(reached->endpoints[part.rail], nullptr, 0, state.tag, &parameters));
}

}  // namespace thalweg::ucx
