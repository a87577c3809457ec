#include "sim/replay.h"

#include <algorithm>
#include <new>

#include "sim/clock.h"
#include "sim/cores.h"
#include "sim/dependencies.h"
#include "sim/matching.h"
#include "sim/network.h"
#include "sim/outcome.h"
#include "sim/protocol.h"
#include "sim/rank.h"
#include "sim/trace.h"

namespace thalweg::sim {
namespace {

constexpr std::uint64_t local_piece_bytes = 256 * 1024;  // as the engine's (src/engine/engine.cpp)

class Replay {
  public:
    Replay(std::span<const Schedule> schedules, std::span<const Program> programs, const Topology& topology,
           const SimMachine& machine, const ReplayOptions& options, Matching matching)
        : schedules_(schedules),
          programs_(programs),
          topology_(topology),
          machine_(machine),
          options_(options),
          matching_(number_operations(std::move(matching), programs, options.repeat)),
          dependencies_(schedules, matching_.first),
          network_(machine, matching_, topology, options.shares,
                   {[this](std::uint32_t m, double shaped, double before) { return left(m, shaped, before); },
                    [this](std::uint32_t m) { taken(m); }}),
          protocol_(machine, matching_, topology, network_.in_segments(), options),
          ranks_(schedules.size()),
          cores_(machine, topology, ranks_, [this](std::size_t r) { work(r); }),
          posted_(matching_.messages.size(), 0),
          here_(matching_.messages.size(), 0) {
        if (!options.trace_path.empty()) spans_.resize(matching_.message.size());
    }

    Outcome run() {
        for (std::size_t r = 0; r < ranks_.size(); ++r) ranks_[r].unfinished = schedules_[r].steps().size();
        for (const std::size_t r : cores_.beginning(options_.history)) {
            if (machine_.begin_seconds > 0 && machine_.ranks_share_cores(ranks_.size()))
                at(machine_.begin_seconds, [this, r] { work(r); });
            else
                work(r);
        }
        simgrid::s4u::Engine::get_instance()->run();
        return outcome();
    }

  private:
    const Matched& message(std::uint32_t m) const { return matching_.messages[m]; }
    bool inside(const Matched& m) const { return protocol_.inside(m); }
    bool eager(std::uint32_t m) const { return protocol_.eager(m); }
    double latency(const Matched& m) const { return protocol_.latency(m); }

    // --- a rank's core ---------------------------------------------------------------------------------

    void make_ready(std::size_t r, StepId id) {
        const GlobalStep g = matching_.first[r] + id;
        if (!spans_.empty()) spans_[g].ready = now();
        switch (schedules_[r].steps()[id].kind) {
            case StepKind::send:
                ranks_[r].messages.push_back({Work::post_send, matching_.message[g]});
                break;
            case StepKind::recv:
                ranks_[r].messages.push_back({Work::post_recv, matching_.message[g]});
                break;
            default:
                ranks_[r].bulk.push_back({Work::local, id});
                break;
        }
    }

    // `came`: when it did; 0: now.
    void give(std::int32_t rank, Work what, std::uint32_t m, std::uint32_t came = 0) {
        Rank& of = ranks_[static_cast<std::size_t>(rank)];
        const Task task{what, m, came == 0 ? ++came_ : came};
        if (options_.copies == Copies::before_network && inside(message(m))) {
            // Whoever matches a message copies it before it looks at anything else.
            if (what == Work::copy_large)
                of.host.push_front(task);
            else
                of.host.push_back(task);
        } else if (what == Work::copy_large && options_.copies == Copies::behind_messages) {
            of.bulk.push_back(task);
        } else if (came != 0) {
            of.insert(task);
        } else {
            of.messages.push_back(task);
        }
        work(static_cast<std::size_t>(rank));
    }

