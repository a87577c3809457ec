#include "schedule/validate.h"

#include <algorithm>

#include "schedule/group_steps.h"
#include "schedule/races.h"
#include "schedule/values.h"

namespace thalweg {
namespace {

std::string plural(std::uint64_t count, const char* what) {
    return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

class Validator {
  public:
    Validator(std::span<const Schedule> schedules, std::span<const Contract> contracts)
        : schedules_(schedules), contracts_(contracts), group_{schedules, {}, 0, {}, {}} {}

    Verdict run() {
        if (check_form() && match_messages() && check_direct() && check_races() && order_steps()) {
            verdict_.why = follow_values(group_, contracts_, verdict_);
            if (verdict_.why.empty()) verdict_.why = find_early_end(group_, contracts_);
        }
        if (!verdict_.why.empty()) verdict_.status = Status::invalid_schedule;
        return std::move(verdict_);
    }

  private:
    const Step& step(std::size_t rank, StepId id) const { return group_.step(rank, id); }
    std::string name(std::size_t rank, StepId id) const { return group_.name(rank, id); }
    std::string name_of(Node node) const { return group_.name(node); }

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
            group_.first.push_back(static_cast<Node>(total));
            total += schedule.steps().size();
            if (total >= no_node) return fail("there are too many steps to check");
            for (StepId id = 0; id < schedule.steps().size(); ++id)
                if (!check_step(rank, id)) return false;
            for (const Slice& slice : contracts_[rank].defined)
                if (!inside(rank, slice)) return fail(contract_outside(rank, slice));
            for (const Slice& slice : contracts_[rank].required)
                if (!inside(rank, slice)) return fail(contract_outside(rank, slice));
            for (const Slice& slice : contracts_[rank].untouched)
                if (!inside(rank, slice)) return fail(contract_outside(rank, slice));
            for (const Expectation& expectation : contracts_[rank].expected)
                if (!inside(rank, expectation.slice)) return fail(contract_outside(rank, expectation.slice));
        }
        group_.total = static_cast<Node>(total);
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
               buffer_name(slice.buffer) + ", which has " + std::to_string(extent(rank, slice.buffer));
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
                    sends.push_back({rank * ranks + peer, it.message, group_.node(rank, id)});
                if (it.kind == StepKind::recv)
                    recvs.push_back({peer * ranks + rank, it.message, group_.node(rank, id)});
            }
        }
        auto before = [](const End& a, const End& b) { return a.before(b); };
        std::sort(sends.begin(), sends.end(), before);
        std::sort(recvs.begin(), recvs.end(), before);
        if (!check_unique(sends) || !check_unique(recvs)) return false;

