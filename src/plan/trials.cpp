#include "plan/trials.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cinttypes>
#include <new>
#include <span>
#include <utility>

#include "base/clock.h"
#include "base/float_modes.h"
#include "base/log.h"
#include "model/median.h"
#include "plan/communicator.h"
#include "plan/quiet_errors.h"
#include "plan/set_up.h"
#include "plan/unasked.h"
#include "transport/mpi/host.h"

namespace thalweg {

namespace {

// A schedule must be so much faster than the native call: less is noise, and the native way needs no plan.
constexpr double worth = 0.97;

// What this thread's native call is timed for, as long as that exists.
thread_local constinit Trial* timed [[gnu::tls_model("initial-exec")]] = nullptr;

// What the latest set-up behind a trial took the slowest rank, in nanoseconds; and the same of communicators
// between hosts, without the first: what that started and measured is there for all others.
constinit std::atomic<std::uint64_t> measured_set_up_ns{0}, measured_between_hosts_ns{0};
constinit std::atomic<bool> set_up_between_hosts{false};  // any

// What trials on other communicators, that may be no more, have left to the native library.
constinit OwedCalls owed_calls;

void learn_set_up(std::uint64_t ns, bool between_hosts, bool was_first) {
    if (!between_hosts)
        measured_set_up_ns = ns;
    else if (!was_first)
        measured_between_hosts_ns = ns;
}

// The shortest period of calls of like sizes; 1 where there is none.
std::size_t period_of(std::span<const TraitWords> calls) {
    for (std::size_t period = 1; period <= longest_period; ++period) {
        bool repeats = true;
        for (std::size_t i = period; i < calls.size(); ++i)
            repeats = repeats && std::bit_width(calls[i][0]) == std::bit_width(calls[i - period][0]);
        if (repeats) return period;
    }
    return 1;
}

// Of calls `phase`, `phase` + `period`, …: what one of them is like on average. Pre: phase < calls.size().
Traits mean_of(std::span<const TraitWords> calls, std::size_t phase, std::size_t period, int size) {
    TraitWords sums{};
    std::uint64_t count = 0;
    for (std::size_t i = phase; i < calls.size(); i += period, ++count)
        for (std::size_t word = 0; word < trait_words; ++word) sums[word] += calls[i][word];
    Traits traits = traits_of(sums, size, count);
    traits.sizes_agree = false;  // of the next one nobody knows
    return traits;
}

}  // namespace

void Trial::tell_owed() {
    const std::uint64_t calls = call_ + 1;
    if (calls > told_owed_) owed_calls.pass(*alike_, calls - told_owed_);
    told_owed_ = std::max(calls, told_owed_);
}

bool Trial::make_room(MPI_Comm comm, const Communicator& communicator, SetUp set_up) {
    if (has_room_) return true;
    if (record_ == nullptr) record_.reset(new (std::nothrow) Record());
    const std::shared_ptr<NativeTimes> times = native();
    NativeTimes::Words noted{};
    if (times != nullptr) noted = times->noted();
    std::uint64_t owed = 0;
    if (alike_) {
        alike_->topology = communicator.topology().digest();
        tell_owed();
        owed = owed_calls.of(*alike_);
    }
    // [no memory, what a set-up took, what is owed of other communicators, native calls]
    constexpr std::size_t words = 3;
    const bool waits = set_up == SetUp::once_paid;
    std::uint64_t most[words + NativeTimes::places] = {
        record_ == nullptr, waits ? measured_between_hosts_ns : measured_set_up_ns, owed};
    std::copy(noted.begin(), noted.end(), most + words);
    const QuietErrors quiet(comm);
    const std::uint64_t began_ns = now_ns();
    agree_on(comm, host()->max, most);
    agreement_ns_ = now_ns() - began_ns;
    if (most[0] != 0) return false;
    has_room_ = true;
    size_ = communicator.size();
    owed_ = most[2];
    std::copy(most + words, std::end(most), noted.begin());
    if (times != nullptr) times->settle(noted);
    costs_.bounded = !waits;
    in_standard_modes([&] {
        costs_.measured_seconds = seconds(most[1]);
        std::array<double, NativeTimes::places> native_seconds;
        std::size_t timed_calls = 0;
        for (const std::uint64_t ns : noted)
            if (ns != 0) native_seconds[timed_calls++] = seconds(ns);
        costs_.native_seconds = median_of({native_seconds.data(), timed_calls});
    });
    return true;
}

bool Trial::puts_off(MPI_Comm comm, SetUp set_up) {
    const std::uint64_t seen = turns_.calls_seen();
    const bool is_to_pay = set_up != SetUp::nothing && set_up != SetUp::at_once && turns_.may_be_put_off();
    if (is_to_pay && costs_.measured_seconds <= 0) {
        // The quickest rank's: the others waited for it.
        std::uint64_t quickest[1] = {~agreement_ns_};
        const QuietErrors quiet(comm);
        agree_on(comm, host()->max, quickest);
        costs_.small_seconds = in_standard_modes([&] { return seconds(~quickest[0]); });
    }
    const std::uint64_t owed = std::exchange(owed_, 0);
    const std::uint64_t calls = std::max(seen + owed, is_to_pay ? calls_until_set_up(costs_, seen) : seen);
    if (calls <= seen) return false;
    turns_.put_off(calls);
    THALWEG_LOG_AT(debug, "a trial: native until call %" PRIu64 ", for %s to have paid", calls,
                   calls == seen + owed ? "one on another communicator" : "a set-up");
    return true;
}

void Trial::learn_sizes(MPI_Comm comm) {
    const QuietErrors quiet(comm);
    if (sized_) agree_on_sizes<TrialTurns::timed>(comm, first_noted_);
}

template <std::size_t calls>
void Trial::agree_on_sizes(MPI_Comm comm, std::uint64_t first) {
    std::uint64_t sums[calls * trait_words];
    for (std::size_t i = 0; i < calls; ++i)
        std::copy(record_->words[i].begin(), record_->words[i].end(), sums + i * trait_words);
    agree_on(comm, host()->sum, sums);
    for (std::size_t i = 0; i < calls; ++i)
        std::copy_n(sums + i * trait_words, trait_words, record_->words[i].begin());
    const std::span<const TraitWords> all(record_->words.data(), calls);
    period_ = period_of(all);
    first_ = first;
    for (std::size_t phase = 0; phase < period_; ++phase)
        expected_[phase] = mean_of(all, phase, period_, size_);
}

std::uint64_t Trial::largest_expected() const {
    std::uint64_t largest = 0;
    for (std::uint64_t i = 0; i < period_; ++i) largest = std::max(largest, expected_[i].mean_bytes);
    return largest;
}

std::uint64_t Trial::largest_message_expected() const {
    std::uint64_t largest = 0;
    for (std::uint64_t i = 0; i < period_; ++i) largest = std::max(largest, expected_[i].mean_message_bytes);
    return largest;
}

TrialTurns::Turn Trial::next(MPI_Comm comm, const Communicator& communicator, SetUp set_up) {
    using Turn = TrialTurns::Turn;
    ++call_;
    const Turn turn = turns_.next();
    if (turn == Turn::agree) {
        agree(comm);
        return turns_.next();
    }
    if (turn != Turn::first_schedule) return turn;
    if (!make_room(comm, communicator, set_up)) {
        give_up();
        return Turn::native;
    }
    if (set_up == SetUp::in_memory_when_paid) costs_.least_seconds = set_up_in_memory_seconds;
    if (puts_off(comm, set_up)) return Turn::native;
    // One that began at an earlier look, which left these calls to the library, never was: others made it.
    set_up_from_ns_ = set_up != SetUp::nothing ? now_ns() : 0;
    if (set_up != SetUp::nothing) opens_ = !set_up_between_hosts;
    return turn;
}

void Trial::set_up_ends(bool between_hosts) {
    if (set_up_from_ns_ == 0) return;
    set_up_ns_ = now_ns() - std::exchange(set_up_from_ns_, 0);
    between_hosts_ = between_hosts;
    if (between_hosts) set_up_between_hosts = true;
}

void Trial::set_up_was_in_vain(bool between_hosts) {
    set_up_ends(between_hosts);
    const std::uint64_t took_ns = std::exchange(set_up_ns_, 0);
    if (took_ns != 0) learn_set_up(took_ns, between_hosts, opens_);
}

// Without memory nothing is noted; make_room() tells the others.
void Trial::set_sent(std::uint64_t bytes, const TraitWords& words) {
    using Turn = TrialTurns::Turn;
    const bool timed = turns_.turn() == Turn::native_timed;
    const std::size_t place = timed ? turns_.timed_place() : turns_.place();
    sent_ = bytes;
    if (timed && place == 0) first_noted_ = call_;
    if (record_ == nullptr) record_.reset(new (std::nothrow) Record());
    if (record_ == nullptr) return;
    record_->words[place] = words;
    if (!timed) record_->tried[place].bytes = record_->sent[place] = bytes;
}

void Trial::give_up(MPI_Comm comm, CallKind kind) {
    give_up();
    leave_unasked(comm, kind, Unasked::all);
}

void Trial::look_again(MPI_Comm comm, CallKind kind) {
    turns_.look_again();
    leave_unasked(comm, kind, turns_.unasked());
}

void Trial::leave_native(MPI_Comm comm, CallKind kind) {
    if (const std::uint64_t calls = turns_.native_left(); calls != 0) leave_unasked(comm, kind, calls);
}

void Trial::leave_native(MPI_Comm comm, std::uint64_t bytes, int ranks) {
    const std::uint64_t calls = std::max(turns_.native_left(), turns_.put_off_left());
    if (declined == nullptr || calls == 0 || !Trials::are_alone(bytes)) return;
    is_unasked_ = true;
    Unasked::begin(comm, {CallKind::bcast, bytes, ranks}, calls, *this);
}

// Alltoalls have a trial for each class of size.
void Trial::leave_unasked(MPI_Comm comm, CallKind kind, std::uint64_t calls) {
    if (declined == nullptr || kind == CallKind::alltoall) return;
    is_unasked_ = true;
    Unasked::begin(comm, {kind}, calls, *this);
}

void Trial::passed_on(std::uint64_t calls) {
    call_ += calls;
    turns_.passed_on(calls);
}

Trial::~Trial() {
    if (is_unasked_) Unasked::settle(this);
    if (timed == this) timed = nullptr;
    if (!alike_ || !has_room_) return;
    tell_owed();
    if (turns_.is_first_trial()) owed_calls.break_off(*alike_, turns_.longest_unknown());
}

void Trial::take_back() {
    if (is_unasked_ && Unasked::take_back(*this)) return;
    --call_;
    turns_.take_back();
}

void Trial::begin_native(Trial& trial) {
    timed = &trial;
    if (trial.turns_.turn() != TrialTurns::Turn::native) trial.begin(now_ns());
}

bool Trial::end_native(const Trial* trial) {
    if (timed == nullptr || timed != trial) return false;
    Trial& its = *std::exchange(timed, nullptr);
    if (its.turns_.turn() != TrialTurns::Turn::native) its.end();
    return true;
}

void Trial::begin(std::uint64_t began_ns) { began_ns_ = began_ns; }

void Trial::end() {
    using Turn = TrialTurns::Turn;
    const std::uint64_t ended_ns = now_ns();
    const Turn turn = turns_.turn();
    if (turn == Turn::native_timed && !has_room_)
        if (const auto times = native()) times->note(ended_ns - began_ns_, sent_);
    if (turn != Turn::tried_native && turn != Turn::tried_schedule) return;
    record_->times[turns_.place()] = {began_ns_, ended_ns, is_root_};
}

void Trial::learn_roots(MPI_Comm comm, std::array<std::uint64_t, trial_calls>& took_ns) {
    std::uint64_t roots[trial_calls];
    for (std::size_t i = 0; i < trial_calls; ++i)
        roots[i] = record_->times[i].is_root ? record_->times[i].began_ns : 0;
    agree_on(comm, host()->max, roots);
    for (std::size_t i = 0; i < trial_calls; ++i) took_ns[i] = ns_from_root(record_->times[i], roots[i]);
}

std::uint64_t Trial::agreements_ns() const {
    if (agreements_ns_ != 0) return agreements_ns_;
    return agreement_ns_ * (1 + std::uint64_t{rooted_} + std::uint64_t{sized_});
}

void Trial::agree(MPI_Comm comm) {
    const QuietErrors quiet(comm);
    const std::uint64_t began_ns = now_ns();
    std::array<std::uint64_t, trial_calls> took_ns;
    for (std::size_t i = 0; i < trial_calls; ++i)
        took_ns[i] = record_->times[i].ended_ns - record_->times[i].began_ns;
    if (rooted_) learn_roots(comm, took_ns);
    // [of each call: time, bytes; what a set-up took; what agreements took the quickest rank: the others
    // waited for it; the set-up was a first one]
    std::uint64_t most[2 * trial_calls + 3];
    for (std::size_t i = 0; i < trial_calls; ++i) {
        most[2 * i] = took_ns[i];
        most[2 * i + 1] = record_->tried[i].bytes;
    }
    most[2 * trial_calls] = std::exchange(set_up_ns_, 0);
    most[2 * trial_calls + 1] = ~agreements_ns();
    most[2 * trial_calls + 2] = opens_;
    agree_on(comm, host()->max, most);
    if (sized_) agree_on_sizes<trial_calls>(comm, call_ - trial_calls);
    agreements_ns_ = now_ns() - began_ns;
    const std::uint64_t set_up_ns = most[2 * trial_calls];
    in_standard_modes([&] {
        const double quickest = seconds(~most[2 * trial_calls + 1]);
        agreements_seconds_ = agreements_seconds_ > 0 ? std::min(agreements_seconds_, quickest) : quickest;
        for (std::size_t i = 0; i < trial_calls; ++i)
            record_->tried[i] = {seconds(most[2 * i]), most[2 * i + 1]};
        if (set_up_ns != 0) paid_seconds_ = seconds(set_up_ns);
    });
    if (const auto times = native())
        for (std::size_t i = 0; i < trial_calls; ++i)
            if (!tried_as_schedule(static_cast<int>(i))) times->add(most[2 * i], record_->sent[i]);
    TrialVerdict verdict = judge(record_->tried, worth);
    verdict.agreements_seconds = agreements_seconds_;
    turns_.decide(verdict);
    if (alike_) {
        tell_owed();
        if (verdict.is_known) owed_calls.decide(*alike_, turns_.native_left());
    }
    if (set_up_ns != 0) learn_set_up(set_up_ns, between_hosts_, most[2 * trial_calls + 2] != 0);
    tell(verdict);
    THALWEG_LOG_AT(debug, "a trial: %d phases, the first %s; the slower way takes %.2f times as long",
                   verdict.period,
                   !verdict.is_known           ? "as before"
                   : verdict.takes_schedule[0] ? "as a schedule"
                                               : "natively",
                   verdict.loss);
}

// Where sizes take turns there are no samples of what a call takes on average, and so no interval.
void Trial::tell(const TrialVerdict& verdict) {
    if (account == nullptr) return;
    PlanAccount::Tried tried{paid_seconds_, verdict.native_seconds, verdict.chosen_seconds, {}, {}};
    try {
        if (verdict.period == 1 && verdict.takes_schedule[0])
            for (std::size_t i = 0; i < trial_calls; ++i)
                (tried_as_schedule(static_cast<int>(i)) ? tried.plan : tried.once)
                    .push_back(record_->tried[i].seconds);
    } catch (const std::bad_alloc&) {
        return;
    }
    account->set_tried(std::move(tried));
}

std::shared_ptr<NativeTimes> Trial::native() {
    if (native_times_ == nullptr) try {
            native_times_ = std::make_shared<NativeTimes>();
        } catch (const std::bad_alloc&) {
        }
    return native_times_;
}

}  // namespace thalweg
