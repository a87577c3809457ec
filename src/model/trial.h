// Whether calls that ran in two ways, in turns, were faster in the one or the other.
//
// A program that calls an operation again and again does so with one size, or with several sizes in turn: a
// loop that exchanges counts and then the data has two. Nobody knows the size of a call beforehand on all
// ranks, but all ranks know its number. So calls are looked at in phases, number modulo period, and each
// phase has its own verdict.
//
// All ranks compute it, each for itself and alike: in_standard_modes (float_modes.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace thalweg {

// One call, as all ranks agree it was: the time of its slowest rank, and the most bytes that a rank sent.
struct TrialCall {
    double seconds = 0;
    std::uint64_t bytes = 0;
};

// When one rank's call began and ended, by a clock that all ranks share; and whether it is the root, without
// whom the others can do nothing.
struct CallTimes {
    std::uint64_t began_ns = 0, ended_ns = 0;
    bool is_root = false;
};
// What the call took this rank from when it and the root were there; 0 where the root's clock says that it
// came later than the call ended.
std::uint64_t ns_from_root(const CallTimes& call, std::uint64_t root_began_ns);

inline constexpr int trial_calls = 16;
inline constexpr int longest_period = 4;

// Whether call `i` of a trial runs as a schedule: half of them, and half of each phase of each period, or as
// nearly as an odd number allows; and never all of one way before the other, so that what changes meanwhile
// changes both: the middles of the two are no more than four calls apart in any phase, by the mean and by the
// median, which is the least that is possible (found by looking at all orders).
constexpr bool tried_as_schedule(int i) { return 7815u >> i & 1; }

struct TrialVerdict {
    int period = 1;
    // False: no size was tried twice in each way, and nothing follows. All phases are native then, and what
    // is told of seconds and losses is what single calls say.
    bool is_known = true;
    std::array<bool, longest_period> takes_schedule{};  // by phase
    // How many times as long the way that lost took, of the phase where that is the most: what the next trial
    // will cost. At least 1.
    double loss = 1;
    // The same of the phases alone that are left to native calls: what it costs to try schedules there.
    double native_loss = 1;
    // A call on average, natively and as the verdict says, of those that could be compared; 0: none.
    double native_seconds = 0, chosen_seconds = 0;
    // What the agreements of a trial take, without waiting for anybody, as all ranks know it; 0: they do not.
    double agreements_seconds = 0;
};

// Pre: calls.size() == trial_calls. Sizes are alike that have as many significant bits. Without a period,
// calls of like size are compared, those that both ways had twice, and there is one phase. A schedule must
// take less than `worth` of the native time. Of few calls it is the mean of the two in the middle that
// counts, unless these are far apart: one of two, or two of four, that something else delayed decide nothing.
TrialVerdict judge(std::span<const TrialCall> calls, double worth);

// Which way each call of one kind runs, counted by its number: some natively, then trials, and between two of
// them as the verdict says. Takes no memory.
class TrialTurns {
  public:
    enum class Turn : std::uint8_t {
        native,
        native_timed,    // for the record: what a native call takes
        first_schedule,  // after what a schedule needs was set up
        tried_native,    // of a trial
        tried_schedule,
        agree,  // asks again after decide() or give_up()
        schedule,
    };
    // Calls before anything is set up, half of them timed: a program that makes a few pays nothing.
    static constexpr std::uint64_t calls_before = 8, timed = calls_before / 2;
    // The most, where the set-up is put off and no set-up was measured.
    static constexpr std::uint64_t latest_set_up = 64;
    // From the first call to the one that begins with the first verdict, it included, if nothing is put off.
    static constexpr int calls_until_verdict = static_cast<int>(calls_before) + 1 + trial_calls + 1;
    // And between two trials, at least: sizes and networks change. Where it is the cores that change places,
    // which they do within seconds, sooner: what a trial costs is one in a hundred all the same.
    static constexpr std::uint64_t calls_between = 1000, calls_between_on_one_host = 200;
    // Behind a verdict that takes schedules where there were none, or knows nothing, at least so many; then
    // twice as many each time, up to those: what was tried need not be what follows.
    static constexpr std::uint64_t soonest = 100;
    // And at most so many, whatever it may have cost, where schedules are taken that were not before: for
    // that some native calls which something else delayed are enough. The trial that confirms it pays for
    // both.
    static constexpr std::uint64_t latest_confirmed = 1000;
    // How often calls_between, at most, lie between two looks at calls of which nothing is tried yet, or two
    // trials that know nothing.
    static constexpr std::uint64_t most_between = 8;

    explicit TrialTurns(std::uint64_t between = calls_between)
        : calls_between_(between), looks_apart_(between) {}