        group_.other_end.assign(group_.total, no_node);
        for (std::size_t i = 0; i < std::max(sends.size(), recvs.size()); ++i) {
            if (i == recvs.size() || (i < sends.size() && sends[i].before(recvs[i])))
                return fail(name_of(sends[i].node) + " is never received");
            if (i == sends.size() || recvs[i].before(sends[i]))
                return fail(name_of(recvs[i].node) + " waits for a message that is never sent");
            const auto [from, send] = group_.place(sends[i].node);
            const auto [to, recv] = group_.place(recvs[i].node);
            const std::uint64_t bytes = step(from, send).source.bytes;
            if (bytes != step(to, recv).target.bytes)
                return fail(name(from, send) + " sends " + plural(bytes, "byte") + " but " + name(to, recv) +
                            " takes " + std::to_string(step(to, recv).target.bytes));
            if (step(from, send).full_bytes != step(to, recv).full_bytes ||
                step(from, send).may_follow != step(to, recv).may_follow)
                return fail(name(from, send) + " is another piece of its message than " + name(to, recv));
            group_.other_end[sends[i].node] = recvs[i].node;
            group_.other_end[recvs[i].node] = sends[i].node;
            verdict_.messages += bytes != 0;
            verdict_.signals += bytes == 0;
            verdict_.bytes += bytes;
        }
        return check_pieces(recvs);
    }

    bool check_unique(const std::vector<End>& ends) {
        for (std::size_t i = 1; i < ends.size(); ++i)
            if (!ends[i - 1].before(ends[i]))
                return fail(name_of(ends[i].node) + " has the number of another message of this pair");
        return true;
    }

    // A message in pieces goes on behind each full one, and ends with the first that is not (step.h). `recvs`
    // is sorted; a receive that waits for the piece before it is posted when that has come.
    bool check_pieces(const std::vector<End>& recvs) {
        piece_before_.assign(group_.total, no_node);
        for (std::size_t i = 0; i < recvs.size(); ++i) {
            const auto [rank, id] = group_.place(recvs[i].node);
            const Step& it = step(rank, id);
            if (it.full_bytes == 0) continue;
            if (it.target.bytes > it.full_bytes)
                return fail(name(rank, id) + " is larger than a full piece of its message");
            const bool ends = it.target.bytes < it.full_bytes || it.may_follow == 0;
            const bool followed = i + 1 < recvs.size() && recvs[i + 1].pair == recvs[i].pair &&
                                  recvs[i + 1].message - it.message <= it.may_follow;
            if (!followed && !ends) return fail(name(rank, id) + " is a full piece, and none follows");
            if (!followed) continue;
            const Node behind = recvs[i + 1].node;
            if (ends) return fail(name_of(behind) + " stands behind the last piece of its message");
            const Step& next = step(rank, group_.place(behind).second);
            if (next.message != it.message + 1 || next.full_bytes == 0 ||
                next.may_follow + 1 != it.may_follow || next.target.buffer != it.target.buffer ||
                next.target.offset != it.target.end() || behind < recvs[i].node)
                return fail(name_of(behind) + " does not go on where the piece before it ends");
            piece_before_[behind] = recvs[i].node;
        }
        return true;
    }

    // --- direct messages: the memory is ready before anybody may write into it
    // ------------------------------------------------------------------------

    bool check_direct() {
        for (std::size_t rank = 0; rank < schedules_.size(); ++rank)
            for (StepId id = 0; id < schedules_[rank].steps().size(); ++id) {
                const Step& it = step(rank, id);
                if (!is_message(it.kind)) continue;
                const auto [other, end] = group_.place(group_.other_end[group_.node(rank, id)]);
                if (it.direct != step(other, end).direct)
                    return fail(name(rank, id) + " is direct at one end only");
                if (it.direct && it.kind == StepKind::recv && !is_told(rank, id, other, end))
                    return fail(name(other, end) + " may write before its receiver is ready");
            }
        return true;
    }

    bool follows(std::size_t rank, StepId later, StepId earlier) const {
        const auto after = schedules_[rank].after(later);
        return std::find(after.begin(), after.end(), earlier) != after.end();
    }

    // The receive waits for a message to the sender that the send waits for, and for nothing that this
    // message does not wait for.
    bool is_told(std::size_t rank, StepId recv, std::size_t sender, StepId send) const {
        for (StepId ready : schedules_[rank].after(recv)) {
            const Step& it = step(rank, ready);
            if (it.kind != StepKind::send || it.peer != static_cast<int>(sender)) continue;
            if (!follows(sender, send, group_.place(group_.other_end[group_.node(rank, ready)]).second))
                continue;
            const auto after = schedules_[rank].after(recv);
            return std::all_of(after.begin(), after.end(), [&](StepId before) {
                return before == ready || follows(rank, ready, before);
            });
        }
        return false;
    }

    // --- races: conflicting steps of one rank are ordered
    // --------------------------------------------------------

    bool check_races() {
        for (std::size_t rank = 0; rank < schedules_.size(); ++rank) {
            Race race;
            if (find_race(schedules_[rank], race))
                return fail(name(rank, race.later) + " and step " + std::to_string(race.earlier) +
                            " both touch byte " + std::to_string(race.byte) + " of " +
                            buffer_name(race.buffer) + ", one of them writes, and neither follows the other");
        }
        return true;
    }

    // --- order: no cycle across ranks
    // ----------------------------------------------------------------------------

    // Both ends of a message are one event: the send's node. That is the strictest reading (no message leaves
    // before its receive is posted), and a schedule must not need a kinder one.
    Node event(Node node) const {
        const Node other = group_.other_end[node];
        if (other == no_node) return node;
        const auto [rank, id] = group_.place(node);
        return step(rank, id).kind == StepKind::send ? node : other;
    }

    bool order_steps() {
        std::vector<Node> event_of(group_.total);
        for (Node n = 0; n < group_.total; ++n) event_of[n] = event(n);

        // Followers of every step, one after another.
        std::vector<std::uint64_t> begin(std::size_t{group_.total} + 1, 0);
        for_each_dependency([&](Node on, Node) { ++begin[on + 1]; });
        for (std::size_t n = 0; n < group_.total; ++n) begin[n + 1] += begin[n];
        std::vector<Node> followers(begin[group_.total]);
        std::vector<std::uint64_t> fill(begin.begin(), begin.end() - 1);
        std::vector<std::uint32_t> waits_for(group_.total, 0);
        for_each_dependency([&](Node on, Node by) {
            followers[fill[on]++] = event_of[by];
            ++waits_for[event_of[by]];
        });

        std::vector<std::uint32_t> depth(group_.total,
                                         0);  // messages on the longest chain up to and including this
        group_.order.clear();
        for (Node n = 0; n < group_.total; ++n)
            if (event_of[n] == n && waits_for[n] == 0) group_.order.push_back(n);
        for (std::size_t done = 0; done < group_.order.size(); ++done) {
            const Node now = group_.order[done], other = group_.other_end[now];
            if (other != no_node) ++depth[now];
            verdict_.rounds = std::max<std::uint64_t>(verdict_.rounds, depth[now]);
            for (Node end : {now, other}) {
                if (end == no_node) continue;
                for (std::uint64_t i = begin[end]; i < begin[end + 1]; ++i) {
                    const Node next = followers[i];
                    depth[next] = std::max(depth[next], depth[now]);
                    if (--waits_for[next] == 0) group_.order.push_back(next);
                }
            }
        }
        for (Node n = 0; n < group_.total; ++n)
            if (event_of[n] == n && waits_for[n] != 0) return fail(describe_cycle(n, event_of, waits_for));
        return true;
    }

    template <class Visit>
    void for_each_dependency(Visit visit) const {
        for (std::size_t rank = 0; rank < schedules_.size(); ++rank)
            for (StepId id = 0; id < schedules_[rank].steps().size(); ++id)
                for (StepId on : schedules_[rank].after(id))
                    visit(group_.node(rank, on), group_.node(rank, id));
        for (Node n = 0; n < group_.total; ++n)
            if (piece_before_[n] != no_node) visit(piece_before_[n], n);
    }

    // From an event that never happens, back along events that never happen, until one comes round again.
    std::string describe_cycle(Node from, const std::vector<Node>& event_of,
                               const std::vector<std::uint32_t>& waits_for) const {
        std::vector<bool> seen(group_.total, false);
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
        for (Node end : {now, group_.other_end[now]}) {
            if (end == no_node) continue;
            const auto [rank, id] = group_.place(end);
            for (StepId on : schedules_[rank].after(id)) {
                const Node candidate = event_of[group_.node(rank, on)];
                if (waits_for[candidate] != 0) return candidate;
            }
            const Node piece = piece_before_[end];
            if (piece != no_node && waits_for[event_of[piece]] != 0) return event_of[piece];
        }
        return now;
    }

    std::span<const Schedule> schedules_;
    std::span<const Contract> contracts_;
    GroupSteps group_;
    std::vector<Node> piece_before_;  // of the receive of a piece: that of the one before it, or no_node
    Verdict verdict_;
};

}  // namespace

Verdict validate(std::span<const Schedule> schedules, std::span<const Contract> contracts) {
    return Validator(schedules, contracts).run();
}

}  // namespace thalweg
