// Plays the schedules of all ranks over ports that carry one message at a time in each direction (a host of
// several rails: as many). A message inside a host has the share of its memory that is its own at its start.
#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <set>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "model/cost.h"

namespace thalweg {
namespace {

using Port = std::uint32_t;

struct Message {
    std::uint32_t from = 0, to = 0;  // ranks
    StepId send = 0, recv = 0;
    std::uint32_t ends_waited_for = 2;
    Port out = 0, in = 0;
    Picoseconds duration = 0;  // alone
    std::uint64_t copied = 0;  // bytes through the memory of its host; 0 between hosts
};

struct Rank {
    std::vector<std::uint32_t> waits_for;        // per step
    std::vector<std::vector<StepId>> followers;  // per step
    std::vector<std::uint32_t> message;          // per step, of messages
};

class Play {
  public:
    Play(std::span<const Schedule> schedules, const Topology& topology, const Machine& machine)
        : schedules_(schedules), topology_(topology), machine_(machine) {
        // Ports: one per host between hosts, then one per rank inside hosts.
        const std::size_t ports = static_cast<std::size_t>(topology.nodes()) + schedules.size();
        out_free_.assign(ports, 1);
        in_free_.assign(ports, 1);
        const std::uint64_t rails = std::max<std::uint64_t>(machine.inter.ports, 1);
        std::fill_n(out_free_.begin(), topology.nodes(), rails);
        std::fill_n(in_free_.begin(), topology.nodes(), rails);
        copying_.assign(static_cast<std::size_t>(topology.nodes()), 0);
        waiting_.resize(ports);
        wanted_by_.resize(ports);
        connect();
    }

    Picoseconds end() {
        for (std::uint32_t r = 0; r < ranks_.size(); ++r)
            for (StepId step = 0; step < ranks_[r].waits_for.size(); ++step)
                if (ranks_[r].waits_for[step] == 0) become_ready(r, step);
        start_waiting();
        while (!events_.empty()) {
            now_ = std::get<0>(events_.top());
            while (!events_.empty() && std::get<0>(events_.top()) == now_) {
                const auto [time, kind, index, step] = events_.top();
                events_.pop();
                kind == 0 ? arrive(messages_[index]) : complete(index, step);
            }
            start_waiting();
        }
        return now_;
    }

  private:
    using Event =
        std::tuple<Picoseconds, int, std::uint32_t, StepId>;  // kind 0: a message, 1: a local step of a rank

    void connect() {
        ranks_.resize(schedules_.size());
        std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::uint32_t> by_name;
        for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
            const Schedule& schedule = schedules_[r];
            const std::size_t steps = schedule.steps().size();
            ranks_[r].waits_for.resize(steps);
            ranks_[r].followers.resize(steps);
            ranks_[r].message.resize(steps);
            for (StepId id = 0; id < steps; ++id) {
                ranks_[r].waits_for[id] = static_cast<std::uint32_t>(schedule.after(id).size());
                for (StepId on : schedule.after(id)) ranks_[r].followers[on].push_back(id);
                const Step& step = schedule.steps()[id];
                if (!is_message(step.kind)) continue;
                const bool send = step.kind == StepKind::send;
                const auto peer = static_cast<std::uint32_t>(step.peer);
                const std::uint32_t from = send ? r : peer, to = send ? peer : r;
                const auto [found, fresh] = by_name.try_emplace({from, to, step.message},
                                                                static_cast<std::uint32_t>(messages_.size()));
                if (fresh)
                    messages_.push_back(make_message(from, to, (send ? step.source : step.target).bytes));
                (send ? messages_[found->second].send : messages_[found->second].recv) = id;
                ranks_[r].message[id] = found->second;
            }
        }
    }

    Message make_message(std::uint32_t from, std::uint32_t to, std::uint64_t bytes) const {
        const int source = topology_.node_of(static_cast<int>(from)),
                  target = topology_.node_of(static_cast<int>(to));
        const auto hosts = static_cast<Port>(topology_.nodes());
        const Level& level = source == target ? machine_.intra : machine_.inter;
        Message message;
        message.from = from;
        message.to = to;
        message.out = source == target ? hosts + from : static_cast<Port>(source);
        message.in = source == target ? hosts + to : static_cast<Port>(target);
        message.duration = level.latency + level.transfer(bytes);
        if (source == target) message.copied = bytes;
        return message;
    }

    void become_ready(std::uint32_t r, StepId id) {
        const Step& step = schedules_[r].steps()[id];
        if (!is_message(step.kind)) {
            const std::uint64_t bytes = step.source.bytes;
            const Picoseconds time =
                step.kind == StepKind::reduce ? machine_.reduction(bytes) : machine_.intra.transfer(bytes);
            events_.emplace(now_ + time, 1, r, id);
            return;
        }
        Message& message = messages_[ranks_[r].message[id]];
        if (--message.ends_waited_for != 0) return;
        waiting_[message.out].emplace(now_, message.send, ranks_[r].message[id]);
        look_at_.insert(message.out);
    }

    void arrive(const Message& message) {
        ++out_free_[message.out], ++in_free_[message.in];
        if (message.copied != 0) --copying(message);
        look_at_.insert(message.out);
        look_at_.insert(wanted_by_[message.in].begin(), wanted_by_[message.in].end());
        wanted_by_[message.in].clear();
        complete(message.from, message.send);
        complete(message.to, message.recv);
    }

    void complete(std::uint32_t r, StepId id) {
        for (StepId next : ranks_[r].followers[id])
            if (--ranks_[r].waits_for[next] == 0) become_ready(r, next);
    }

    std::uint64_t& copying(const Message& message) {
        return copying_[static_cast<std::size_t>(topology_.node_of(static_cast<int>(message.from)))];
    }

    // Every free port sends the first of its messages whose receiving port is free.
    void start_waiting() {
        for (Port port : look_at_) {
            auto& queue = waiting_[port];
            for (auto it = queue.begin(); it != queue.end() && out_free_[port] > 0;) {
                const std::uint32_t index = std::get<2>(*it);
                const Message& message = messages_[index];
                if (in_free_[message.in] == 0) {
                    wanted_by_[message.in].insert(port);
                    ++it;
                    continue;
                }
                --out_free_[port], --in_free_[message.in];
                Picoseconds duration = message.duration;
                if (message.copied != 0)
                    duration = std::max(duration, machine_.intra.latency +
                                                      machine_.copies(++copying(message) * message.copied));
                events_.emplace(now_ + duration, 0, index, 0);
                it = queue.erase(it);
            }
        }
        look_at_.clear();
    }

    std::span<const Schedule> schedules_;
    const Topology& topology_;
    const Machine& machine_;
    Picoseconds now_ = 0;
    std::vector<Rank> ranks_;
    std::vector<Message> messages_;
    std::vector<std::uint64_t> out_free_, in_free_;  // messages that a port can take at once
    std::vector<std::uint64_t> copying_;             // messages under way inside each host
    std::vector<std::set<std::tuple<Picoseconds, StepId, std::uint32_t>>> waiting_;  // per sending port
    std::vector<std::set<Port>> wanted_by_;  // sending ports with a message for this receiving port
    std::set<Port> look_at_;
    std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
};

}  // namespace

Picoseconds play(std::span<const Schedule> schedules, const Topology& topology, const Machine& machine) {
    return Play(schedules, topology, machine).end();
}

}  // namespace thalweg
