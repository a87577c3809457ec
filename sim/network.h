// Transfers between hosts: who may use a link next, and flows underneath. Private to the replay.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/clock.h"
#include "sim/flows.h"
#include "sim/matching.h"
#include "sim/platform.h"
#include "sim/replay.h"
#include "topology/topology.h"

namespace thalweg::sim {

class Network {
  public:
    using MessageId = std::uint32_t;

    struct Events {
        // The last byte of message m has left its sender; `shaped` of its bytes waited for the link's shaper,
        // all of them where there is none; what went before it on its way is there at `before`. Returns when
        // it is.
        std::function<double(MessageId, double shaped, double before)> left;
        // In segments only: its sender's kernel has all of message m.
        std::function<void(MessageId)> taken;
    };

    // The references must outlive the network.
    Network(const SimMachine& machine, const Matching& matching, const Topology& topology, Shares shares,
            Events events);

    // Message m is ready to leave. Messages of a pair that use the same rail leave in the order of these
    // calls.
    void queue(MessageId m);

    // Whether kernels send here: in segments of the machine's kernel_bytes, by turns of the pairs that have
    // some.
    bool in_segments() const { return segment_ > 0; }

    // A notice from one rank to another (a frame), behind what `queue` has been given for
    // this pair. `sent(before)` runs when it leaves its host; what went before it is there at `before`. Pre:
    // in_segments().
    void notify(std::int32_t from, std::int32_t to, std::function<void(double)> sent);

    // Nobody calls the library of `rank` until it is thawed. A transfer as a whole moves while neither end is
    // frozen; of segments the sender's kernel passes on what its socket holds, and the receiver's takes as
    // much.
    void freeze(int rank);
    void thaw(int rank);

  private:
    // Messages of one pair over one rail, one at a time.
    struct Channel {
        std::int32_t from = 0, to = 0;
        MessageId head = none, tail = none;  // numbers behind the messages' are notices
        bool busy = false;                   // the head has been given to its link, or stands in a queue
        Flows::Id flow = none;
        double sent = 0, shaped = 0;  // of the head, by segments
        double there = 0;             // when the last one is at its receiver
        double given = 0, gone = 0;   // bytes since the beginning
        double noticed = 0;           // of `gone`, those of notices
        // How far `gone` may come while its sender, or its receiver, is frozen.
        double held = std::numeric_limits<double>::infinity();
        double room = std::numeric_limits<double>::infinity();
        std::vector<std::pair<MessageId, double>> untaken;  // and `given` behind it
    };

    // One direction of one rail of one host.
    struct Link {
        unsigned active = 0;
        double next_free = 0;  // when it takes another message
        double idle_since = 0;
        double tokens = 0;                  // bytes that the shaper lets through at once
        double queued = 0;                  // bytes given to it and not sent
        double owed = 0;                    // the same of acknowledgements, which go with what leaves next
        std::deque<std::uint32_t> waiting;  // channels, where it works on few messages at a time
        bool sending = false;               // a segment
    };

    std::size_t link_of(std::int32_t rank, unsigned rail) const;
    double bytes_of(MessageId m) const;
    // What `bytes` of message m take of a link, with the headers of its frames; of a notice itself.
    double framed(MessageId m, double bytes) const;
    // The same of the acknowledgements that they come back for.
    double acknowledged(MessageId m, double bytes) const;
    // Frames of message m, and which part of them holds so many of its bytes.
    double frames(MessageId m, double bytes) const;
    void append(std::uint32_t channel, MessageId m);
    bool may_go(const Channel& channel) const;
    void take(Channel& channel);
    void send_segment(Link& out);
    void end_segment(std::uint32_t channel, double bytes, double shaped);
    void start(std::uint32_t channel);
    void start_waiting(Link& out);
    void launch(std::uint32_t channel, MessageId m);
    void begin_flow(std::uint32_t channel, unsigned rail, double bytes, std::function<void()> done);
    void end(std::uint32_t channel, MessageId m, double shaped);
    double through_at_once(Link& out, Link& in, double bytes);
    void list(std::uint32_t channel);

    const SimMachine& machine_;
    const Matching& matching_;
    const Topology& topology_;
    Events events_;
    double segment_;  // bytes; 0: messages as a whole
    double payload_;  // the part of a full frame that is no header
    double grain_;    // seconds: what ends within it ends together
    Platform platform_;
    std::unique_ptr<Flows> flows_;
    std::vector<MessageId> next_;                       // per message: the one behind it in its channel
    std::vector<std::uint8_t> rail_;                    // per message
    std::deque<Channel> channels_;                      // [pair * rails + rail], then notices' own
    std::vector<std::function<void(double)>> notices_;  // [number - messages]
    std::unordered_map<std::uint64_t, std::uint32_t> channel_of_;  // by sender and receiver; of notices
    std::vector<Link> out_, in_;                                   // [host * rails + rail]
    std::vector<std::uint8_t> frozen_;                             // per rank
    // Per rank, notices' own too; from when something has frozen.
    std::vector<std::vector<std::uint32_t>> channels_of_;
};

}  // namespace thalweg::sim