    // Until its core is busy or it has nothing left to do. A rank that computes does nothing but by an agent.
    void work(std::size_t r) {
        Rank& rank = ranks_[r];
        if (rank.busy || rank.looping) return;
        if (rank.computing) {
            if (options_.progress == Progress::caller) return;
            if (rank.asleep && !rank.idle()) {
                rank.asleep = false;
                if (machine_.agent_wake_seconds > 0)
                    return cores_.occupy(r, machine_.agent_wake_seconds, [] {});
            }
        }
        rank.looping = true;
        while (!rank.busy) {
            // A call that starts an operation posts and returns; a call that waits does what there is to do.
            const bool returns = !rank.computing && rank.posts == 0 && !waits(r);
            if (!returns && !rank.idle()) {
                const Task task = rank.next();
                if (rank.posts > 0) --rank.posts;
                begin(r, task);
            } else if (rank.computing || !go_on(r)) {
                break;
            }
            if (rank.computing && options_.progress == Progress::caller) break;
        }
        rank.looping = false;
        rank.asleep = !rank.busy && rank.computing;
    }

    // The engine looks at its messages between two pieces of what it copies or reduces. Where ranks have a
    // core each that hardly matters, and the pieces of large machines would be too many.
    bool in_pieces() const { return machine_.shared_cores > 0 && options_.copies == Copies::behind_messages; }

    bool waits(std::size_t r) const {
        return ranks_[r].act == programs_[r].size() || programs_[r][ranks_[r].act].kind == ActKind::wait;
    }

    void begin(std::size_t r, Task task) {
        if (task.work == Work::local) {
            const Step& step = schedules_[r].steps()[task.index];
            const double rate = step.kind == StepKind::reduce ? machine_.reduce_rate
                                                              : machine_.copy_rate_of(step.source.bytes);
            Rank& rank = ranks_[r];
            const std::uint64_t left = step.source.bytes - rank.copied;
            const std::uint64_t piece = in_pieces() ? std::min(left, local_piece_bytes) : left;
            rank.copied += piece;
            if (piece < left) rank.bulk.push_front(task);
            return cores_.copy(r, piece, rate, [this, r, task, last = piece == left] {
                if (!last) return;
                ranks_[r].copied = 0;
                complete(r, task.index);
            });
        }
        const Matched& m = message(task.index);
        if (task.work == Work::copy_large)
            return cores_.copy(r, protocol_.moved(m), machine_.copy_rate, [this, task] { fetched(task); });
        if (task.work == Work::take_eager && m.bytes > small_copy_bytes) {
            // Out of a buffer that is still in some cache, into memory that the host's ranks share.
            return cores_.occupy(r, protocol_.machine_for(m.left).complete_of(inside(m)), [this, r, task] {
                cores_.copy(r, protocol_.came_last(message(task.index)), machine_.copy_rate,
                            [this, task] { perform(task); });
            });
        }
        cores_.occupy(r, protocol_.seconds_for(task), [this, task] { perform(task); });
    }

    // --- messages --------------------------------------------------------------------------------------

    void perform(Task task) {
        const std::uint32_t index = task.index;
        const Matched& m = message(index);
        switch (task.work) {
            case Work::post_send:
                if (!admitted(index)) return;
                if (protocol_.put(index)) return put(index);
                if (!eager(index)) return notify(m, m.from, m.to, [this, index] { arrived(index); });
                if (inside(m))
                    at(now() + latency(m), [this, index] { arrived(index); });
                else
                    network_.queue(index);
                if (inside(m) || !network_.in_segments()) complete(static_cast<std::size_t>(m.from), m.send);
                return;
            case Work::post_recv:
                posted_[index] = 1;
                if (here_[index] != 0) take(index);
                return;
            case Work::answer:
                if (inside(m)) return give(m.to, Work::copy_large, index);
                if (machine_.network_moves_bytes)
                    at(now() + latency(m), [this, index] { network_.queue(index); });
                else
                    notify(m, m.to, m.from,
                           [this, index] { give(message(index).from, Work::start_large, index); });
                return;
            case Work::start_large:
                return network_.queue(index);
            case Work::take_eager:
                if (protocol_.answered(index)) notify(m, m.to, m.from, [this, index] { sent(index); });
                return complete(static_cast<std::size_t>(m.to), m.recv);
            case Work::take_put:
                return notify(m, m.to, m.from, [this, index] { written(index); });
            case Work::tell_put:
                notify(m, m.from, m.to, [this, index] { give(message(index).to, Work::finish_recv, index); });
                return complete(static_cast<std::size_t>(m.from), m.send);
            case Work::finish_recv:
                return complete(static_cast<std::size_t>(m.to), m.recv);
            case Work::finish_send:
                for (const std::uint32_t held : protocol_.sent(index)) give(m.from, Work::post_send, held);
                return complete(static_cast<std::size_t>(m.from), m.send);
            default:
                return;
        }
    }

