#include "sim/protocol.h"

#include <algorithm>

namespace thalweg::sim {
namespace {

// Of the same kind, that had gone over the same channel: enough for its credits to swing as they go on doing.
constexpr unsigned operations_before = 3;

// Of three lines that a copy of a cell by itself moves, one is read where it lies, and two, read and written
// back, are where it goes to; a message of cells that are gathered, sent and scattered has both.
constexpr double gathered = 1.0 / 3, scattered = 2.0 / 3;

}  // namespace

Protocol::Protocol(const SimMachine& machine, const Matching& matching, const Topology& topology,
                   bool segments, const ReplayOptions& options)
    : machine_(machine), matching_(matching), topology_(topology), segments_(segments), options_(options) {
    if (options.credits && segments)
        credits_.emplace(matching, machine.puts, operations_before, options.history);
}

bool Protocol::eager(MessageId index) const {
    const Matched& m = matching_.messages[index];
    const SimMachine& machine = machine_for(m.left);
    if (inside(m)) return m.bytes <= machine.intra_eager;
    return m.bytes <= machine.inter_eager && (!machine.synchronous_asks || !synchronous(index));
}

std::vector<Protocol::MessageId> Protocol::sent(MessageId index) {
    if (!synchronous(index)) return {};
    return credits_->acknowledge(index);
}

double Protocol::handed(const Matched& m) const {
    if (!machine_.socket_rate || !segments_) return 0;
    return std::min(static_cast<double>(m.bytes), machine_.socket_bytes) / *machine_.socket_rate;
}

double Protocol::seconds_for(Task task) const {
    const Matched& m = matching_.messages[task.index];
    const SimMachine& machine = machine_for(m.left);
    const double copied = static_cast<double>(m.bytes) / machine.copy_rate_of(m.bytes);
    switch (task.work) {
        case Work::post_send:
            if (!inside(m))
                return machine.post_seconds + (put(task.index) ? machine.put_seconds : 0) +
                       (eager(task.index) || put(task.index) ? handed(m) : 0) + apart(m, gathered);
            // Short ones are in caches where they lie.
            return machine.post_of(true) +
                   (eager(task.index) ? copied + (m.bytes > small_copy_bytes ? apart(m, gathered) : 0) : 0);
        case Work::post_recv:
            return machine.post_recv_seconds.value_or(machine.post_seconds);
        case Work::start_large:
            return machine.post_seconds + handed(m);
        case Work::take_eager:
            return machine.complete_of(inside(m)) + copied + (inside(m) ? 0 : apart(m, scattered));
        case Work::take_put:
            return machine.complete_seconds + machine.post_seconds + machine.take_put_seconds;
        case Work::tell_put:
            return machine.complete_of(inside(m)) + machine.post_of(inside(m));
        case Work::finish_recv:
            return machine.complete_of(inside(m)) + (inside(m) ? 0 : apart(m, scattered));
        case Work::answer:
            return machine.complete_of(inside(m));
        default:
            return 0;
    }
}

std::uint64_t Protocol::came_last(const Matched& m) const {
    const std::uint64_t lines = moved(m) - m.bytes;
    const auto apart = static_cast<std::uint64_t>(static_cast<double>(lines) * scattered);
    if (inside(m)) return apart + m.bytes;
    return apart +
           (segments_ ? std::min(m.bytes, static_cast<std::uint64_t>(machine_.kernel_bytes)) : m.bytes);
}

}  // namespace thalweg::sim
