#include "model/trial.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/float_modes.h"
#include "model/break_even.h"

namespace thalweg {
namespace {

int class_of(const TrialCall& call) { return std::bit_width(call.bytes); }

int period_of(std::span<const TrialCall> calls) {
    for (int period = 1; period <= longest_period; ++period) {
        const auto step = static_cast<std::size_t>(period);
        bool repeats = true;
        for (std::size_t i = step; i < calls.size(); ++i)
            repeats = repeats && class_of(calls[i]) == class_of(calls[i - step]);
        if (repeats) return period;
    }
    return 0;
}

// Times of one way, of calls of one class in one phase.
struct Times {
    std::array<double, trial_calls> seconds{};
    std::size_t count = 0;

    void add(double value) { seconds[count++] = value; }
    void sort() { std::sort(seconds.begin(), seconds.begin() + static_cast<std::ptrdiff_t>(count)); }
    // The two in the middle, the same one of an odd number. Pre: sorted, and there are some.
    double lower() const { return seconds[(count - 1) / 2]; }
    double upper() const { return seconds[count / 2]; }
    bool is_torn() const { return upper() > far_apart * lower(); }

    // The upper one was delayed by something that does not belong to the call: networks and cores that change
    // do so less within a trial.
    static constexpr double far_apart = 1.5;
};

// What both ways take for the calls of a phase that have their like in the other way, `least` in each.
struct Totals {
    double native = 0, schedule = 0, calls = 0;
};

Totals compare(std::span<const TrialCall> calls, int period, int phase, std::size_t least) {
    Totals totals;
    std::uint64_t seen[2] = {0, 0};  // classes 0 to 64
    for (int first = phase; first < trial_calls; first += period) {
        const int size_class = class_of(calls[static_cast<std::size_t>(first)]);
        if (seen[size_class / 64] >> size_class % 64 & 1) continue;
        seen[size_class / 64] |= std::uint64_t{1} << size_class % 64;
        Times ways[2];
        for (int i = first; i < trial_calls; i += period) {
            const TrialCall& call = calls[static_cast<std::size_t>(i)];
            if (class_of(call) == size_class) ways[tried_as_schedule(i)].add(call.seconds);
        }
        if (std::min(ways[0].count, ways[1].count) < least) continue;
        for (Times& way : ways) way.sort();
        // Both ways alike: the mean of two is later than the first of them.
        const bool torn = ways[0].is_torn() || ways[1].is_torn();
        const auto middle = [torn](const Times& way) {
            return torn ? way.lower() : (way.lower() + way.upper()) / 2;
        };
        const auto weight = static_cast<double>(ways[0].count + ways[1].count);
        totals.native += weight * middle(ways[0]);
        totals.schedule += weight * middle(ways[1]);
        totals.calls += weight;
    }
    return totals;
}

bool takes_at(const TrialVerdict& verdict, std::uint64_t call) {
    return verdict.takes_schedule[call % static_cast<std::uint64_t>(verdict.period)];
}

// As the phases are counted from `calls` behind the beginning of its trial.
TrialVerdict behind(const TrialVerdict& verdict, std::uint64_t calls) {
    TrialVerdict later = verdict;
    for (int phase = 0; phase < verdict.period; ++phase)
        later.takes_schedule[static_cast<std::size_t>(phase)] =
            takes_at(verdict, calls + static_cast<std::uint64_t>(phase));
    return later;
}

// Whether a call runs as a schedule by `verdict` that does not by `before`, both counted from the same call.
bool takes_more(const TrialVerdict& verdict, const TrialVerdict& before) {
    constexpr std::uint64_t all_periods = 12;  // 1 to 4 divide it
    static_assert(longest_period == 4);
    for (std::uint64_t call = 0; call < all_periods; ++call)
        if (takes_at(verdict, call) && !takes_at(before, call)) return true;
    return false;
}

TrialVerdict judged(std::span<const TrialCall> calls, double worth) {
    TrialVerdict verdict;
    verdict.period = std::max(period_of(calls), 1);
    double compared = 0;
    for (int phase = 0; phase < verdict.period; ++phase) {
        Totals totals = compare(calls, verdict.period, phase, 2);
        if (totals.calls == 0) {
            verdict.is_known = false;
            totals = compare(calls, verdict.period, phase, 1);
        }
        const bool takes = verdict.is_known && totals.schedule < worth * totals.native;
        verdict.takes_schedule[static_cast<std::size_t>(phase)] = takes;
        const double winner = takes ? totals.schedule : totals.native;
        const double loser = takes ? totals.native : totals.schedule;
        if (winner > 0) verdict.loss = std::max(verdict.loss, loser / winner);
        if (winner > 0 && verdict.is_known && !takes)
            verdict.native_loss = std::max(verdict.native_loss, loser / winner);
        compared += totals.calls;
        verdict.native_seconds += totals.native;
        verdict.chosen_seconds += takes ? totals.schedule : totals.native;
    }
    if (!verdict.is_known) {
        verdict.takes_schedule = {};
        verdict.native_loss = 1;
        verdict.chosen_seconds = verdict.native_seconds;
    }
    for (double* seconds : {&verdict.native_seconds, &verdict.chosen_seconds})
        *seconds = compared > 0 ? *seconds / compared : 0;
    return verdict;
}

}  // namespace

std::uint64_t ns_from_root(const CallTimes& call, std::uint64_t root_began_ns) {
    const std::uint64_t both = std::max(call.began_ns, root_began_ns);
    return both < call.ended_ns ? call.ended_ns - both : 0;
}

TrialVerdict judge(std::span<const TrialCall> calls, double worth) {
    return in_standard_modes([&] { return judged(calls, worth); });
}

void TrialTurns::take_back() {
    if (stage_ == Stage::given_up) return;
    stage_ = stage_before_;
    calls_ = calls_before_it_;
}

TrialTurns::Turn TrialTurns::next() {
    stage_before_ = stage_;
    calls_before_it_ = calls_;
    const std::uint64_t call = calls_++;
    turn_ = Turn::native;
    switch (stage_) {
        case Stage::given_up:
            break;
        case Stage::before:
            if (call < first_schedule_) {
                if (call + timed >= timed_until_ && call < timed_until_) turn_ = Turn::native_timed;
                break;
            }
            turn_ = Turn::first_schedule;
            seen_ = calls_;
            stage_ = Stage::trial;
            calls_ = 0;
            break;
        case Stage::trial:
            if (call == trial_calls)
                turn_ = Turn::agree;
            else
                turn_ = tried_as_schedule(static_cast<int>(call)) ? Turn::tried_schedule : Turn::tried_native;
            break;
        case Stage::decided:
            // Phases are counted from the beginning of the trial.
            if (takes_at(verdict_, call + trial_calls)) turn_ = Turn::schedule;
            if (calls_ < until_trial_) break;
            stage_ = Stage::trial;
            calls_ = 0;
            break;
    }
    return turn_;
}

void TrialTurns::put_off(std::uint64_t calls) {
    stage_ = Stage::before;
    turn_ = Turn::native;
    calls_ = seen_;
    first_schedule_ = std::max(calls, seen_);
    put_off_ = true;
}

void TrialTurns::look_again() {
    stage_ = Stage::before;
    turn_ = Turn::native;
    calls_ = 0;
    verdict_ = {};
    first_schedule_ = timed_until_ = looks_apart_;
    looks_apart_ = std::min(2 * looks_apart_, longest_unknown());
}

std::uint64_t TrialTurns::native_left() const {
    if (stage_ != Stage::decided || calls_ + 1 >= until_trial_) return 0;
    const auto phases = verdict_.takes_schedule.begin();
    const bool native = std::none_of(phases, phases + verdict_.period, [](bool taken) { return taken; });
    // Behind the last one, which is asked about, the trial begins.
    return native ? until_trial_ - 1 - calls_ : 0;
}

std::uint64_t TrialTurns::unasked() const {
    const std::uint64_t until = timed_until_ - timed;
    return stage_ == Stage::before && calls_ < until ? until - calls_ : 0;
}

void TrialTurns::decide(const TrialVerdict& verdict) {
    const TrialVerdict before = behind(verdict_, until_trial_ + trial_calls);
    verdict_ = verdict;
    if (!verdict.is_known) {
        verdict_.period = before.period;
        verdict_.takes_schedule = before.takes_schedule;
    }
    const bool is_native = !takes_more(verdict_, {});
    const bool is_more = takes_more(verdict_, before);
    until_trial_ = in_standard_modes([&] { return until_next(verdict, before, is_native, is_more); });
    stage_ = Stage::decided;
    calls_ = 0;
}

std::uint64_t TrialTurns::until_next(const TrialVerdict& verdict, const TrialVerdict& before, bool is_native,
                                     bool is_more) {
    const bool is_settled = verdict.is_known && is_native;
    if (is_settled || is_more || (!verdict.is_known && before.is_known)) soon_ = soonest;
    const std::uint64_t most = verdict.is_known ? calls_between_ : longest_unknown();
    const std::uint64_t least = is_settled ? calls_between_ : std::min(soon_, most);
    if (!is_settled) soon_ = std::min(2 * soon_, most);

    // What a native call takes longer than a schedule is believed where two trials say so. It is no loss to a
    // program that would have made native calls; what schedules take longer is, and counts at once.
    const bool is_sure = is_native || (verdict.is_known && !is_more);
    TrialVerdict cost = verdict;
    if (is_sure && !is_native) cost.loss = std::max(verdict.native_loss, std::min(verdict.loss, before.loss));
    const std::uint64_t wanted = calls_until_next(cost, least);
    const bool pays_twice = was_cut_short_ && is_sure && !is_native;
    was_cut_short_ = !is_sure && (was_cut_short_ || wanted > latest_confirmed);
    // Single calls decide nothing, for how long they do not either.
    if (is_sure && !verdict.is_known) return std::min(wanted, std::max(least, most));
    if (is_sure) return pays_twice ? 2 * wanted : wanted;
    cost.loss = verdict.native_loss;
    return std::max(std::min(wanted, latest_confirmed), calls_until_next(cost, least));
}

std::uint64_t calls_until_set_up(const SetUpCosts& costs, std::uint64_t least) {
    if (costs.native_seconds <= 0) return least;  // nothing was timed
    constexpr double unbounded = 1e15;
    const double most = costs.bounded || costs.measured_seconds <= 0
                            ? static_cast<double>(TrialTurns::latest_set_up)
                            : unbounded;
    return in_standard_modes([&] {
        const double set_up = costs.measured_seconds > 0
                                  ? costs.measured_seconds
                                  : std::max(set_up_agreements * costs.small_seconds, costs.least_seconds);
        const double calls =
            break_even(set_up, costs.native_seconds, (1 - expected_gain) * costs.native_seconds);
        return std::max(least, static_cast<std::uint64_t>(std::ceil(std::min(calls, most))));
    });
}

std::uint64_t calls_until_next(const TrialVerdict& verdict, std::uint64_t least) {
    constexpr double share = 0.01;
    constexpr double most = 1e15;
    return in_standard_modes([&] {
        double cost = (verdict.loss - 1) * trial_calls / 2;  // in calls
        if (verdict.chosen_seconds > 0) cost += verdict.agreements_seconds / verdict.chosen_seconds;
        const double calls = cost / share;
        return std::max(least, static_cast<std::uint64_t>(std::ceil(std::min(calls, most))));
    });
}

}  // namespace thalweg
