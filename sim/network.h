// Transfers between hosts: who may use a link next, and SimGrid's flows underneath. Private to the replay.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "sim/matching.h"
#include "sim/platform.h"
#include "topology/topology.h"

namespace thalweg::sim {

// Runs `action` at `date`, seconds of the simulated clock; now or later.
void at(double date, std::function<void()> action);
double now();

class Network {
  public:
    using MessageId = std::uint32_t;

    // `left(m, shaped)`: the last byte of message m has left its sender; so many of its bytes waited for the
    // link's shaper, all of them where there is none. The references must outlive the network.
    Network(const SimMachine& machine, const Matching& matching, const Topology& topology,
            std::function<void(MessageId, double)> left);

    // Message m is ready to leave. Messages of a pair that use the same rail leave in the order of these
    // calls.
    void queue(MessageId m);

    // Nothing of `rank` moves until it is thawed. A transfer moves while neither end is frozen.
    void freeze(int rank);
    void thaw(int rank);

  private:
    using FlowId = std::uint32_t;

    // Messages of one pair over one rail, one at a time.
    struct Channel {
        MessageId head = none, tail = none;
        bool busy = false;  // the head has been given to its link, or stands in a queue
        FlowId flow = none;
    };

    // One direction of one rail of one host.
    struct Link {
        unsigned active = 0;
        double next_free = 0;  // when it takes another message
        double idle_since = 0;
        double tokens = 0;                  // bytes that the shaper lets through at once
        double queued = 0;                  // bytes given to it and not sent
        std::deque<std::uint32_t> waiting;  // channels, where it works on few messages at a time
    };

    struct Flow {
        simgrid::s4u::ActivityPtr activity;
        std::function<void()> done;
    };

    std::size_t link_of(std::int32_t rank, unsigned rail) const;
    void start(std::uint32_t channel);
    void launch(std::uint32_t channel, MessageId m);
    void end(std::uint32_t channel, MessageId m, double shaped);
    double through_at_once(Link& out, Link& in, double bytes);
    // The place of an activity that starts; its number + 1 is the activity's user data.
    FlowId keep(simgrid::s4u::ActivityPtr activity, std::function<void()> done);
    void flow_ended(FlowId id);

    const SimMachine& machine_;
    const Matching& matching_;
    const Topology& topology_;
    std::function<void(MessageId, double)> left_;
    Platform platform_;
    std::vector<MessageId> next_;                          // per message: the one behind it in its channel
    std::vector<std::uint8_t> rail_;                       // per message
    std::vector<Channel> channels_;                        // [pair * rails + rail]
    std::vector<Link> out_, in_;                           // [host * rails + rail]
    std::vector<std::uint8_t> frozen_;                     // per rank
    std::vector<std::vector<std::uint32_t>> channels_of_;  // per rank, only while something can freeze
    std::vector<Flow> flows_;
    std::vector<FlowId> free_flows_;
    std::vector<simgrid::s4u::ActivityPtr> ended_;  // kept until SimGrid has let go of them
};

}  // namespace thalweg::sim
