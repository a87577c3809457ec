#include "transport/shm/choice.h"

#include <algorithm>
#include <limits>

namespace thalweg::shm {
namespace {

// Until a sleeping sender has heard what it shall copy.
constexpr double answer_s = 20e-6;
constexpr double weight = 0.125;        // of a new measurement
constexpr double largest_surprise = 4;  // a copy that lost its core in the middle says little about its rate
constexpr double smallest_correction = 0.25, largest_correction = 16;
constexpr double forgetting = 0.02;

struct Candidate {
    std::uint64_t share = 0;
    double copies_s = 0;  // until the bytes are there, were there no wire
};

Candidate candidate(const Protocol& protocol, std::uint64_t bytes, const Load& receiver, const Load& sender,
                    double rate) {
    Candidate found;
    found.share = protocol.receivers_share(bytes, receiver, sender);
    const auto pulled = static_cast<double>(receiver.copy_bytes + found.share);
    const auto pushed = static_cast<double>(sender.copy_bytes + bytes - found.share);
    if (found.share != 0) found.copies_s = pulled / rate;
    if (found.share != bytes) found.copies_s = std::max(found.copies_s, answer_s + pushed / rate);
    return found;
}

}  // namespace

const char* describe(Because because) {
    switch (because) {
        case Because::only_one:
            return "nothing else can be used";
        case Because::asked_for:
            return "it was asked for";
        case Because::copies_bound:
            return "copies take longest";
        case Because::wire_bound:
            return "the wire takes longest";
        case Because::measured_faster:
            return "measured to be faster";
    }
    return "unknown";
}

void CopyRates::measured(const Protocol& protocol, std::size_t bytes, double seconds) {
    if (seconds <= 0) return;
    double& rate = rates_[number_of(protocol)];
    const double seen = static_cast<double>(bytes) / seconds;
    rate += weight * (std::clamp(seen, rate / largest_surprise, rate * largest_surprise) - rate);
}

int Chooser::class_of(std::uint64_t bytes) {
    int found = 0;
    for (std::uint64_t limit = 64 * 1024; found < classes - 1 && bytes >= limit; limit *= 4) ++found;
    return found;
}

Decision Chooser::choose(std::uint64_t bytes, const Reach& reach, const Load& receiver, const Load& sender,
                         const CopyRates& rates, const Protocol* forced) {
    Class& sizes = classes_[class_of(bytes)];
    Account& account = sizes.account;
    ++account.messages;
    account.bytes += bytes;
    if (forced != nullptr && forced->usable(reach)) {
        account.protocol = forced;
        account.because = Because::asked_for;
        return {forced, forced->receivers_share(bytes, receiver, sender), 0};
    }
    const double wire_s = 1e-9 * static_cast<double>(std::max(receiver.wire_ns, sender.wire_ns));
    std::array<Candidate, protocols.size()> candidates;
    std::array<double, protocols.size()> costs;
    costs.fill(std::numeric_limits<double>::infinity());
    std::size_t best = protocols.size(), modelled = protocols.size();
    int usable = 0;
    double longest_alone_s = 0;
    for (std::size_t i = 0; i < protocols.size(); ++i) {
        const Protocol& protocol = *protocols[i];
        if (!protocol.usable(reach)) continue;
        candidates[i] = candidate(protocol, bytes, receiver, sender, rates.bytes_per_s(protocol));
        const bool shared = candidates[i].share != 0 && candidates[i].share != bytes;
        // Copying together is worth it only for what takes a while; and not when both ends have something
        // better to do, because it stirs two processes for what is hidden anyway.
        if (&protocol == &coop && ((!shared && sizes.current != &coop) || bytes < least_shared)) continue;
        ++usable;
        costs[i] = candidates[i].copies_s * sizes.corrections[i];
        if (&protocol != &coop) longest_alone_s = std::max(longest_alone_s, candidates[i].copies_s);
        if (best == protocols.size() || costs[i] < costs[best]) best = i;
        if (modelled == protocols.size() || candidates[i].copies_s < candidates[modelled].copies_s)
            modelled = i;
    }
    const bool wire_bound = wire_s >= longest_alone_s && usable > 1;
    if (wire_bound && protocols[best] == &coop) {
        costs[best] = std::numeric_limits<double>::infinity();
        best = static_cast<std::size_t>(std::min_element(costs.begin(), costs.end()) - costs.begin());
    }
    std::size_t taken = best;
    if (sizes.current != nullptr) {
        const std::size_t current = number_of(*sizes.current);
        const bool still_usable = costs[current] != std::numeric_limits<double>::infinity();
        const bool due = sizes.until_next == 0;
        if (still_usable && (!due || costs[best] >= (1 - hysteresis) * costs[current])) taken = current;
    }
    if (sizes.until_next == 0) {
        sizes.until_next = settle;
        for (std::size_t i = 0; i < protocols.size(); ++i)
            if (i != taken) sizes.corrections[i] += forgetting * (1 - sizes.corrections[i]);
    }
    --sizes.until_next;
    if (sizes.current != protocols[taken]) {
        account.switches += sizes.current != nullptr;
        sizes.current = protocols[taken];
        sizes.until_next = settle - 1;
    }
    account.protocol = sizes.current;
    account.because = usable == 1         ? Because::only_one
                      : wire_bound        ? Because::wire_bound
                      : taken != modelled ? Because::measured_faster
                                          : Because::copies_bound;
    return {protocols[taken], candidates[taken].share, candidates[taken].copies_s};
}

void Chooser::measured(std::uint64_t bytes, const Protocol& protocol, double expected_s, double seconds) {
    if (expected_s <= 0) return;
    double& correction = classes_[class_of(bytes)].corrections[number_of(protocol)];
    const double seen = std::clamp(seconds / expected_s, smallest_correction, largest_correction);
    correction += weight * (seen - correction);
}

}  // namespace thalweg::shm
