#include "sim/network.h"

#include <algorithm>
#include <simgrid/kernel/Timer.hpp>
#include <utility>

namespace thalweg::sim {

namespace s4u = simgrid::s4u;

double now() { return s4u::Engine::get_clock(); }

void at(double date, std::function<void()> action) {
    simgrid::kernel::timer::Timer::set(date, std::move(action));
}

namespace {

// Every end of a transfer shares the links anew among all that are under way. Where many messages cross
// hosts, those that end at nearly the same time end together, at most 5 % of the shortest one's least time
// too early.
double grain_of(const Matching& matching, const Topology& topology, const SimMachine& machine) {
    constexpr double finest = 1e-9, part = 0.05;  // seconds; of the shortest message's
    constexpr std::uint64_t many = 1 << 15;
    std::uint64_t crossing = 0, shortest = ~std::uint64_t{0};
    for (const Matched& m : matching.messages) {
        if (m.bytes == 0 || topology.node_of(m.from) == topology.node_of(m.to)) continue;
        ++crossing;
        shortest = std::min(shortest, m.bytes);
    }
    if (crossing < many) return finest;
    return std::max(finest, part * static_cast<double>(shortest) / machine.link_rate);
}

}  // namespace

Network::Network(const SimMachine& machine, const Matching& matching, const Topology& topology,
                 std::function<void(MessageId, double)> left)
    : machine_(machine),
      matching_(matching),
      topology_(topology),
      left_(std::move(left)),
      platform_(machine, topology.nodes(), grain_of(matching, topology, machine)),
      next_(matching.messages.size(), none),
      rail_(matching.messages.size(), 0),
      channels_(std::size_t{matching.pairs} * machine.rails),
      out_(static_cast<std::size_t>(topology.nodes()) * machine.rails),
      in_(out_.size()),
      frozen_(static_cast<std::size_t>(topology.size()), 0) {
    for (Link& link : out_) link.tokens = machine.burst_bytes;
    for (Link& link : in_) link.tokens = machine.burst_bytes;
    s4u::Activity::on_completion_cb([this](const s4u::Activity& activity) {
        const auto id = static_cast<FlowId>(reinterpret_cast<std::uintptr_t>(activity.get_data<void>()) - 1);
        flow_ended(id);
    });
}

std::size_t Network::link_of(std::int32_t rank, unsigned rail) const {
    return static_cast<std::size_t>(topology_.node_of(rank)) * machine_.rails + rail;
}

void Network::queue(MessageId m) {
    const Matched& message = matching_.messages[m];
    unsigned rail = 0;
    for (unsigned other = 1; other < machine_.rails; ++other)
        if (out_[link_of(message.from, other)].queued < out_[link_of(message.from, rail)].queued)
            rail = other;
    rail_[m] = static_cast<std::uint8_t>(rail);
    out_[link_of(message.from, rail)].queued += static_cast<double>(message.bytes);
    const std::uint32_t id = message.pair * machine_.rails + rail;
    Channel& channel = channels_[id];
    (channel.head == none ? channel.head : next_[channel.tail]) = m;
    channel.tail = m;
    if (!channel.busy) start(id);
}

// Gives the first message of a channel to its link, or puts the channel in the link's queue.
void Network::start(std::uint32_t id) {
    Channel& channel = channels_[id];
    channel.busy = channel.head != none;
    if (!channel.busy) return;
    const MessageId m = channel.head;
    const Matched& message = matching_.messages[m];
    if (frozen_[static_cast<std::size_t>(message.from)] || frozen_[static_cast<std::size_t>(message.to)]) {
        channel.busy = false;  // thaw() looks again
        return;
    }
    Link& link = out_[link_of(message.from, rail_[m])];
    if (machine_.flows_per_link != 0 && link.active >= machine_.flows_per_link) {
        link.waiting.push_back(id);
        return;
    }
    ++link.active;
    const double begin = std::max(now(), link.next_free);
    link.next_free = begin + machine_.message_gap;
    if (begin > now())
        at(begin, [this, id, m] { launch(id, m); });
    else
        launch(id, m);
}

void Network::launch(std::uint32_t id, MessageId m) {
    const Matched& message = matching_.messages[m];
    const unsigned rail = rail_[m];
    Link &out = out_[link_of(message.from, rail)], &in = in_[link_of(message.to, rail)];
    ++in.active;
    const auto bytes = static_cast<double>(message.bytes);
    const double left = bytes - through_at_once(out, in, bytes);
    if (left < 1) return end(id, m, 0);
    // Its rate is bounded by the platform: SimGrid's own bound has no effect on transfers between hosts.
    s4u::CommPtr activity = s4u::Comm::sendto_init();
    activity->set_payload_size(static_cast<std::uint64_t>(left));
    const FlowId flow = keep(activity, [this, id, m, left] { end(id, m, left); });
    channels_[id].flow = flow;
    activity->set_data(reinterpret_cast<void*>(static_cast<std::uintptr_t>(flow) + 1));
    activity->set_source(platform_.end(topology_.node_of(message.from), rail));
    activity->set_destination(
        platform_.end(topology_.node_of(message.to), rail));  // both ends known: it starts
}

void Network::end(std::uint32_t id, MessageId m, double shaped) {
    const Matched& message = matching_.messages[m];
    Channel& channel = channels_[id];
    channel.flow = none;
    channel.head = next_[m];
    Link &out = out_[link_of(message.from, rail_[m])], &in = in_[link_of(message.to, rail_[m])];
    out.queued -= static_cast<double>(message.bytes);
    if (--out.active == 0) out.idle_since = now();
    if (--in.active == 0) in.idle_since = now();
    // Whoever stands in the queue goes before the next message of the same pair.
    if (!out.waiting.empty()) {
        const std::uint32_t next = out.waiting.front();
        out.waiting.pop_front();
        start(next);
    }
    start(id);
    left_(m, shaped);
}

// A shaper fills its bucket while the link is idle, and lets that much pass unshaped. Both ends shape.
double Network::through_at_once(Link& out, Link& in, double bytes) {
    if (machine_.burst_bytes <= 0) return 0;
    for (Link* link : {&out, &in}) {
        if (link->active != 1) continue;  // was busy until now
        link->tokens =
            std::min(machine_.burst_bytes, link->tokens + (now() - link->idle_since) * machine_.link_rate);
    }
    const double through = std::min({out.tokens, in.tokens, bytes});
    out.tokens -= through;
    in.tokens -= through;
    return through;
}

Network::FlowId Network::keep(s4u::ActivityPtr activity, std::function<void()> done) {
    FlowId id = none;
    if (free_flows_.empty()) {
        id = static_cast<FlowId>(flows_.size());
        flows_.emplace_back();
    } else {
        id = free_flows_.back();
        free_flows_.pop_back();
    }
    flows_[id] = {std::move(activity), std::move(done)};
    return id;
}

void Network::flow_ended(FlowId id) {
    ended_.clear();
    ended_.push_back(std::move(flows_[id].activity));
    const std::function<void()> done = std::move(flows_[id].done);
    flows_[id] = {};
    free_flows_.push_back(id);
    done();
}

void Network::freeze(int rank) {
    if (channels_of_.empty()) {
        channels_of_.resize(frozen_.size());
        for (const Matched& message : matching_.messages)
            for (const std::int32_t end : {message.from, message.to})
                for (unsigned rail = 0; rail < machine_.rails; ++rail) {
                    auto& list = channels_of_[static_cast<std::size_t>(end)];
                    const std::uint32_t id = message.pair * machine_.rails + rail;
                    if (std::find(list.begin(), list.end(), id) == list.end()) list.push_back(id);
                }
    }
    frozen_[static_cast<std::size_t>(rank)] = 1;
    for (const std::uint32_t id : channels_of_[static_cast<std::size_t>(rank)])
        if (channels_[id].flow != none) flows_[channels_[id].flow].activity->suspend();
}

void Network::thaw(int rank) {
    frozen_[static_cast<std::size_t>(rank)] = 0;
    if (channels_of_.empty()) return;
    for (const std::uint32_t id : channels_of_[static_cast<std::size_t>(rank)]) {
        const Channel& channel = channels_[id];
        if (channel.head == none) continue;
        const Matched& message = matching_.messages[channel.head];
        if (frozen_[static_cast<std::size_t>(message.from)] || frozen_[static_cast<std::size_t>(message.to)])
            continue;
        if (channel.flow != none)
            flows_[channel.flow].activity->resume();
        else if (!channel.busy)
            start(id);
    }
}

}  // namespace thalweg::sim
