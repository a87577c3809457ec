#include "schedule/receipts.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

namespace thalweg {
namespace {

constexpr std::uint32_t none = ~std::uint32_t{0};

std::uint64_t bytes_of(const Step& step) {
    return step.kind == StepKind::recv ? step.target.bytes : step.source.bytes;
}

// The messages from one rank to another in the order of their numbers: fills, for those with a receipt, the
// receipt's number.
void number_receipts(const Schedule& schedule, std::span<const StepId> messages, const Receipts& receipts,
                     std::vector<std::uint32_t>& receipt_of) {
    std::uint64_t all = 0, since = 0;
    std::uint32_t number = 0;
    for (StepId id : messages) {
        const Step& step = schedule.steps()[id];
        all += bytes_of(step);
        number = std::max(number, step.message + 1);
        if (step.direct) return;
    }
    if (all < receipts.least_bytes) return;
    std::vector<StepId> chosen;
    for (StepId id : messages) {
        since += bytes_of(schedule.steps()[id]);
        if (since < receipts.every_bytes && id != messages.back()) continue;
        since = 0;
        chosen.push_back(id);
    }
    if (number + chosen.size() > max_messages_per_pair) return;
    for (StepId id : chosen) receipt_of[id] = number++;
}

// By step: the number of the receipt behind it, or none.
std::vector<std::uint32_t> choose(const Schedule& schedule, const Receipts& receipts) {
    const auto steps = schedule.steps();
    std::vector<std::uint32_t> receipt_of(steps.size(), none);
    std::vector<StepId> messages;
    for (StepId id = 0; id < steps.size(); ++id)
        if (is_message(steps[id].kind)) messages.push_back(id);
    const auto pair = [&](StepId id) { return std::pair(steps[id].peer, steps[id].kind); };
    std::sort(messages.begin(), messages.end(), [&](StepId a, StepId b) {
        return std::pair(pair(a), steps[a].message) < std::pair(pair(b), steps[b].message);
    });
    for (std::size_t begin = 0, end = 0; begin < messages.size(); begin = end) {
        while (end < messages.size() && pair(messages[end]) == pair(messages[begin])) ++end;
        number_receipts(schedule, {messages.data() + begin, messages.data() + end}, receipts, receipt_of);
    }
    return receipt_of;
}

}  // namespace

Schedule with_receipts(const Schedule& schedule, const Receipts& receipts) {
    const std::vector<std::uint32_t> receipt_of = choose(schedule, receipts);
    const auto old = schedule.steps();
    std::vector<Step> steps;
    std::vector<StepId> after, id_of(old.size());
    std::vector<std::uint32_t> after_begin{0};
    for (StepId id = 0; id < old.size(); ++id) {
        id_of[id] = static_cast<StepId>(steps.size());
        steps.push_back(old[id]);
        for (StepId before : schedule.after(id)) after.push_back(id_of[before]);
        after_begin.push_back(static_cast<std::uint32_t>(after.size()));
        if (receipt_of[id] == none) continue;
        Step receipt;
        receipt.kind = old[id].kind;
        receipt.peer = old[id].peer;
        receipt.message = receipt_of[id];
        steps.push_back(receipt);
        after.push_back(id_of[id]);
        after_begin.push_back(static_cast<std::uint32_t>(after.size()));
    }
    return Schedule(schedule.rank(), schedule.size(), std::move(steps), std::move(after),
                    std::move(after_begin), schedule.scratch_bytes());
}

}  // namespace thalweg