    // Into memory of another host by an adapter, or by two libraries and their kernels; of the same one by
    // the sender's.
    void put(std::uint32_t index) {
        const Matched& m = message(index);
        if (!inside(m)) return network_.queue(index);
        cores_.copy(static_cast<std::size_t>(m.from), protocol_.moved(m), machine_.copy_rate_of(m.bytes),
                    [this, index] { written(index); });
    }
    void written(std::uint32_t index) { give(message(index).from, Work::tell_put, index); }

    // False: its sender waits for its receiver's acknowledgement first.
    bool admitted(std::uint32_t index) {
        const Matched& m = message(index);
        return !protocol_.counted(index) || protocol_.post(index, m.send == oldest_send(m.from));
    }
    StepId oldest_send(std::int32_t rank) {
        const auto r = static_cast<std::size_t>(rank);
        StepId& oldest = ranks_[r].oldest_send;
        return oldest = dependencies_.incomplete_send(schedules_[r], matching_.first[r], oldest);
    }

    // Tells one end of a message something from the other. Between hosts whose kernels send, that stands
    // behind other bytes of the connection.
    template <class Then>
    void notify(const Matched& m, std::int32_t from, std::int32_t to, Then then) {
        const double way = latency(m);
        if (inside(m) || !network_.in_segments()) return at(now() + way, then);
        network_.notify(from, to, [way, then](double before) { at(std::max(now() + way, before), then); });
    }

    // An eager message, or the announcement of a large one, is at its receiver.
    void arrived(std::uint32_t index) {
        here_[index] = ++came_;
        if (posted_[index] != 0) take(index);
    }
    // No library looks at what comes while it is told what to send and to receive; then it does so in the
    // order in which things came, whenever their receives were posted.
    void take(std::uint32_t index) {
        give(message(index).to, eager(index) ? Work::take_eager : Work::answer, index, here_[index]);
    }

    // The last byte is on the wire. Returns when the message is there.
    double left(std::uint32_t index, double shaped, double before) {
        const Matched& m = message(index);
        double tail = latency(m);
        if (machine_.kernel_bytes > 0) tail += std::min(shaped, machine_.kernel_bytes) / machine_.kernel_rate;
        const double there = std::max(now() + tail, before);
        if (protocol_.put(index)) {
            if (machine_.network_moves_bytes)
                at(there + latency(m), [this, index] { written(index); });
            else
                at(there, [this, index] { give(message(index).to, Work::take_put, index); });
            return there;
        }
        if (eager(index)) {
            at(there, [this, index] { arrived(index); });
            return there;
        }
        at(there, [this, index] { give(message(index).to, Work::finish_recv, index); });
        if (network_.in_segments()) return there;
        // Fetched by the receiver: its notice comes back. Pushed: the sender saw it go.
        const double notice = machine_.network_moves_bytes ? 2 * latency(m) : 0;
        at(now() + notice, [this, index] { give(message(index).from, Work::finish_send, index); });
        return there;
    }

    // The sender's kernel has all of it.
    void taken(std::uint32_t index) {
        if (!protocol_.answered(index) && !protocol_.put(index)) sent(index);
    }
    void sent(std::uint32_t index) { give(message(index).from, Work::finish_send, index); }

