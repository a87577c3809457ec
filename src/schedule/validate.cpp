#include "schedule/validate.h"

#include <algorithm>
#include <array>
#include <memory>

#include "schedule/interval_map.h"
#include "schedule/races.h"

namespace thalweg {
namespace {

// All steps of all ranks are numbered through: rank by rank, in the order of their ids.
using Node = std::uint32_t;
constexpr Node no_node = ~Node{0};

// Whose bytes a run of bytes holds: those of `origin` at own offset + shift. Origin 0: undefined. Runs that
// lie side by side in the origin as they do here are equal, so that a received message of many chunks is one
// run.
struct Value {
    std::uint32_t origin = 0;
    std::int64_t shift = 0;

    bool operator==(const Value&) const = default;
};

std::string plural(std::uint64_t count, const char* what) {
    return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

const char* name_of(Buffer buffer) {
    constexpr const char* names[] = {"in", "out", "scratch"};
    return names[static_cast<int>(buffer)];
}

class Validator {
  public:
    Validator(std::span<const Schedule> schedules, std::span<const Contract> contracts)
        : schedules_(schedules), contracts_(contracts) {}

    Verdict run() {
        if (check_form() && match_messages() && check_races() && order_steps()) follow_values();
        if (!verdict_.why.empty()) verdict_.status = Status::invalid_schedule;
        return std::move(verdict_);
    }

  private:
    const Step& step(std::size_t rank, StepId id) const { return schedules_[rank].steps()[id]; }
    Node node(std::size_t rank, StepId id) const { return first_[rank] + id; }

    // The rank and the id of a node.
    std::pair<std::size_t, StepId> place(Node node) const {
        const auto after = std::upper_bound(first_.begin(), first_.end(), node);
        const auto rank = static_cast<std::size_t>(after - first_.begin()) - 1;
        return {rank, node - first_[rank]};
    }

    std::string name(std::size_t rank, StepId id) const {
        constexpr const char* kinds[] = {"send to ", "recv from ", "copy", "reduce"};
        const Step& it = step(rank, id);
        std::string text = "rank " + std::to_string(rank) + " step " + std::to_string(id) + " (" +
                           kinds[static_cast<int>(it.kind)];
        if (is_message(it.kind)) text += std::to_string(it.peer) + ", message " + std::to_string(it.message);
        return text + ")";
    }

    bool fail(std::string why) {
        verdict_.why = std::move(why);
        return false;
    }

    // --- form: ids, peers, sizes, bounds
    // -----------------------------------------------------------------------

    bool check_form() {
        if (schedules_.size() != contracts_.size()) return fail("there is not one contract per schedule");
        std::uint64_t total = 0;
        for (std::size_t rank = 0; rank < schedules_.size(); ++rank) {
            const Schedule& schedule = schedules_[rank];
            if (schedule.rank() != static_cast<int>(rank) ||
                schedule.size() != static_cast<int>(schedules_.size()))
                return fail("rank " + std::to_string(rank) + ": the schedule is for rank " +
                            std::to_string(schedule.rank()) + " of " + std::to_string(schedule.size()));
            first_.push_back(static_cast<Node>(total));
            total += schedule.steps().size();
            if (total >= no_node) return fail("there are too many steps to check");
            for (StepId id = 0; id < schedule.steps().size(); ++id)
                if (!check_step(rank, id)) return false;
            for (const Slice& slice : contracts_[rank].defined)
                if (!inside(rank, slice)) return fail(contract_outside(rank, slice));
            for (const Slice& slice : contracts_[rank].required)
                if (!inside(rank, slice)) return fail(contract_outside(rank, slice));
            for (const Expectation& expectation : contracts_[rank].expected)
                if (!inside(rank, expectation.slice)) return fail(contract_outside(rank, expectation.slice));
        }
        steps_ = static_cast<Node>(total);
        return true;
    }

    bool check_step(std::size_t rank, StepId id) {
        const Step& it = step(rank, id);
        for (StepId on : schedules_[rank].after(id))
            if (on >= id)
                return fail(name(rank, id) + " follows step " + std::to_string(on) + ", a later one");
        if (is_message(it.kind)) {
            if (it.peer < 0 || it.peer >= schedules_[rank].size() || it.peer == static_cast<int>(rank))
                return fail(name(rank, id) + " has no such peer");
            if (it.message >= max_messages_per_pair)
                return fail(name(rank, id) + " is more than one pair of ranks may exchange");
        } else if (it.source.bytes != it.target.bytes) {
            return fail(name(rank, id) + " reads " + plural(it.source.bytes, "byte") + " and writes " +
                        std::to_string(it.target.bytes));
        } else if (overlap(it.source, it.target)) {
            return fail(name(rank, id) + " reads bytes that it writes");
        }
        if (it.kind != StepKind::recv && !inside(rank, it.source)) return fail(outside(rank, id, it.source));
        if (it.kind != StepKind::send && !inside(rank, it.target)) return fail(outside(rank, id, it.target));
        if (it.kind != StepKind::send && it.target.buffer == Buffer::in && it.target.bytes != 0)
            return fail(name(rank, id) + " writes to in, which is read only");
        return true;
    }

    std::uint64_t extent(std::size_t rank, Buffer buffer) const {
        if (buffer == Buffer::in) return contracts_[rank].in_bytes;
        return buffer == Buffer::out ? contracts_[rank].out_bytes : schedules_[rank].scratch_bytes();
    }

    bool inside(std::size_t rank, const Slice& slice) const {
        const std::uint64_t bytes = extent(rank, slice.buffer);
        return slice.offset <= bytes && slice.bytes <= bytes - slice.offset;
    }

    std::string span_text(std::size_t rank, const Slice& slice) const {
        return plural(slice.bytes, "byte") + " at " + std::to_string(slice.offset) + " of " +
               name_of(slice.buffer) + ", which has " + std::to_string(extent(rank, slice.buffer));
    }

    std::string outside(std::size_t rank, StepId id, const Slice& slice) const {
        return name(rank, id) + " is out of bounds: " + span_text(rank, slice);
    }

    std::string contract_outside(std::size_t rank, const Slice& slice) const {
        return "rank " + std::to_string(rank) + ": the contract is out of bounds: " + span_text(rank, slice);
    }

    // --- messages: every send meets its receive
    // ----------------------------------------------------------------

    struct End {
        std::uint64_t pair;  // sender × ranks + receiver
        std::uint32_t message;
        Node node;

        bool before(const End& other) const {
            return pair != other.pair ? pair < other.pair : message < other.message;
        }
    };

    bool match_messages() {
        std::vector<End> sends, recvs;
        const std::uint64_t ranks = schedules_.size();
        for (std::size_t rank = 0; rank < ranks; ++rank) {
            for (StepId id = 0; id < schedules_[rank].steps().size(); ++id) {
                const Step& it = step(rank, id);
                const auto peer = static_cast<std::uint64_t>(it.peer);
                if (it.kind == StepKind::send)
                    sends.push_back({rank * ranks + peer, it.message, node(rank, id)});
                if (it.kind == StepKind::recv)
                    recvs.push_back({peer * ranks + rank, it.message, node(rank, id)});
            }
        }
        auto before = [](const End& a, const End& b) { return a.before(b); };
        std::sort(sends.begin(), sends.end(), before);
        std::sort(recvs.begin(), recvs.end(), before);
        if (!check_unique(sends) || !check_unique(recvs)) return false;

        other_end_.assign(steps_, no_node);
        for (std::size_t i = 0; i < std::max(sends.size(), recvs.size()); ++i) {
            if (i == recvs.size() || (i < sends.size() && sends[i].before(recvs[i])))
                return fail(name_of(sends[i].node) + " is never received");
            if (i == sends.size() || recvs[i].before(sends[i]))
                return fail(name_of(recvs[i].node) + " waits for a message that is never sent");
            const auto [from, send] = place(sends[i].node);
            const auto [to, recv] = place(recvs[i].node);
            const std::uint64_t bytes = step(from, send).source.bytes;
            if (bytes != step(to, recv).target.bytes)
                return fail(name(from, send) + " sends " + plural(bytes, "byte") + " but " + name(to, recv) +
                            " takes " + std::to_string(step(to, recv).target.bytes));
            other_end_[sends[i].node] = recvs[i].node;
            other_end_[recvs[i].node] = sends[i].node;
            verdict_.messages += bytes != 0;
            verdict_.bytes += bytes;
        }
        return true;
    }

    bool check_unique(const std::vector<End>& ends) {
        for (std::size_t i = 1; i < ends.size(); ++i)
            if (!ends[i - 1].before(ends[i]))
                return fail(name_of(ends[i].node) + " has the number of another message of this pair");
        return true;
    }

    std::string name_of(Node node) const {
        const auto [rank, id] = place(node);
        return name(rank, id);
    }
    static const char* name_of(Buffer buffer) { return thalweg::name_of(buffer); }

    // --- races: conflicting steps of one rank are ordered
    // --------------------------------------------------------

    bool check_races() {
        for (std::size_t rank = 0; rank < schedules_.size(); ++rank) {
            Race race;
            if (find_race(schedules_[rank], race))
                return fail(name(rank, race.later) + " and step " + std::to_string(race.earlier) +
                            " both touch byte " + std::to_string(race.byte) + " of " + name_of(race.buffer) +
                            ", one of them writes, and neither follows the other");
        }
        return true;
    }

    // --- order: no cycle across ranks
    // ----------------------------------------------------------------------------

    // Both ends of a message are one event: the send's node. That is the strictest reading (no message leaves
    // before its receive is posted), and a schedule must not need a kinder one.
    Node event(Node node) const {
        const Node other = other_end_[node];
        if (other == no_node) return node;
        const auto [rank, id] = place(node);
        return step(rank, id).kind == StepKind::send ? node : other;
    }

    bool order_steps() {
        std::vector<Node> event_of(steps_);
        for (Node n = 0; n < steps_; ++n) event_of[n] = event(n);

        // Followers of every step, one after another.
        std::vector<std::uint64_t> begin(std::size_t{steps_} + 1, 0);
        for_each_dependency([&](Node on, Node) { ++begin[on + 1]; });
        for (std::size_t n = 0; n < steps_; ++n) begin[n + 1] += begin[n];
        std::vector<Node> followers(begin[steps_]);
        std::vector<std::uint64_t> fill(begin.begin(), begin.end() - 1);
        std::vector<std::uint32_t> waits_for(steps_, 0);
        for_each_dependency([&](Node on, Node by) {
            followers[fill[on]++] = event_of[by];
            ++waits_for[event_of[by]];
        });

        std::vector<std::uint32_t> depth(steps_,
                                         0);  // messages on the longest chain up to and including this
        order_.clear();
        for (Node n = 0; n < steps_; ++n)
            if (event_of[n] == n && waits_for[n] == 0) order_.push_back(n);
        for (std::size_t done = 0; done < order_.size(); ++done) {
            const Node now = order_[done], other = other_end_[now];
            if (other != no_node) ++depth[now];
            verdict_.rounds = std::max<std::uint64_t>(verdict_.rounds, depth[now]);
            for (Node end : {now, other}) {
                if (end == no_node) continue;
                for (std::uint64_t i = begin[end]; i < begin[end + 1]; ++i) {
                    const Node next = followers[i];
                    depth[next] = std::max(depth[next], depth[now]);
                    if (--waits_for[next] == 0) order_.push_back(next);
                }
            }
        }
        for (Node n = 0; n < steps_; ++n)
            if (event_of[n] == n && waits_for[n] != 0) return fail(describe_cycle(n, event_of, waits_for));
        return true;
    }

    template <class Visit>
    void for_each_dependency(Visit visit) const {
        for (std::size_t rank = 0; rank < schedules_.size(); ++rank)
            for (StepId id = 0; id < schedules_[rank].steps().size(); ++id)
                for (StepId on : schedules_[rank].after(id)) visit(node(rank, on), node(rank, id));
    }

    // From an event that never happens, back along events that never happen, until one comes round again.
    std::string describe_cycle(Node from, const std::vector<Node>& event_of,
                               const std::vector<std::uint32_t>& waits_for) const {
        std::vector<bool> seen(steps_, false);
        Node now = from;
        while (!seen[now]) {
            seen[now] = true;
            now = blocking(now, event_of, waits_for);
        }
        std::string path = name_of(now);
        Node at = now;
        std::size_t length = 0;
        do {
            at = blocking(at, event_of, waits_for);
            if (++length <= 4) path += (length == 1 ? " waits for " : ", which waits for ") + name_of(at);
        } while (at != now);
        return path + (length > 4 ? ", and so on: " : ": ") + "a cycle of " + plural(length, "step");
    }

    // An event that `now` waits for and that never happens.
    Node blocking(Node now, const std::vector<Node>& event_of,
                  const std::vector<std::uint32_t>& waits_for) const {
        for (Node end : {now, other_end_[now]}) {
            if (end == no_node) continue;
            const auto [rank, id] = place(end);
            for (StepId on : schedules_[rank].after(id)) {
                const Node candidate = event_of[node(rank, on)];
                if (waits_for[candidate] != 0) return candidate;
            }
        }
        return now;
    }

    // --- values: nothing undefined is read, everything required is written
    // ---------------------------------------

    using Values = std::array<IntervalMap<Value>, 3>;

    struct Piece {
        std::uint64_t begin, end;
        Value value;
    };

    static std::uint32_t origin_of(std::size_t rank, Buffer buffer) {
        return static_cast<std::uint32_t>(1 + rank * 3 + static_cast<std::size_t>(buffer));
    }

    IntervalMap<Value>& values(std::size_t rank, const Slice& slice) {
        return values_[rank][static_cast<std::size_t>(slice.buffer)];
    }

    bool follow_values() {
        values_ = std::make_unique<Values[]>(schedules_.size());
        for (std::size_t rank = 0; rank < schedules_.size(); ++rank)
            for (const Slice& slice : contracts_[rank].defined)
                values(rank, slice)
                    .assign(slice.offset, slice.end(), {origin_of(rank, slice.buffer), 0}, true);
        next_origin_ = origin_of(schedules_.size(), Buffer::in);
        for (Node now : order_) {
            const auto [rank, id] = place(now);
            const Step& it = step(rank, id);
            if (!read(rank, id, it.source)) return false;
            if (it.kind == StepKind::send) {
                const auto [to, recv] = place(other_end_[now]);
                write(to, step(to, recv).target, it.source, true);
            } else if (it.kind == StepKind::copy) {
                write(rank, it.target, it.source, false);
            } else {  // a reduction makes bytes that nobody had before
                if (!read(rank, id, it.target)) return false;
                values(rank, it.target).assign(it.target.offset, it.target.end(), {next_origin_++, 0});
            }
        }
        for (std::size_t rank = 0; rank < schedules_.size(); ++rank)
            if (!check_end(rank)) return false;
        return true;
    }

    // Collects what `slice` holds into pieces_.
    bool read(std::size_t rank, StepId id, const Slice& slice) {
        pieces_.clear();
        std::uint64_t undefined = slice.end();
        values(rank, slice)
            .each(slice.offset, slice.end(), [&](std::uint64_t begin, std::uint64_t end, const Value& value) {
                if (value.origin == 0) undefined = std::min(undefined, begin);
                pieces_.push_back({begin, end, value});
            });
        if (undefined == slice.end()) return true;
        return fail(name(rank, id) + " reads byte " + std::to_string(undefined) + " of " +
                    name_of(slice.buffer) + ", which is undefined");
    }

    // Moves pieces_, read from `source`, to `target`; counts what was there already when it comes from
    // another rank.
    void write(std::size_t rank, const Slice& target, const Slice& source, bool message) {
        IntervalMap<Value>& map = values(rank, target);
        const auto move = static_cast<std::int64_t>(target.offset - source.offset);
        std::uint64_t redundant = 0;
        for (const Piece& piece : pieces_) {
            const std::uint64_t begin = piece.begin + static_cast<std::uint64_t>(move);
            const std::uint64_t end = piece.end + static_cast<std::uint64_t>(move);
            const Value value{piece.value.origin, piece.value.shift - move};
            bool changes = !message;
            if (message)
                map.each(begin, end, [&](std::uint64_t from, std::uint64_t to, const Value& old) {
                    if (old == value)
                        redundant += to - from;
                    else
                        changes = true;
                });
            if (changes) map.assign(begin, end, value, true);
        }
        verdict_.redundant_bytes += redundant;
        verdict_.redundant_messages += redundant != 0 && redundant == target.bytes;
    }

    bool check_end(std::size_t rank) {
        const std::string who = "rank " + std::to_string(rank) + ": byte ";
        for (const Slice& slice : contracts_[rank].required)
            values(rank, slice)
                .each(slice.offset, slice.end(), [&](std::uint64_t begin, std::uint64_t, const Value& value) {
                    if (value.origin == 0 && verdict_.why.empty())
                        fail(who + std::to_string(begin) + " of " + name_of(slice.buffer) +
                             " is undefined at the end");
                });
        for (const Expectation& it : contracts_[rank].expected) {
            const Value right{origin_of(static_cast<std::size_t>(it.rank), it.buffer),
                              static_cast<std::int64_t>(it.offset - it.slice.offset)};
            values(rank, it.slice)
                .each(it.slice.offset, it.slice.end(),
                      [&](std::uint64_t begin, std::uint64_t, const Value& value) {
                          if (value != right && verdict_.why.empty())
                              fail(who + std::to_string(begin) + " of " + name_of(it.slice.buffer) +
                                   " does not end as byte " +
                                   std::to_string(begin - it.slice.offset + it.offset) + " of rank " +
                                   std::to_string(it.rank) + "'s " + name_of(it.buffer));
                      });
        }
        return verdict_.why.empty();
    }

    std::span<const Schedule> schedules_;
    std::span<const Contract> contracts_;
    Verdict verdict_;
    Node steps_ = 0;
    std::vector<Node> first_;      // node of each rank's step 0
    std::vector<Node> other_end_;  // of a send or receive; no_node for other steps
    std::vector<Node> order_;      // events, each after those that it waits for
    std::unique_ptr<Values[]> values_;
    std::vector<Piece> pieces_;
    std::uint32_t next_origin_ = 0;
};

}  // namespace

Verdict validate(std::span<const Schedule> schedules, std::span<const Contract> contracts) {
    return Validator(schedules, contracts).run();
}

}  // namespace thalweg
