#include "schedule/passes.h"

#include <algorithm>
#include <queue>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

namespace thalweg {
namespace {

constexpr std::uint64_t never = ~std::uint64_t{0};
constexpr std::uint32_t no_join = ~std::uint32_t{0};

std::uint64_t bytes_of(const Step& step) {
    return step.kind == StepKind::recv ? step.target.bytes : step.source.bytes;
}

// A step without bytes is one piece.
std::uint64_t pieces_of(std::uint64_t bytes, std::uint64_t chunk) {
    return bytes == 0 ? 1 : bytes / chunk + (bytes % chunk != 0);
}

Slice piece_of(const Slice& slice, std::uint64_t chunk, std::uint64_t index) {
    if (slice.bytes == 0) return slice;
    const std::uint64_t from = index * chunk;
    return {slice.buffer, slice.offset + from, std::min(chunk, slice.bytes - from)};
}

class Cutter {
  public:
    Cutter(const Schedule& schedule, std::uint64_t chunk_bytes)
        : schedule_(schedule), chunk_bytes_(chunk_bytes) {}

    Schedule run() {
        number_pieces();
        for (StepId id = 0; id < steps().size(); ++id)
            for (StepId on : schedule_.after(id)) link(on, id);
        return assemble();
    }

  private:
    // A piece of a step, or (joins_for a step) the point at which all its pieces are complete.
    struct Piece {
        StepId step;
        std::uint32_t index;
        bool join;
    };

    struct Edge {
        std::uint32_t from, to;
        bool operator<(const Edge& other) const { return to != other.to ? to < other.to : from < other.from; }
        bool operator==(const Edge&) const = default;
    };

    std::span<const Step> steps() const { return schedule_.steps(); }
    std::uint32_t count(StepId id) const { return first_[id + 1] - first_[id]; }

    // Chooses each step's chunk, and the number of the first piece of each message.
    void number_pieces() {
        chunk_.assign(steps().size(), chunk_bytes_);
        message_.assign(steps().size(), 0);
        std::vector<StepId> messages;
        for (StepId id = 0; id < steps().size(); ++id)
            if (is_message(steps()[id].kind)) messages.push_back(id);
        auto key = [&](StepId id) {
            return std::tuple(steps()[id].peer, steps()[id].kind, steps()[id].message);
        };
        std::sort(messages.begin(), messages.end(), [&](StepId a, StepId b) { return key(a) < key(b); });
        for (std::size_t begin = 0, end = 0; begin < messages.size(); begin = end) {
            const Step& first = steps()[messages[begin]];
            while (end < messages.size() && steps()[messages[end]].peer == first.peer &&
                   steps()[messages[end]].kind == first.kind)
                ++end;
            number_pair({messages.data() + begin, messages.data() + end});
        }

        first_.assign(1, 0);
        for (StepId id = 0; id < steps().size(); ++id) {
            const auto pieces = static_cast<std::uint32_t>(pieces_of(bytes_of(steps()[id]), chunk_[id]));
            for (std::uint32_t index = 0; index < pieces; ++index) pieces_.push_back({id, index, false});
            first_.push_back(static_cast<std::uint32_t>(pieces_.size()));
        }
        join_.assign(steps().size(), no_join);
    }

    // The messages from one rank to another, in the order of their numbers: the other end sees the same
    // sizes.
    void number_pair(std::span<const StepId> messages) {
        std::uint64_t chunk = chunk_bytes_;
        for (;;) {
            std::uint64_t total = 0, longest = 0;
            for (StepId id : messages) {
                total += pieces_of(bytes_of(steps()[id]), chunk);
                longest = std::max(longest, bytes_of(steps()[id]));
            }
            if (total <= max_messages_per_pair || chunk >= longest) break;
            chunk *= 2;
        }
        std::uint32_t number = 0;
        for (StepId id : messages) {
            chunk_[id] = chunk;
            message_[id] = number;
            number += static_cast<std::uint32_t>(pieces_of(bytes_of(steps()[id]), chunk));
        }
    }

    // Order between two steps as order between their pieces.
    void link(StepId before, StepId after) {
        const Step& a = steps()[before];
        const Step& b = steps()[after];
        const bool a_reads = a.kind != StepKind::recv, a_writes = a.kind != StepKind::send;
        const bool b_reads = b.kind != StepKind::recv, b_writes = b.kind != StepKind::send;
        bool linked = false;
        if (a_writes && b_reads) linked |= link_overlap(before, a.target, after, b.source);
        if (a_writes && b_writes) linked |= link_overlap(before, a.target, after, b.target);
        if (a_reads && b_writes) linked |= link_overlap(before, a.source, after, b.target);
        if (!linked) link_all(before, after);
    }

    bool link_overlap(StepId before, const Slice& a, StepId after, const Slice& b) {
        if (!overlap(a, b)) return false;
        const std::uint64_t end = std::min(a.end(), b.end());
        for (std::uint64_t at = std::max(a.offset, b.offset); at < end;) {
            const std::uint64_t i = (at - a.offset) / chunk_[before], j = (at - b.offset) / chunk_[after];
            edges_.push_back({first_[before] + static_cast<std::uint32_t>(i),
                              first_[after] + static_cast<std::uint32_t>(j)});
            at = std::min(piece_of(a, chunk_[before], i).end(), piece_of(b, chunk_[after], j).end());
        }
        return true;
    }

