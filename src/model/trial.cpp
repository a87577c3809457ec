#include "model/trial.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "model/break_even.h"
#include "model/median.h"

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
    double median() { return median_of({seconds.data(), count}); }
};

// What both ways take for the calls of a phase that have their like in the other way.
struct Totals {
    double native = 0, schedule = 0, calls = 0;
};

Totals compare(std::span<const TrialCall> calls, int period, int phase) {
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
        if (ways[0].count == 0 || ways[1].count == 0) continue;
        const auto weight = static_cast<double>(ways[0].count + ways[1].count);
        totals.native += weight * ways[0].median();
        totals.schedule += weight * ways[1].median();
        totals.calls += weight;
    }
    return totals;
}

}  // namespace

double seconds_from_root(const CallTimes& call, std::uint64_t root_began_ns) {
    const std::uint64_t both = std::max(call.began_ns, root_began_ns);
    return both < call.ended_ns ? 1e-9 * static_cast<double>(call.ended_ns - both) : 0;
}

TrialVerdict judge(std::span<const TrialCall> calls, double worth) {
    TrialVerdict verdict;
    verdict.period = std::max(period_of(calls), 1);
    double compared = 0;
    for (int phase = 0; phase < verdict.period; ++phase) {
        const Totals totals = compare(calls, verdict.period, phase);
        const bool takes = totals.schedule < worth * totals.native;
        verdict.takes_schedule[static_cast<std::size_t>(phase)] = takes;
        const double winner = takes ? totals.schedule : totals.native;
        const double loser = takes ? totals.native : totals.schedule;
        if (winner > 0) verdict.loss = std::max(verdict.loss, loser / winner);
        compared += totals.calls;
        verdict.native_seconds += totals.native;
        verdict.chosen_seconds += takes ? totals.schedule : totals.native;
    }
    for (double* seconds : {&verdict.native_seconds, &verdict.chosen_seconds})
        *seconds = compared > 0 ? *seconds / compared : 0;
    return verdict;
}

TrialTurns::Turn TrialTurns::next() {
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
            if (verdict_.takes_schedule[(call + trial_calls) % static_cast<std::uint64_t>(verdict_.period)])
                turn_ = Turn::schedule;
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
    first_schedule_ = timed_until_ = calls_between_;
    put_off_ = false;
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
    verdict_ = verdict;
    until_trial_ = calls_until_next(verdict, calls_between_);
    stage_ = Stage::decided;
    calls_ = 0;
}

std::uint64_t calls_until_set_up(const SetUpCosts& costs, std::uint64_t least) {
    const double set_up = costs.measured_seconds > 0
                              ? costs.measured_seconds
                              : std::max(set_up_agreements * costs.small_seconds, costs.least_seconds);
    const double calls = break_even(set_up, costs.native_seconds, (1 - expected_gain) * costs.native_seconds);
    constexpr double unbounded = 1e15;
    const double most = costs.bounded || costs.measured_seconds <= 0
                            ? static_cast<double>(TrialTurns::latest_set_up)
                            : unbounded;
    if (costs.native_seconds <= 0) return least;  // nothing was timed
    return std::max(least, static_cast<std::uint64_t>(std::ceil(std::min(calls, most))));
}

std::uint64_t calls_until_next(const TrialVerdict& verdict, std::uint64_t least) {
    constexpr double share = 0.01;
    double cost = (verdict.loss - 1) * trial_calls / 2;  // in calls
    if (verdict.chosen_seconds > 0) cost += verdict.agreements_seconds / verdict.chosen_seconds;
    const double calls = cost / share;
    constexpr double most = 1e15;
    return std::max(least, static_cast<std::uint64_t>(std::ceil(std::min(calls, most))));
}

}  // namespace thalweg
