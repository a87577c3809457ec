#include "sim/network.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace thalweg::sim {

namespace {

// Of a notice on the wire: the frame of a TCP packet (docs/lab.md), and nothing in it.
constexpr double notice_bytes = 66;

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

// Whether the solver is ours: where so many transfers may be under way at once that SimGrid's takes most of
// the time.
bool ours(Shares shares, const Topology& topology, const SimMachine& machine) {
    constexpr double many = 4096;
    if (shares != Shares::by_size) return shares == Shares::ours;
    if (machine.flows_per_link == 0) return false;
    return static_cast<double>(topology.nodes()) * machine.rails * machine.flows_per_link >= many;
}

}  // namespace

Network::Network(const SimMachine& machine, const Matching& matching, const Topology& topology, Shares shares,
                 Events events)
    : machine_(machine),
      matching_(matching),
      topology_(topology),
      events_(std::move(events)),
      segment_(machine.kernel_sends() ? machine.kernel_bytes : 0),
      payload_(in_segments() && machine.frame_bytes > 0
                   ? machine.frame_bytes / (machine.frame_bytes + machine.frame_headers)
                   : 1),
      grain_(grain_of(matching, topology, machine)),
      platform_(machine, topology.nodes(), grain_, in_segments()),
      flows_(ours(shares, topology, machine) ? shared_flows(platform_, topology.nodes(), grain_)
                                             : simgrid_flows(platform_)),
      next_(matching.messages.size(), none),
      rail_(matching.messages.size(), 0),
      channels_(std::size_t{matching.pairs} * machine.rails),
      out_(static_cast<std::size_t>(topology.nodes()) * machine.rails),
      in_(out_.size()),
      frozen_(static_cast<std::size_t>(topology.size()), 0) {
    for (const Matched& m : matching.messages)
        for (unsigned rail = 0; rail < machine.rails; ++rail) {
            Channel& channel = channels_[m.pair * machine.rails + rail];
            channel.from = m.from;
            channel.to = m.to;
        }
    for (Link& link : out_) link.tokens = machine.burst_bytes * payload_;
    for (Link& link : in_) link.tokens = machine.burst_bytes * payload_;
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
    append(message.pair * machine_.rails + rail, m);
    if (!in_segments()) return;
    Channel& channel = channels_[message.pair * machine_.rails + rail];
    channel.given += bytes_of(m);
    channel.untaken.emplace_back(m, channel.given);
    take(channel);
}

// A socket takes so many bytes that have not left.
void Network::take(Channel& channel) {
    while (!channel.untaken.empty()) {
        const auto [m, given] = channel.untaken.front();
        const double gone = channel.gone - channel.noticed;  // as `given`, which knows of no notices
        if (given - gone > machine_.socket_bytes && gone < given) return;
        channel.untaken.erase(channel.untaken.begin());
        events_.taken(m);
    }
}

void Network::append(std::uint32_t id, MessageId m) {
    Channel& channel = channels_[id];
    (channel.head == none ? channel.head : next_[channel.tail]) = m;
    channel.tail = m;
    if (!channel.busy) start(id);
}

void Network::notify(std::int32_t from, std::int32_t to, std::function<void(double)> sent) {
    const auto key = [](std::int32_t a, std::int32_t b) {
        return static_cast<std::uint64_t>(static_cast<std::uint32_t>(a)) << 32 |
               static_cast<std::uint32_t>(b);
    };
    if (channel_of_.empty())
        for (std::uint32_t id = 0; id < channels_.size(); id += machine_.rails)
            channel_of_.emplace(key(channels_[id].from, channels_[id].to), id);
    const auto found = channel_of_.try_emplace(key(from, to), static_cast<std::uint32_t>(channels_.size()));
    if (found.second) {
        channels_.emplace_back();
        channels_.back().from = from;
        channels_.back().to = to;
        if (!channels_of_.empty()) list(found.first->second);
    }
    const auto m = static_cast<MessageId>(next_.size());
    notices_.push_back(std::move(sent));
    next_.push_back(none);
    rail_.push_back(0);
    out_[link_of(from, 0)].queued += notice_bytes;
    append(found.first->second, m);
}

