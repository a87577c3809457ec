#include "schedule/values.h"

#include <algorithm>
#include <array>
#include <memory>

#include "schedule/expressions.h"
#include "schedule/interval_map.h"

namespace thalweg {
namespace {

// Whose bytes a run of bytes holds: those of `origin` at own offset + shift. Origin 0: undefined. Runs that
// lie side by side in the origin as they do here are equal, so that a received message of many chunks is one
// run.
struct Value {
    Origin origin = 0;
    std::int64_t shift = 0;

    bool operator==(const Value&) const = default;
};

class ValueFlow {
  public:
    ValueFlow(const GroupSteps& group, std::span<const Contract> contracts, Verdict& verdict)
        : group_(group),
          contracts_(contracts),
          verdict_(verdict),
          values_(std::make_unique<Values[]>(group.schedules.size())),
          expressions_(group.schedules.size()) {}

    std::string run() {
        define();
        for (Node now : group_.order)
            if (!step(now)) return why_;
        for (std::size_t rank = 0; rank < group_.schedules.size(); ++rank)
            if (!check_end(rank)) return why_;
        return {};
    }

  private:
    using Values = std::array<IntervalMap<Value>, 3>;

    struct Piece {
        std::uint64_t begin, end;
        Value value;
    };

    bool fail(std::string why) {
        why_ = std::move(why);
        return false;
    }

    IntervalMap<Value>& values(std::size_t rank, const Slice& slice) {
        return values_[rank][static_cast<std::size_t>(slice.buffer)];
    }

    void define() {
        for (std::size_t rank = 0; rank < group_.schedules.size(); ++rank)
            for (const Slice& slice : contracts_[rank].defined)
                values(rank, slice)
                    .assign(slice.offset, slice.end(), {Expressions::start(rank, slice.buffer), 0}, true);
    }

    bool step(Node now) {
        const auto [rank, id] = group_.place(now);
        const Step& it = group_.step(rank, id);
        if (!read(rank, id, it.source, pieces_)) return false;
        if (it.kind == StepKind::send) {
            const auto [to, recv] = group_.place(group_.other_end[now]);
            write(to, group_.step(to, recv).target, it.source, true);
        } else if (it.kind == StepKind::copy) {
            write(rank, it.target, it.source, false);
        } else {
            return read(rank, id, it.target, target_pieces_) && reduce(rank, id, it);
        }
        return true;
    }

