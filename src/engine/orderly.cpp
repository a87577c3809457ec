#include "engine/orderly.h"

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace thalweg {
namespace {

// The steps of all ranks, those of one message merged into one node, and "must come earlier" as edges.
class Order {
  public:
    explicit Order(std::span<const Schedule> schedules) : schedules_(schedules) {
        std::size_t total = 0;
        for (const Schedule& schedule : schedules) {
            first_.push_back(total);
            total += schedule.steps().size();
        }
        node_.resize(total);
        for (std::size_t rank = 0; rank < schedules.size(); ++rank) {
            for (StepId id = 0; id < schedules[rank].steps().size(); ++id) name(static_cast<int>(rank), id);
        }
        later_.resize(names_.size());
        waits_for_.resize(names_.size());
        for (std::size_t rank = 0; rank < schedules.size(); ++rank) connect(rank);
    }

    // A node that no order can place, -1 when there is none.
    std::int64_t stuck() {
        std::vector<std::size_t> free;
        std::size_t placed = 0;
        for (std::size_t node = 0; node < waits_for_.size(); ++node) {
            if (waits_for_[node] == 0) free.push_back(node);
        }
        while (!free.empty()) {
            const std::size_t node = free.back();
            free.pop_back();
            ++placed;
            for (std::size_t next : later_[node]) {
                if (--waits_for_[next] == 0) free.push_back(next);
            }
        }
        if (placed == waits_for_.size()) return -1;
        for (std::size_t node = 0;; ++node) {
            if (waits_for_[node] != 0) return static_cast<std::int64_t>(node);
        }
    }

    std::string describe(std::size_t node) const {
        const auto [rank, id] = names_[node];
        const Step& step = schedules_[rank].steps()[id];
        std::string text = "step " + std::to_string(id) + " of rank " + std::to_string(rank);
        if (is_message(step.kind)) {
            text += step.kind == StepKind::send ? " (to rank " : " (from rank ";
            text += std::to_string(step.peer) + ", message " + std::to_string(step.message) + ")";
        }
        return text;
    }

  private:
    void name(int rank, StepId id) {
        const Step& step = schedules_[rank].steps()[id];
        std::size_t node = names_.size();
        if (is_message(step.kind)) {
            const auto [from, to] =
                step.kind == StepKind::send ? std::pair(rank, step.peer) : std::pair(step.peer, rank);
            const std::uint64_t pair = static_cast<std::uint64_t>(from) * schedules_.size() + to;
            node = messages_.try_emplace(pair * max_messages_per_pair + step.message, node).first->second;
        }
        if (node == names_.size()) names_.emplace_back(rank, id);
        node_[first_[rank] + id] = node;
    }

    void connect(std::size_t rank) {
        const Schedule& schedule = schedules_[rank];
        const std::size_t none = names_.size();
        std::size_t last_send = none, last_recv = none;
        for (StepId id = 0; id < schedule.steps().size(); ++id) {
            const std::size_t node = node_[first_[rank] + id];
            for (StepId before : schedule.after(id)) edge(node_[first_[rank] + before], node);
            const StepKind kind = schedule.steps()[id].kind;
            if (!is_message(kind)) continue;
            std::size_t& last = kind == StepKind::send ? last_send : last_recv;
            if (last != none) edge(last, node);
            last = node;
        }
    }

    void edge(std::size_t earlier, std::size_t later) {
        later_[earlier].push_back(later);
        ++waits_for_[later];
    }

    std::span<const Schedule> schedules_;
    std::vector<std::size_t> first_;  // of each rank, into node_
    std::vector<std::size_t> node_;   // of each step
    std::vector<std::pair<int, StepId>> names_;
    std::unordered_map<std::uint64_t, std::size_t> messages_;
    std::vector<std::vector<std::size_t>> later_;
    std::vector<std::uint32_t> waits_for_;
};

}  // namespace

bool orderly(std::span<const Schedule> schedules, std::string& why) {
    Order order(schedules);
    const std::int64_t stuck = order.stuck();
    if (stuck < 0) return true;
    why = order.describe(static_cast<std::size_t>(stuck)) +
          " has no place in any order of the group's messages";
    return false;
}

}  // namespace thalweg
