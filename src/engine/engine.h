// Runs any valid schedule over any transport. Knows no collective and no MPI.
//
// A Channel is the engine's side of one transport: who owns which request slot, and what every peer still
// owes. An Execution is made once per plan (all memory is taken then) and started any number of times:
// start(), advance() and wait() allocate nothing. Several executions may run on one channel at a time; all of
// them are driven by one thread, and whoever waits for one must go on calling advance() on the others that
// run.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/float_modes.h"
#include "base/status.h"
#include "schedule/schedule.h"
#include "transport/transport.h"

namespace thalweg {

struct Limits {
    // Requests that one execution posts at a time, all peers. At least 2 (one send and one receive: the
    // smallest number that cannot deadlock, see window.h); a smaller value is raised. The transport's slots
    // bound it too. The oldest execution goes beyond it when it is starved by it, as some valid schedules
    // need (window.h).
    std::uint32_t in_flight = 64;
    // Bytes sent to one peer that it has not acknowledged. Every message counts its bytes plus
    // message_overhead_bytes, because an unexpected message costs its receiver an envelope too.
    std::uint64_t credit_bytes = 2u << 20;
};
inline constexpr std::uint64_t message_overhead_bytes = 256;

// How `reduce` steps combine: target[i] = left[i] op right[i] over `bytes` bytes, a multiple of
// element_bytes. `target` is `left` or `right`; otherwise the two do not overlap. Elements may be aligned no
// better than the program's own buffers are. Called from whichever thread advances the execution, where it
// `rounds` in the modes of the one that started it (float_modes.h).
struct Reducer {
    void (*combine)(const void* left, const void* right, void* target, std::size_t bytes,
                    void* context) = nullptr;
    void* context = nullptr;
    std::size_t element_bytes = 1;
    bool rounds = false;  // of floating-point numbers: its result depends on modes, and on their order

    // What it depends on if this thread starts it.
    FloatModes modes_here() const { return rounds ? FloatModes::of_this_thread() : FloatModes(); }
};

// The memory a run works on. `out` and `in` are the caller's and must live until the run is done; `scratch`
// is the Execution's own. in may be null where the schedule does not use it; reducer is needed where it has
// reduce steps.
struct Bindings {
    const void* in = nullptr;
    void* out = nullptr;
    Reducer reducer = {};
};

// How a thread waits for advance() to say ok. Where ranks exceed cores: a short spin, then naps and sleep;
// where every rank has a core: spin (with a yield now and then).
enum class WaitPolicy : std::uint8_t { spin, sleep };
const char* name_of(WaitPolicy policy);

struct WaitStatistics {
    std::uint64_t polls = 0;
    std::uint64_t sleeps = 0;
    std::uint64_t slept_ns = 0;
};

// The transport must outlive the channel, and the channel (shared by its executions) outlives them.
// O(transport slots + peers that any execution sends to) memory. Throws std::bad_alloc.
class Channel;
std::shared_ptr<Channel> make_channel(Transport& transport, const Limits& limits);

// The schedule as it shall run on the channel: with receipts (schedule/receipts.h) where synchronous
// messages are overtaken. Not for one whose ends may give a message different sizes (expect_unequal). All
// ranks do the same. Throws std::bad_alloc.
std::shared_ptr<const Schedule> suited_to(const Channel& channel, std::shared_ptr<const Schedule> schedule);

// Where a direct send (step.h) puts: `offset` bytes into memory of the receiver that this rank has attached.
struct Aim {
    Target target = 0;
    std::uint64_t offset = 0;
};

class Execution {
  public:
    // Takes all memory that runs will need; throws std::bad_alloc.
    Execution(std::shared_ptr<const Schedule> schedule, std::shared_ptr<Channel> channel);
    // Pre: not running, or the channel has failed.
    ~Execution();
    Execution(const Execution&) = delete;
    Execution& operator=(const Execution&) = delete;

    // Pre: not running. `operation` is this operation's number on the channel, equal on all ranks; operations
    // are started in the order of their numbers, which wrap. Communicates nothing yet. Errors, with nothing
    // started: unsupported (more operations alive than the transport can tell apart; reduce steps without a
    // reducer), invalid_argument (the schedule is for another rank or group, or numbers a message beyond
    // max_messages_per_pair, as none of a valid group does).
    Status start(const Bindings& bindings, std::uint32_t operation);
    // The same for another thread, whose reducer.modes_here() these are.
    Status start(const Bindings& bindings, std::uint32_t operation, const FloatModes& modes);
    // Issues what is ready, polls the transport once. ok when everything is complete, in_progress otherwise.
    // Errors: those of Transport::progress; the execution is then no longer running and the channel is
    // unusable. truncated: it is over, expect_unequal() says how.
    Status advance();
    bool running() const;

    // From now on direct messages of the schedule are puts, and what arrives so is a signal; without this
    // they are messages as the others. One entry per step, of which those of direct sends count. Pre: not
    // running; the transport is one_sided; all ranks of the group do the same, and this rank's memory that is
    // put into is exposed and stays the one bound.
    void aim(std::vector<Aim> aims);
    // From now on both ends of a message may give it different sizes, as programs do whose receives have room
    // for more than comes: a shorter message is taken for what it is, a longer one is lost and the run ends
    // with the error `truncated`, when everything else is done; the channel stays usable. Pre: not running;
    // all ranks of the group do the same; the schedule receives no message into what another step reads, and
    // has pieces of messages only where the transport tells_excess. Throws std::bad_alloc.
    void expect_unequal();
    // What of receives' memory nothing came for in the last run. Pre: not running.
    std::span<const Slice> gaps() const;

    // Messages that were put into a peer's memory, in all runs. Pre: not running.
    std::uint64_t puts() const;

    struct Impl;

  private:
    friend class DrivenChannel;
    friend Status wait(Execution& execution, WaitPolicy policy, WaitStatistics& statistics);
    std::unique_ptr<Impl> impl_;
};

// Blocks until the execution is done or fails, and keeps the host MPI progressing meanwhile. Pre: started.
// Adds to `statistics`.
Status wait(Execution& execution, WaitPolicy policy, WaitStatistics& statistics);

}  // namespace thalweg