    // Collects what `slice` holds into `pieces`.
    bool read(std::size_t rank, StepId id, const Slice& slice, std::vector<Piece>& pieces) {
        pieces.clear();
        std::uint64_t undefined = slice.end();
        values(rank, slice)
            .each(slice.offset, slice.end(), [&](std::uint64_t begin, std::uint64_t end, const Value& value) {
                if (value.origin == 0) undefined = std::min(undefined, begin);
                pieces.push_back({begin, end, value});
            });
        if (undefined == slice.end()) return true;
        return fail(group_.name(rank, id) + " reads byte " + std::to_string(undefined) + " of " +
                    buffer_name(slice.buffer) + ", which is undefined");
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

    // Combines pieces_, read from the source, with target_pieces_.
    bool reduce(std::size_t rank, StepId id, const Step& it) {
        const std::uint64_t element = std::max<std::uint64_t>(contracts_[rank].element_bytes, 1);
        if (it.source.bytes % element != 0) return fail(group_.name(rank, id) + " ends within an element");
        const auto move = static_cast<std::int64_t>(it.target.offset - it.source.offset);
        IntervalMap<Value>& map = values(rank, it.target);
        std::size_t a = 0, b = 0;
        for (std::uint64_t at = it.target.offset; at < it.target.end();) {
            const Piece &from = pieces_[a], &to = target_pieces_[b];
            const std::uint64_t from_end = from.end + static_cast<std::uint64_t>(move);
            const std::uint64_t end = std::min(from_end, to.end);
            const Value source{from.value.origin, from.value.shift - move};
            if (static_cast<std::uint64_t>(static_cast<std::int64_t>(at) + source.shift) % element != 0)
                return fail(group_.name(rank, id) + " begins within an element");
            const bool source_left = it.source_side == Side::left;
            const Value &left = source_left ? source : to.value, &right = source_left ? to.value : source;
            const Origin made = expressions_.reduce(left.origin, right.origin, right.shift - left.shift);
            map.assign(at, end, {made, left.shift}, true);
            a += from_end == end;
            b += to.end == end;
            at = end;
        }
        return true;
    }

    bool check_end(std::size_t rank) {
        const std::string who = "rank " + std::to_string(rank) + ": byte ";
        for (const Slice& slice : contracts_[rank].required)
            values(rank, slice)
                .each(slice.offset, slice.end(), [&](std::uint64_t begin, std::uint64_t, const Value& value) {
                    if (value.origin == 0 && why_.empty())
                        fail(who + std::to_string(begin) + " of " + buffer_name(slice.buffer) +
                             " is undefined at the end");
                });
        // Undefined as they are, nobody can have read them and put them back.
        for (const Slice& slice : contracts_[rank].untouched)
            values(rank, slice)
                .each(slice.offset, slice.end(), [&](std::uint64_t begin, std::uint64_t, const Value& value) {
                    if (value.origin != 0 && why_.empty())
                        fail(who + std::to_string(begin) + " of " + buffer_name(slice.buffer) +
                             " is written, which is no part of the result");
                });
        for (const Expectation& it : contracts_[rank].expected) {
            const Value right{Expressions::start(static_cast<std::size_t>(it.rank), it.buffer),
                              static_cast<std::int64_t>(it.offset - it.slice.offset)};
            values(rank, it.slice)
                .each(it.slice.offset, it.slice.end(),
                      [&](std::uint64_t begin, std::uint64_t, const Value& value) {
                          if (value != right && why_.empty())
                              fail(who + std::to_string(begin) + " of " + buffer_name(it.slice.buffer) +
                                   " does not end as byte " +
                                   std::to_string(begin - it.slice.offset + it.offset) + " of rank " +
                                   std::to_string(it.rank) + "'s " + buffer_name(it.buffer));
                      });
        }
        for (std::size_t i = 0; i < contracts_[rank].combined.size(); ++i) check_combined(rank, i);
        return why_.empty();
    }

    // Every rank must end with the very expression that rank 0 ends with: equal bits, whatever the operation.
    void check_combined(std::size_t rank, std::size_t index) {
        const Combination &it = contracts_[rank].combined[index], &first = contracts_[0].combined[index];
        const auto right = static_cast<std::int64_t>(it.offset - it.slice.offset);
        const std::string where = " of " + std::string(buffer_name(it.slice.buffer));
        values(rank, it.slice)
            .each(it.slice.offset, it.slice.end(), [&](auto begin, auto end, const Value& value) {
                if (!why_.empty()) return;
                const std::string who =
                    "rank " + std::to_string(rank) + ": byte " + std::to_string(begin) + where;
                const std::string fault = value.origin == 0 ? "is undefined at the end"
                                          : value.shift != right
                                              ? "combines bytes of other places"
                                              : expressions_.fault(value.origin, it.buffer, it.in_rank_order);
                if (!fault.empty()) return void(fail(who + " " + fault));
                const std::uint64_t move = first.slice.offset - it.slice.offset;
                values(0, first.slice).each(begin + move, end + move, [&](auto, auto, const Value& theirs) {
                    if (theirs.origin != value.origin && why_.empty())
                        fail(who + " is bracketed in another way than rank 0's");
                });
            });
    }

    const GroupSteps& group_;
    std::span<const Contract> contracts_;
    Verdict& verdict_;
    std::unique_ptr<Values[]> values_;
    Expressions expressions_;
    std::vector<Piece> pieces_, target_pieces_;
    std::string why_;
};

}  // namespace

std::string follow_values(const GroupSteps& group, std::span<const Contract> contracts, Verdict& verdict) {
    return ValueFlow(group, contracts, verdict).run();
}

std::string find_early_end(const GroupSteps& group, std::span<const Contract> contracts) {
    const std::size_t ranks = group.schedules.size(), words = (ranks + 63) / 64;
    const auto synchronises = [](const Contract& contract) { return contract.synchronises; };
    if (std::none_of(contracts.begin(), contracts.end(), synchronises)) return {};
    // Per node, the ranks that have begun when it is complete.
    std::vector<std::uint64_t> begun(words * group.total);
    const auto set = [&](Node node) { return begun.data() + words * node; };
    const auto join = [&](std::uint64_t* to, const std::uint64_t* from) {
        for (std::size_t i = 0; i < words; ++i) to[i] |= from[i];
    };
    const auto follow = [&](Node node) {
        const auto [rank, id] = group.place(node);
        set(node)[rank / 64] |= std::uint64_t{1} << (rank % 64);
        for (StepId on : group.schedules[rank].after(id)) join(set(node), set(group.node(rank, on)));
    };
    for (Node now : group.order) {
        follow(now);
        const Node recv = group.other_end[now];
        if (recv == no_node) continue;
        follow(recv);
        join(set(recv), set(now));
    }
    for (std::size_t rank = 0; rank < ranks; ++rank) {
        if (!contracts[rank].synchronises) continue;
        std::vector<std::uint64_t> all(words);
        all[rank / 64] |= std::uint64_t{1} << (rank % 64);
        for (StepId id = 0; id < group.schedules[rank].steps().size(); ++id)
            join(all.data(), set(group.node(rank, id)));
        for (std::size_t other = 0; other < ranks; ++other)
            if ((all[other / 64] >> (other % 64) & 1) == 0)
                return "rank " + std::to_string(rank) + " may end before rank " + std::to_string(other) +
                       " has begun";
    }
    return {};
}

}  // namespace thalweg