    // What the next call does. Counts it.
    Turn next();
    // The call that next() was asked for last counts for nothing, and the next one has its turn. Pre: neither
    // decide() nor look_again() came since.
    void take_back();
    // Whether that would be the first schedule, if nothing puts it off.
    bool is_first_next() const { return stage_ == Stage::before && calls_ >= first_schedule_; }
    // Whether the ranks meet in the next call, for that or for a verdict.
    bool meets_next() const { return is_first_next() || (stage_ == Stage::trial && calls_ == trial_calls); }
    Turn turn() const { return turn_; }
    // The place in its trial of the call that next() was asked for last; or among those timed before it.
    std::size_t place() const { return static_cast<std::size_t>(calls_ - 1); }
    std::size_t timed_place() const { return static_cast<std::size_t>(calls_ - 1 - (timed_until_ - timed)); }
    // Where the verdict knows nothing, calls go on as they did before the trial.
    void decide(const TrialVerdict& verdict);
    // The call whose turn is first_schedule is native, and so are others until `calls` have been. Once.
    void put_off(std::uint64_t calls);
    // Whether it was not, and there were not yet as many calls as that might ask for.
    bool may_be_put_off() const { return !put_off_ && seen_ < latest_set_up; }
    // It is native, and so are as many as between two trials, whatever was decided before; then the next is
    // the first again. Each time twice as many, up to most_between times.
    void look_again();
    // How many of those come before any that is timed.
    std::uint64_t unasked() const;
    // How many follow a verdict for native calls, of any phase, before the last one that is left to them.
    std::uint64_t native_left() const;
    // How many follow the one that was put off, natively, before the first schedule.
    std::uint64_t put_off_left() const {
        return put_off_ && stage_ == Stage::before && calls_ >= timed_until_ && calls_ < first_schedule_
                   ? first_schedule_ - calls_
                   : 0;
    }
    // Whether there was a first schedule, and no verdict yet.
    bool is_first_trial() const { return stage_ == Stage::trial && until_trial_ == 0; }
    // The most calls between two trials that know nothing.
    std::uint64_t longest_unknown() const { return most_between * calls_between_; }
    // `calls` of either have been, for which next() was not asked.
    void passed_on(std::uint64_t calls) { calls_ += calls; }
    // How many calls there were up to first_schedule, it included.
    std::uint64_t calls_seen() const { return seen_; }
    // Native for good.
    void give_up() { stage_ = Stage::given_up; }

  private:
    enum class Stage : std::uint8_t { before, trial, decided, given_up };

    // How many calls follow a verdict before the next trial; `before` is the one before it, counted from the
    // same call. is_native: all are native from now on; is_more: there are schedules that were not before.
    std::uint64_t until_next(const TrialVerdict& verdict, const TrialVerdict& before, bool is_native,
                             bool is_more);

    std::uint64_t calls_between_, looks_apart_, soon_ = soonest;
    Stage stage_ = Stage::before;
    Turn turn_ = Turn::native;
    std::uint64_t calls_ = 0;  // of this stage
    Stage stage_before_ = Stage::before;
    std::uint64_t calls_before_it_ = 0;  // the latest, of that stage
    std::uint64_t until_trial_ = 0;
    std::uint64_t first_schedule_ = calls_before, timed_until_ = calls_before, seen_ = 0;
    bool put_off_ = false, was_cut_short_ = false;
    TrialVerdict verdict_;  // what is done
};

constexpr bool runs_natively(TrialTurns::Turn turn) {
    using enum TrialTurns::Turn;
    return turn == native || turn == native_timed || turn == tried_native;
}

// What is known of calls before anything is set up for them, as all ranks agree on it; 0: it is not.
struct SetUpCosts {
    double native_seconds = 0;    // one native call
    double small_seconds = 0;     // an agreement of a few words
    double measured_seconds = 0;  // what set-ups took so far
    double least_seconds = 0;     // what one takes at least, where none was measured
    bool bounded = true;          // it comes at latest_set_up at the latest, though it would not have paid
};
// Of memory that the ranks of a host share, a lane in it, and the thread that drives it: the first set-up
// between two ranks took 200 us (docs/decisions/0118-one-host-by-measure.md).
inline constexpr double set_up_in_memory_seconds = 200e-6;
// What setting up costs, in agreements of a few words, where no set-up was measured.
inline constexpr double set_up_agreements = 8;
// What a schedule is taken to gain of a native call's time, before any was tried.
inline constexpr double expected_gain = 0.25;
// After how many native calls to set up: when what schedules would have gained in them has come to what the
// set-up costs (N* of break_even.h). So a program that ends early has lost no more than it could have gained.
// `least` or more, and no more than TrialTurns::latest_set_up where that is bounded, or nothing was measured.
std::uint64_t calls_until_set_up(const SetUpCosts& costs, std::uint64_t least);

// How many calls must follow before the next trial, so that what it costs is a hundredth of their time: half
// of its calls the loss, and its agreements. `least` or more.
std::uint64_t calls_until_next(const TrialVerdict& verdict, std::uint64_t least);

}  // namespace thalweg