    void fetched(Task task) {
        const Matched m = message(task.index);
        at(now() + latency(m), [this, task, m] { give(m.from, Work::finish_send, task.index); });
        complete(static_cast<std::size_t>(m.to), m.recv);
    }

    void complete(std::size_t r, StepId id) {
        const GlobalStep g = matching_.first[r] + id;
        if (!spans_.empty()) spans_[g].complete = now();
        for (const StepId next : dependencies_.complete(g))
            if (dependencies_.met(matching_.first[r] + next)) make_ready(r, next);
        --ranks_[r].unfinished;
        work(r);
    }

    // --- the program -----------------------------------------------------------------------------------

    // The program of a rank whose core has nothing to do. False: it cannot go on, or computes from now on.
    bool go_on(std::size_t r) {
        Rank& rank = ranks_[r];
        if (rank.act == programs_[r].size()) return false;
        const Act& act = programs_[r][rank.act];
        if (act.kind == ActKind::compute) {
            compute(r, act.seconds);
        } else {
            for (StepId id = std::max(act.begin, rank.waited); id < act.end; ++id) {
                const GlobalStep g = matching_.first[r] + id;
                if (act.kind == ActKind::start) {
                    if (schedules_[r].after(id).empty() && dependencies_.met(g)) make_ready(r, id);
                } else if (dependencies_.is_complete(g)) {
                    rank.waited = id + 1;
                } else {
                    return false;
                }
            }
            rank.waited = 0;
            if (act.kind == ActKind::start) {
                rank.posts = rank.messages.size();
                cores_.occupy(r, protocol_.machine_for(act.left).start_seconds, [] {});
            }
        }
        if (++rank.act == programs_[r].size()) rank.done = now();
        return true;
    }

    void compute(std::size_t r, double seconds) {
        if (seconds <= 0) return;
        ranks_[r].computing = true;
        const bool still = options_.progress == Progress::caller && !machine_.network_moves_bytes;
        if (still) network_.freeze(static_cast<int>(r));
        at(now() + seconds, [this, r, still] {
            ranks_[r].computing = false;
            ranks_[r].done = now();
            cores_.awake(r);
            if (still) network_.thaw(static_cast<int>(r));
            work(r);
        });
    }

    // --- the end ---------------------------------------------------------------------------------------

    Outcome outcome() {
        Outcome result = outcome_of(schedules_, topology_, matching_, dependencies_, ranks_);
        if (!spans_.empty() && result.why.empty())
            (void)write_trace(options_.trace_path, schedules_, topology_, matching_, spans_, result.why);
        return result;
    }

    std::span<const Schedule> schedules_;
    std::span<const Program> programs_;
    const Topology& topology_;
    const SimMachine& machine_;
    const ReplayOptions& options_;
    Matching matching_;
    Dependencies dependencies_;
    Network network_;
    Protocol protocol_;
    std::vector<Rank> ranks_;
    Cores cores_;
    std::vector<std::uint8_t> posted_;  // per message: its receive is
    std::vector<std::uint32_t> here_;   // per message: when it, or its announcement, came; 0: it did not
    std::uint32_t came_ = 0;            // things, to any rank
    std::vector<Span> spans_;           // per step; empty: nobody asks
};

}  // namespace

Outcome replay(std::span<const Schedule> schedules, std::span<const Program> programs,
               const Topology& topology, const SimMachine& machine, const ReplayOptions& options) {
    Outcome outcome;
    Matching matching;
    if (!match(schedules, matching, outcome.why)) return outcome;
    try {
        return Replay(schedules, programs, topology, machine, options, std::move(matching)).run();
    } catch (const std::bad_alloc&) {  // a point that is too dear (sim/point.h)
        throw;
    } catch (const std::exception& error) {
        outcome.why = std::string("SimGrid: ") + error.what();
        return outcome;
    }
}

}  // namespace thalweg::sim
