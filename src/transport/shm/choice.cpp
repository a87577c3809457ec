#include "transport/shm/choice.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace thalweg::shm {
namespace {

// Until a sleeping process has heard: a sender what it shall copy, the writer of a full ring that there is
// room, its reader that there is more. What is longer than a ring makes both sleep, ring by ring.
constexpr double wake_up_s = 20e-6;
constexpr double poll_s = 0.5e-6;  // the same where they poll
// Of that, what a core does for it: the time of exchanges through rings less that of their copies.
constexpr double wake_up_work_s = 7.5e-6;
constexpr double weight = 0.125;         // of a new measurement, where there are enough before it
constexpr double weight_of_trial = 0.5;  // which are few and far between
constexpr double largest_surprise = 4;   // a copy that was disturbed says little about its rate
constexpr double largest_delay = 2;      // nor does a message
constexpr double smallest_correction = 0.25, largest_correction = 16;
constexpr double least_scarcity = 0.1;  // less is the clock's and the system's own doing
constexpr double full_scarcity = 0.4;   // about where there is always somebody who waits for a core
// Whoever loses its core in the midst of a chunk loses it for dozens of chunks: only many of them tell how
// often.
constexpr double weight_of_chunk = 1.0 / 128;  // where all are measured
constexpr std::uint32_t enough_sleeps = 3;     // messages that tell how often their process sleeps
constexpr double infinity = std::numeric_limits<double>::infinity();
// Only says which is preferred before anything has been measured.
constexpr std::array<double, protocols.size()> first_rates{4e9, 3e9, 3e9, 3e9, 1.5e9};

struct Candidate {
    std::uint64_t share = 0;
    double copies_s = 0;  // until the bytes are there, were there no wire
    double work_s = 0;    // of cores, whoever copies
    double sleeps = 0;    // of both processes, for want of each other
};

Candidate candidate(const Protocol& protocol, std::uint64_t bytes, const Load& receiver, const Load& sender,
                    double rate, const CopyRates& rates) {
    const double hears_s = rates.spins() ? poll_s : wake_up_s;
    Candidate found;
    found.share = protocol.receivers_share(bytes, receiver, sender);
    const auto pulled = static_cast<double>(receiver.copy_bytes + found.share);
    const auto pushed = static_cast<double>(sender.copy_bytes + bytes - found.share);
    if (found.share != 0) found.copies_s = pulled / rate;
    if (found.share != bytes) {
        found.copies_s = std::max(found.copies_s, hears_s + pushed / rate);
        found.sleeps = 1;
    }
    found.work_s = static_cast<double>(bytes) / rate;
    if (&protocol == &eager) {
        const double rings = static_cast<double>(bytes / rates.ring_bytes()) * 2;
        found.sleeps += rings;
        found.copies_s += rings * hears_s;
    }
    return found;
}

double averaged(double before, double seen, double share) { return before + share * (seen - before); }

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

int size_class_of(std::uint64_t bytes) {
    int found = 0;
    for (std::uint64_t limit = 64 * 1024; found < size_classes - 1 && bytes >= limit; limit *= 4) ++found;
    return found;
}

template <typename RateOf>
double CopyRates::nearest(int size_class, RateOf rate_of) {
    for (int distance = 0; distance < size_classes; ++distance)
        for (const int near : {size_class - distance, size_class + distance}) {
            if (near < 0 || near >= size_classes) continue;
            const double rate = rate_of(static_cast<std::size_t>(near)).bytes_per_s;
            if (rate > 0) return rate;
        }
    return 0;
}

double CopyRates::bytes_per_s(const Protocol& protocol, int size_class) const {
    const std::uint32_t number = number_of(protocol);
    const double rate = nearest(size_class, [&](std::size_t near) { return rates_[near][number]; });
    if (&protocol != &eager) return rate == 0 ? first_rates[number] : rate;
    // Who only sends, or only receives, knows one of the two copies, and takes the other to be as quick.
    const double out = nearest(size_class, [&](std::size_t near) { return out_of_ring_[near]; });
    if (rate == 0 && out == 0) return first_rates[number];
    return out == 0 ? rate / 2 : rate == 0 ? out / 2 : rate * out / (rate + out);
}

double CopyRates::shortage() const { return crowded_ ? 1 : std::min(1.0, scarcity_ / full_scarcity); }

// Where there are more processes than cores nothing goes by it.
bool CopyRates::all_tell(const Protocol& protocol) const {
    return !crowded_ && scarcity() > 0 && &protocol != &eager;
}

bool CopyRates::wants(const Protocol& protocol, int size_class) {
    constexpr std::uint32_t first_few = 16, one_in = 8;
    return rates_[static_cast<std::size_t>(size_class)][number_of(protocol)].samples < first_few ||
           all_tell(protocol) || ++asked_ % one_in == 0;
}

void CopyRates::Rate::measured(double seen) {
    ++samples;
    if (bytes_per_s == 0)
        bytes_per_s = seen;
    else
        bytes_per_s = averaged(
            bytes_per_s, std::clamp(seen, bytes_per_s / largest_surprise, bytes_per_s * largest_surprise),
            weight);
}

void CopyRates::measured(const Protocol& protocol, int size_class, std::size_t bytes, double seconds,
                         double core_seconds) {
    if (core_seconds <= 0 || seconds <= 0) return;
    rates_[static_cast<std::size_t>(size_class)][number_of(protocol)].measured(static_cast<double>(bytes) /
                                                                               core_seconds);
    const double share = std::max((all_tell(protocol) ? 1 : 4) * weight_of_chunk, 1.0 / ++chunks_);
    seconds_ = averaged(seconds_, seconds, share);
    core_seconds_ = averaged(core_seconds_, std::min(core_seconds, seconds), share);
    const double taken_away = 1 - core_seconds_ / seconds_;
    scarcity_ = taken_away < least_scarcity ? 0 : taken_away;
}

void CopyRates::measured_out_of_ring(int size_class, std::size_t bytes, double seconds) {
    if (seconds > 0)
        out_of_ring_[static_cast<std::size_t>(size_class)].measured(static_cast<double>(bytes) / seconds);
}

// By the number of the message alone: where two processes exchange alike, both try the same at the same time,
// which is what it would be like if both took it.
std::size_t Chooser::trial(Class& sizes, const std::array<double, protocols.size()>& costs,
                           std::size_t taken) const {
    constexpr std::size_t none = protocols.size();
    if (!tries_ || sizes.chosen <= before_trials) return none;
    std::array<std::size_t, protocols.size()> usable{};
    std::size_t count = 0;
    for (std::size_t i = 0; i < protocols.size(); ++i)
        if (costs[i] != infinity) usable[count++] = i;
    if (count < 2) return none;
    std::size_t tried = none;
    for (std::size_t i = 0; i < count && tried == none; ++i)
        if (sizes.tried[usable[i]] < of_each) tried = usable[i];
    const std::uint64_t each = sizes.chosen <= often_until ? often : seldom;
    if (tried != none) {
        // Two in a row go through the ring by themselves.
        sizes.tried[tried] += protocols[tried] == &eager && tried != taken ? of_each : 1;
    } else if (sizes.chosen % each == 0) {
        tried = usable[sizes.chosen / each % count];
    }
    return tried == taken ? none : tried;
}

void Chooser::note(Account& account, const Protocol& protocol, Because because) {
    account.protocol = &protocol;
    account.because = because;
    ++account.messages_because[static_cast<std::size_t>(because)];
}

Decision Chooser::choose(std::uint64_t bytes, const Reach& reach, const Load& receiver, const Load& sender,
                         const CopyRates& rates, const Protocol* forced) {
    Class& sizes = classes_[class_of(bytes)];
    Account& account = sizes.account;
    ++account.messages;
    account.bytes += bytes;
    if (forced != nullptr && forced->usable(reach)) {
        note(account, *forced, Because::asked_for);
        return {forced, forced->receivers_share(bytes, receiver, sender), 0};
    }
    const double wire_s = 1e-9 * static_cast<double>(std::max(receiver.wire_ns, sender.wire_ns));
    std::array<Candidate, protocols.size()> candidates;
    std::array<double, protocols.size()> costs;
    costs.fill(infinity);
    const int size_class = class_of(bytes);
    const double scarcity = rates.shortage();
    std::size_t best = protocols.size(), modelled = protocols.size();
    int usable = 0;
    double longest_alone_s = 0;
    for (std::size_t i = 0; i < protocols.size(); ++i) {
        const Protocol& protocol = *protocols[i];
        if (!protocol.usable(reach)) continue;
        candidates[i] =
            candidate(protocol, bytes, receiver, sender, rates.bytes_per_s(protocol, size_class), rates);
        const bool shared = candidates[i].share != 0 && candidates[i].share != bytes;
        // Copying together is worth it only for what takes a while; and not when both ends have something
        // better to do, because it stirs two processes for what is hidden anyway.
        if (&protocol == &coop && ((!shared && sizes.current != &coop) || bytes < least_shared)) continue;
        ++usable;
        // Where others wait for the cores, the time of a message is mostly theirs, whatever its protocol, and
        // less of it theirs the more processes work on it; what a protocol does to all is the work that it
        // makes: its copies, and its wake-ups. How many these are is seen, because who has messages in both
        // directions sleeps for neither as long as one of them can go on.
        const Known& known = sizes.known[i];
        const double wakes = known.samples >= enough_sleeps ? known.sleeps : candidates[i].sleeps;
        costs[i] = (1 - scarcity) * candidates[i].copies_s * known.correction +
                   scarcity * (candidates[i].work_s + wakes * (rates.spins() ? poll_s : wake_up_work_s));
        if (&protocol != &coop) longest_alone_s = std::max(longest_alone_s, candidates[i].copies_s);
        if (best == protocols.size() || costs[i] < costs[best]) best = i;
        if (modelled == protocols.size() || candidates[i].copies_s < candidates[modelled].copies_s)
            modelled = i;
    }
    const bool wire_bound = wire_s >= longest_alone_s && usable > 1;
    if (wire_bound) {  // whether it is the best or only in use: then the margin of a change would keep it
        costs[number_of(coop)] = infinity;
        best = static_cast<std::size_t>(std::min_element(costs.begin(), costs.end()) - costs.begin());
    }
    std::size_t taken = best;
    if (sizes.current != nullptr) {
        const std::size_t current = number_of(*sizes.current);
        const bool still_usable = costs[current] != infinity;
        const bool due = sizes.until_next == 0;
        if (still_usable && (!due || costs[best] >= (1 - hysteresis) * costs[current])) taken = current;
    }
    ++sizes.chosen;
    constexpr std::size_t none = protocols.size();
    const std::size_t ring = number_of(eager);
    const RingTrial begun = std::exchange(sizes.ring_trial, RingTrial::none);
    if (begun != RingTrial::none && costs[ring] != infinity && taken != ring)
        return {&eager, candidates[ring].share,
                begun == RingTrial::first_is_there ? candidates[ring].copies_s : 0};
    if (const std::size_t tried = trial(sizes, costs, taken); tried != none) {
        if (tried == ring) sizes.ring_trial = RingTrial::first_is_under_way;
        return {protocols[tried], candidates[tried].share, tried == ring ? 0 : candidates[tried].copies_s};
    }
    if (sizes.until_next == 0) sizes.until_next = settle;
    --sizes.until_next;
    if (sizes.current != protocols[taken]) {
        account.switches += sizes.current != nullptr;
        sizes.current = protocols[taken];
        sizes.until_next = settle - 1;
    }
    note(account, *sizes.current,
         usable == 1         ? Because::only_one
         : wire_bound        ? Because::wire_bound
         : taken != modelled ? Because::measured_faster
                             : Because::copies_bound);
    return {protocols[taken], candidates[taken].share, candidates[taken].copies_s};
}

bool Chooser::keeps_ring(std::uint64_t bytes) const {
    const Class& sizes = classes_[class_of(bytes)];
    constexpr std::uint64_t tried = before_trials + of_each * protocols.size(), decided = 8;
    const std::uint64_t each = sizes.chosen < tried ? 1 : sizes.chosen < often_until ? decided : often;
    return sizes.current == &eager && (sizes.chosen + 1) % each != 0;
}

void Chooser::keep_ring(std::uint64_t bytes, bool forced) {
    Class& sizes = classes_[class_of(bytes)];
    ++sizes.account.messages;
    sizes.account.bytes += bytes;
    note(sizes.account, eager, forced ? Because::asked_for : sizes.account.because);
    if (forced) return;
    ++sizes.chosen;
    sizes.until_next = 0;  // the next one that is decided about is decided anew
}

void Chooser::measured(std::uint64_t bytes, const Protocol& protocol, double expected_s, double seconds,
                       std::uint64_t sleeps) {
    Class& sizes = classes_[class_of(bytes)];
    if (sizes.ring_trial == RingTrial::first_is_under_way && &protocol == &eager)
        sizes.ring_trial = RingTrial::first_is_there;
    if (expected_s <= 0) return;
    Known& known = sizes.known[number_of(protocol)];
    double seen = std::clamp(seconds / expected_s, smallest_correction, largest_correction);
    if (known.samples > 1)
        seen = std::clamp(seen, known.correction / largest_delay, known.correction * largest_delay);
    // The first one touches memory that nobody had before, and is forgotten with the second.
    const double least = &protocol == sizes.current ? weight : weight_of_trial;
    const double share = std::max(least, 1.0 / std::max<std::uint32_t>(1, known.samples));
    known.correction = averaged(known.correction, seen, share);
    known.sleeps = averaged(known.sleeps, static_cast<double>(sleeps), share);
    ++known.samples;
}

}  // namespace thalweg::shm