double Network::bytes_of(MessageId m) const {
    return m < matching_.messages.size() ? static_cast<double>(matching_.messages[m].bytes) : notice_bytes;
}

double Network::frames(MessageId m, double bytes) const {
    const double whole = bytes_of(m), count = std::max(1.0, std::ceil(whole / machine_.frame_bytes));
    return whole > 0 ? count * bytes / whole : count;
}

double Network::framed(MessageId m, double bytes) const {
    if (payload_ == 1) return bytes;
    if (m >= matching_.messages.size()) return bytes * payload_;  // headers are all that it is
    return (bytes + frames(m, bytes) * machine_.frame_headers) * payload_;
}

// Every second frame, and the last one of a short message.
double Network::acknowledged(MessageId m, double bytes) const {
    if (payload_ == 1 || m >= matching_.messages.size()) return 0;
    const double count = frames(m, bytes), all = frames(m, bytes_of(m));
    return std::max(count / 2, count / all) * machine_.frame_headers * payload_;
}

// Its head, or the head's next segment.
bool Network::may_go(const Channel& channel) const {
    const bool from = frozen_[static_cast<std::size_t>(channel.from)] != 0;
    const bool to = frozen_[static_cast<std::size_t>(channel.to)] != 0;
    if (!in_segments()) return !from && !to;
    return (!from || channel.gone < channel.held) && (!to || channel.gone < channel.room);
}

// Gives the first message of a channel to its link, or puts the channel in the link's queue.
void Network::start(std::uint32_t id) {
    Channel& channel = channels_[id];
    channel.busy = channel.head != none;
    if (!channel.busy) return;
    const MessageId m = channel.head;
    if (!may_go(channel)) {
        channel.busy = false;  // thaw() looks again
        return;
    }
    Link& link = out_[link_of(channel.from, rail_[m])];
    if (in_segments()) {
        link.waiting.push_back(id);
        return send_segment(link);
    }
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
    if (!may_go(channels_[id])) {  // a rank has been frozen since
        channels_[id].busy = false;
        --out.active;
        return start_waiting(out);
    }
    ++in.active;
    const auto bytes = static_cast<double>(message.bytes);
    const double left = bytes - through_at_once(out, in, bytes);
    if (left < 1) return end(id, m, 0);
    begin_flow(id, rail, left, [this, id, m, left] { end(id, m, left); });
}

// Of a channel's head.
void Network::begin_flow(std::uint32_t id, unsigned rail, double bytes, std::function<void()> done) {
    Channel& channel = channels_[id];
    channel.flow = flows_->begin(topology_.node_of(channel.from), topology_.node_of(channel.to), rail,
                                 std::floor(bytes), std::move(done));
}

// A host's link sends one segment after another, each at the link's rate. Where its receiver's link has
// others as well, it is in a queue there for longer, and its own link goes on with the next pair's.
void Network::send_segment(Link& out) {
    while (!out.sending && !out.waiting.empty()) {
        const std::uint32_t id = out.waiting.front();
        out.waiting.pop_front();
        const Channel& channel = channels_[id];
        const unsigned rail = rail_[channel.head];
        Link& in = in_[link_of(channel.to, rail)];
        const double bytes = std::min(segment_, bytes_of(channel.head) - channel.sent);
        ++out.active;
        ++in.active;
        const double wire = framed(channel.head, bytes) + std::exchange(out.owed, 0);
        const double left = wire - through_at_once(out, in, wire);
        const double taken = std::max(left / machine_.link_rate, machine_.message_gap);
        if (taken > 0) {
            out.sending = true;
            at(now() + taken, [this, &out] {
                out.sending = false;
                if (--out.active == 0) out.idle_since = now();
                send_segment(out);
            });
        } else if (--out.active == 0) {
            out.idle_since = now();
        }
        if (left < 1) {
            end_segment(id, bytes, 0);
            continue;
        }
        begin_flow(id, rail, left, [this, id, bytes, left] { end_segment(id, bytes, left); });
    }
}

