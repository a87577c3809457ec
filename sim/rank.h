// A rank while it is replayed: what its core has to do, and how far its program is. Private to the replay.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <iterator>

#include "schedule/step.h"

namespace thalweg::sim {

// What a rank's core can be asked to do.
enum class Work : std::uint8_t {
    post_send,    // hand a message to the library
    post_recv,    // tell the library where one goes
    take_eager,   // copy a message that has arrived to its place
    answer,       // match the announcement of a large message, and ask for it
    start_large,  // the sender's part of that, where the network does not fetch by itself
    copy_large,   // fetch a large message of this host
    finish_recv,  // notice that a large message is there
    finish_send,  // notice that one is gone
    take_put,     // write what has come to its place, and say so
    tell_put,     // hear that, and tell the receiver
    local         // copy or reduce
};

struct Task {
    Work work;
    std::uint32_t index;     // of the message; of a local step its id
    std::uint32_t came = 0;  // of what came from elsewhere: its place among all that did
};

struct Rank {
    // What its own host sent it, where a library looks there first; else empty.
    std::deque<Task> host;
    // What peers wait for goes first; then whole copies one by one, as the engine does one chunk between two
    // looks at its messages.
    std::deque<Task> messages, bulk;
    std::uint64_t unfinished = 0;
    double began = -1;  // when it had a core for the first time; below 0: it had none
    double done = 0;
    std::uint64_t copied = 0;  // bytes of the local step that it is in the middle of: the first of bulk
    bool busy = false;         // the core is on a task
    bool looping = false;      // run() is on the stack
    std::size_t act = 0;       // of its program: the one that it is at
    std::size_t posts = 0;     // tasks that the operation just started begins with
    StepId oldest_send = 0;    // no smaller step is a send that is incomplete
    StepId waited = 0;         // up to here the steps that it waits for are complete
    bool computing = false;
    bool asleep = false;  // an agent with nothing to do

    // Adds what came while its receive was not posted yet: before what came later. Posts stand where they
    // are.
    void insert(const Task& task) {
        auto later = messages.end();
        while (later != messages.begin() && std::prev(later)->came > task.came) --later;
        messages.insert(later, task);
    }

    bool idle() const { return host.empty() && messages.empty() && bulk.empty(); }
    // What the core does next, taken out of its queue. Pre: not idle. What a program posts stands in
    // `messages`: it goes before what has come meanwhile.
    Task next() {
        auto& queue = posts == 0 && !host.empty() ? host
                      : !messages.empty()         ? messages
                      : !bulk.empty()             ? bulk
                                                  : host;
        const Task task = queue.front();
        queue.pop_front();
        return task;
    }
};

}  // namespace thalweg::sim