    // Every piece of one before every piece of the other: through a join where that takes fewer edges.
    void link_all(StepId before, StepId after) {
        if (count(before) == 1 || count(after) == 1) {
            for (std::uint32_t i = first_[before]; i < first_[before + 1]; ++i)
                for (std::uint32_t j = first_[after]; j < first_[after + 1]; ++j) edges_.push_back({i, j});
            return;
        }
        if (join_[before] == no_join) {
            join_[before] = static_cast<std::uint32_t>(pieces_.size());
            pieces_.push_back({before, count(before), true});
            for (std::uint32_t i = first_[before]; i < first_[before + 1]; ++i)
                edges_.push_back({i, join_[before]});
        }
        for (std::uint32_t j = first_[after]; j < first_[after + 1]; ++j)
            edges_.push_back({join_[before], j});
    }

    // Lays the pieces out chunk by chunk, each behind those that it depends on.
    Schedule assemble() {
        std::sort(edges_.begin(), edges_.end());
        edges_.erase(std::unique(edges_.begin(), edges_.end()), edges_.end());
        const auto total = static_cast<std::uint32_t>(pieces_.size());
        std::vector<std::uint32_t> waits_for(total, 0), begin(std::size_t{total} + 1, 0);
        for (const Edge& edge : edges_) ++waits_for[edge.to], ++begin[edge.from + 1];
        for (std::uint32_t i = 0; i < total; ++i) begin[i + 1] += begin[i];
        std::vector<std::uint32_t> followers(edges_.size()), fill(begin.begin(), begin.end() - 1);
        for (const Edge& edge : edges_) followers[fill[edge.from]++] = edge.to;

        auto later = [&](std::uint32_t a, std::uint32_t b) {
            const Piece &x = pieces_[a], &y = pieces_[b];
            return x.index != y.index ? x.index > y.index : x.step > y.step;
        };
        std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, decltype(later)> ready(later);
        for (std::uint32_t i = 0; i < total; ++i)
            if (waits_for[i] == 0) ready.push(i);
        std::vector<std::uint32_t> order;
        std::vector<StepId> id_of(total);
        order.reserve(total);
        while (!ready.empty()) {
            const std::uint32_t now = ready.top();
            ready.pop();
            id_of[now] = static_cast<StepId>(order.size());
            order.push_back(now);
            for (std::uint32_t i = begin[now]; i < begin[now + 1]; ++i)
                if (--waits_for[followers[i]] == 0) ready.push(followers[i]);
        }
        return lay_out(order, id_of);
    }

    Schedule lay_out(const std::vector<std::uint32_t>& order, const std::vector<StepId>& id_of) const {
        std::vector<std::uint32_t> first_edge(pieces_.size() + 1, 0);  // edges_ is sorted by `to`
        for (const Edge& edge : edges_) ++first_edge[edge.to + 1];
        for (std::size_t i = 0; i < pieces_.size(); ++i) first_edge[i + 1] += first_edge[i];

        std::vector<Step> steps;
        std::vector<StepId> after;
        std::vector<std::uint32_t> after_begin{0};
        steps.reserve(pieces_.size());
        after.reserve(edges_.size());
        after_begin.reserve(pieces_.size() + 1);
        for (std::uint32_t now : order) {
            steps.push_back(cut(pieces_[now]));
            for (std::uint32_t i = first_edge[now]; i < first_edge[now + 1]; ++i)
                after.push_back(id_of[edges_[i].from]);
            std::sort(after.begin() + after_begin.back(), after.end());
            after_begin.push_back(static_cast<std::uint32_t>(after.size()));
        }
        return Schedule(schedule_.rank(), schedule_.size(), std::move(steps), std::move(after),
                        std::move(after_begin), schedule_.scratch_bytes());
    }

    Step cut(const Piece& piece) const {
        if (piece.join) return Step{};  // a copy of no bytes
        Step step = steps()[piece.step];
        step.source = piece_of(step.source, chunk_[piece.step], piece.index);
        step.target = piece_of(step.target, chunk_[piece.step], piece.index);
        if (is_message(step.kind)) step.message = message_[piece.step] + piece.index;
        return step;
    }

    const Schedule& schedule_;
    std::uint64_t chunk_bytes_;
    std::vector<std::uint64_t> chunk_;    // per step
    std::vector<std::uint32_t> message_;  // per step: the number of its first piece
    std::vector<std::uint32_t> first_;    // per step: its first piece; one more at the end
    std::vector<std::uint32_t> join_;     // per step
    std::vector<Piece> pieces_;
    std::vector<Edge> edges_;
};

}  // namespace

Schedule chunked(const Schedule& schedule, std::uint64_t chunk_bytes, std::uint64_t largest_message_bytes) {
    if (chunk_bytes == 0) chunk_bytes = never;
    chunk_bytes = std::max(chunk_bytes, pieces_of(largest_message_bytes, max_messages_per_pair));
    return Cutter(schedule, chunk_bytes).run();
}

}  // namespace thalweg