void Network::end_segment(std::uint32_t id, double bytes, double shaped) {
    Channel& channel = channels_[id];
    const MessageId m = channel.head;
    const unsigned rail = rail_[m];
    Link &out = out_[link_of(channel.from, rail)], &in = in_[link_of(channel.to, rail)];
    channel.flow = none;
    channel.sent += bytes;
    channel.shaped += shaped;
    channel.gone += bytes;
    if (m >= matching_.messages.size()) channel.noticed += bytes;
    out.queued -= bytes;
    out_[link_of(channel.to, rail)].owed += acknowledged(m, bytes);
    if (--in.active == 0) in.idle_since = now();
    if (bytes_of(m) - channel.sent >= 1) {
        take(channel);
        return start(id);
    }
    const double waited = channel.shaped, before = channel.there + waited / machine_.link_rate;
    channel.sent = channel.shaped = 0;
    channel.head = next_[m];
    if (m < matching_.messages.size())
        channel.there = events_.left(m, waited, before);
    else
        std::exchange(notices_[m - matching_.messages.size()], nullptr)(before);
    take(channel);
    start(id);
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
    start_waiting(out);  // before the next message of the same pair
    start(id);
    events_.left(m, shaped, 0);
}

// Whose rank is frozen leaves its turn to the one behind.
void Network::start_waiting(Link& out) {
    while (!out.waiting.empty() && out.active < machine_.flows_per_link) {
        const std::uint32_t next = out.waiting.front();
        out.waiting.pop_front();
        start(next);
    }
}

// A shaper fills its bucket while the link is idle, and lets that much pass unshaped. Both ends shape.
double Network::through_at_once(Link& out, Link& in, double bytes) {
    if (machine_.burst_bytes <= 0) return 0;
    for (Link* link : {&out, &in}) {
        if (link->active != 1) continue;  // was busy until now
        link->tokens = std::min(machine_.burst_bytes * payload_,
                                link->tokens + (now() - link->idle_since) * machine_.link_rate);
    }
    const double through = std::min({out.tokens, in.tokens, bytes});
    out.tokens -= through;
    in.tokens -= through;
    return through;
}

// Of both ends' channels.
void Network::list(std::uint32_t id) {
    for (const std::int32_t end : {channels_[id].from, channels_[id].to})
        channels_of_[static_cast<std::size_t>(end)].push_back(id);
}

void Network::freeze(int rank) {
    if (channels_of_.empty()) {
        channels_of_.resize(frozen_.size());
        for (std::uint32_t id = 0; id < channels_.size(); ++id) list(id);
    }
    frozen_[static_cast<std::size_t>(rank)] = 1;
    for (const std::uint32_t id : channels_of_[static_cast<std::size_t>(rank)]) {
        Channel& channel = channels_[id];
        if (!in_segments()) {
            if (channel.flow != none) flows_->suspend(channel.flow);
            continue;
        }
        const double left = channel.given + channel.noticed - channel.gone;
        const double full = channel.gone + machine_.socket_bytes;
        if (channel.from == rank)
            channel.held = left > machine_.socket_bytes ? full : std::numeric_limits<double>::infinity();
        if (channel.to == rank) channel.room = full;
    }
}

void Network::thaw(int rank) {
    frozen_[static_cast<std::size_t>(rank)] = 0;
    if (channels_of_.empty()) return;
    const std::vector<std::uint32_t>& ids = channels_of_[static_cast<std::size_t>(rank)];
    for (std::size_t i = 0; i < ids.size(); ++i) {  // what goes on may add to them
        const std::uint32_t id = ids[i];
        const Channel& channel = channels_[id];
        if (channel.head == none || !may_go(channel)) continue;
        if (!in_segments() && channel.flow != none)
            flows_->resume(channel.flow);
        else if (!channel.busy)
            start(id);
    }
}

}  // namespace thalweg::sim
