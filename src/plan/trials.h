// Which blocking alltoalls, large broadcasts, allgathers and allreduces of one communicator, and blocking
// collectives of its neighbourhoods, run natively and which as schedules: some calls run in both ways, in
// turns, and what they took decides for those that follow, until the next trial (model/trial.h).
//
// What a call does follows from its number, which all ranks count alike, and from verdicts that they agreed
// on. Where all ranks know the size of calls, a verdict that leaves them to the native library counts on
// later communicators, too (model/owed_calls.h). Counting takes no memory but for a trial at the first call
// of its kind, which the reserve has room for (reserve.h), so that no rank can lose its place.
#pragma once

#include <mpi.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include "model/owed_calls.h"
#include "model/trial.h"
#include "plan/exchange.h"
#include "plan/plan_account.h"
#include "plan/statistics.h"

namespace thalweg {

class Communicator;

// The calls of one kind, of one class of size where that is equal on all ranks.
class Trial {
  public:
    // Of what is timed of a call. `sized`: the ranks tell one another in their agreements, too, what their
    // messages are like. `rooted`: all are on one host, whose clock they share, and a call begins when its
    // root does.
    enum class Of : std::uint8_t { calls, sized, rooted };
    // on_one_host: so that it is the cores which may change places. `alike`: where they are of one size that
    // all ranks know, what they have in common with those of other communicators, but for the hosts.
    Trial(Of of, bool on_one_host, std::optional<TriedCalls> alike = std::nullopt)
        : sized_(of == Of::sized),
          rooted_(of == Of::rooted),
          alike_(alike),
          turns_(on_one_host ? TrialTurns::calls_between_on_one_host : TrialTurns::calls_between) {}
    ~Trial();
    Trial(const Trial&) = delete;
    Trial& operator=(const Trial&) = delete;

    // What the first schedule would have to set up: nothing, or something, at once or as soon as native calls
    // have taken so long that it would have paid (model/trial.h); in the memory of a host or elsewhere; or,
    // where ranks may be on several hosts, not before, however many calls that takes.
    enum class SetUp : std::uint8_t { nothing, at_once, when_paid, in_memory_when_paid, once_paid };
    // What the next call does, which is counted: never agree. Agrees where it is time to; a first schedule
    // has room for what is to be noted, and its set-up begins. Collective over `comm`, whose state is
    // `communicator`; where the calls have their like elsewhere, it is surveyed before the first schedule.
    TrialTurns::Turn next(MPI_Comm comm, const Communicator& communicator, SetUp set_up);
    // Whether that would be a first schedule, or ask whether its set-up has to be put off.
    bool is_first_next() const { return turns_.is_first_next(); }
    // Whether it would be collective.
    bool meets_next() const { return turns_.meets_next(); }
    // The latest call counts for nothing: the native library refused it, on this rank alone, before it heard
    // of others. Not one in which the ranks have met.
    void take_back();
    void give_up() { turns_.give_up(); }
    // Of exchanges, which need not be asked about from then on (unasked.h).
    void give_up(MPI_Comm comm, CallKind kind);
    // As long as nothing is known of their sizes, or no table speaks for these, calls are native; those that
    // come before any is looked at need not be asked about either.
    void look_again(MPI_Comm comm, CallKind kind);
    // After a call whose turn is native, and which was counted in `declined`: nor need those that follow it
    // up to the next trial, where it has found the native library to be faster.
    void leave_native(MPI_Comm comm, CallKind kind);
    // The same of broadcasts of that size, on `ranks` ranks.
    void leave_native(MPI_Comm comm, std::uint64_t bytes, int ranks);
    void passed_on(std::uint64_t calls);
    // What calls in the place of the one that next() was asked for last are like, as all ranks have agreed;
    // null: they have not. Both ends of a message may give it different sizes all the same.
    const Traits* expected() const { return period_ == 0 ? nullptr : &expected_[(call_ - first_) % period_]; }

    // The most bytes of a pair on average, of any place; 0: nothing is known.
    std::uint64_t largest_expected() const;
    // The same of the messages that there are.
    std::uint64_t largest_message_expected() const;

    // Where native calls are counted, once that is known.
    Tally* declined = nullptr;

    // In front of the first schedule: what the calls timed were like. Collective.
    void learn_sizes(MPI_Comm comm);
    // What the first schedule needs is set up, if anything was to be; how long that took goes with the next
    // verdict. between_hosts: for once_paid of other communicators.
    void set_up_ends(bool between_hosts = false);
    // It is, and there will be no verdict, because the native library has all calls: what that took counts
    // for other communicators, whose ranks take the largest that one of them knows.
    void set_up_was_in_vain(bool between_hosts);
    // Where the break-even is told; null where there is no memory.
    std::shared_ptr<PlanAccount> account;
    // Around a call whose turn is native_timed or one of a trial. `bytes`: that this rank sends. Whether its
    // messages are to be noted, too.
    bool wants_words() const { return sized_; }
    void set_sent(std::uint64_t bytes, const TraitWords& words);
    // Of one that is rooted, in front of begin().
    void set_root(bool is_root) { is_root_ = is_root; }
    // `began_ns`: of one of ours, when it was asked for: the native library's, after a verdict for them, are
    // spared what is looked up then.
    void begin(std::uint64_t began_ns);
    void end();
    // The same around a native call of any turn, whose error handler may free the communicator: the trial may
    // then be gone when the call returns. Refers to the latest begun on this thread. False: it is gone.
    static void begin_native(Trial& trial);
    static bool end_native(const Trial* trial);
    // What native calls took; null where there is no memory.
    std::shared_ptr<NativeTimes> native();

  private:
    struct Record {
        std::array<TrialCall, trial_calls> tried;
        std::array<TraitWords, trial_calls> words;    // of these; before the first trial, of the calls timed
        std::array<std::uint64_t, trial_calls> sent;  // of this rank, where `tried` has the most of any
        std::array<CallTimes, trial_calls> times;     // where it is rooted
    };
    // Collective the first time; later there is nothing left to agree on. False, on all ranks: one of them
    // has no memory for a trial.
    bool make_room(MPI_Comm comm, const Communicator& communicator, SetUp set_up);
    // Where the set-up is still to be paid for, or a trial on another communicator. Collective. True, on all
    // ranks: native calls have not taken long enough for that, and this one is native too. Once.
    bool puts_off(MPI_Comm comm, SetUp set_up);
    // The calls that were made since it was told of any, this one included.
    void tell_owed();
    void leave_unasked(MPI_Comm comm, CallKind kind, std::uint64_t calls);
    // Collective: what those calls took from when their roots began.
    void learn_roots(MPI_Comm comm, std::array<std::uint64_t, trial_calls>& took_ns);
    // Collective: the slowest rank of every call, and the most bytes, decide.
    void agree(MPI_Comm comm);
    // What the agreements of a trial took this rank: of the latest one, before that as many as it has.
    std::uint64_t agreements_ns() const;
    void tell(const TrialVerdict& verdict);
    // Of the first calls in the record, the first of which was call `first` of all.
    template <std::size_t calls>
    void agree_on_sizes(MPI_Comm comm, std::uint64_t first);

    const bool sized_, rooted_;
    std::optional<TriedCalls> alike_;  // of this communicator's hosts, where every rank has room
    std::uint64_t told_owed_ = 0;      // how many of these calls owed_calls was told of
    std::uint64_t owed_ = 0;           // of other communicators, as all ranks have agreed; 0: none any more
    bool is_root_ = false, is_unasked_ = false;
    bool has_room_ = false;  // every rank has, and what native calls took has been agreed on
    TrialTurns turns_;
    int size_ = 1;
    std::uint64_t sent_ = NativeTimes::any_size;  // by this rank, in the call looked at last
    std::uint64_t began_ns_ = 0, agreement_ns_ = 0, agreements_ns_ = 0;
    double agreements_seconds_ = 0;     // of the quickest rank and the quickest trial; equal on all ranks
    std::uint64_t set_up_from_ns_ = 0;  // 0: none is under way
    bool opens_ = false;                // it is this process's first between hosts
    bool between_hosts_ = false;        // and is, or was, between some
    SetUpCosts costs_;
    std::uint64_t set_up_ns_ = 0;             // of this rank, not told yet
    double paid_seconds_ = 0;                 // of the slowest
    std::uint64_t call_ = ~std::uint64_t{0};  // how many calls came before the latest
    std::uint64_t first_noted_ = 0;           // of those timed before the first schedule
    std::uint64_t first_ = 0, period_ = 0;    // of expected_; 0: nothing is known
    std::array<Traits, longest_period> expected_;
    std::unique_ptr<Record> record_;
    std::shared_ptr<NativeTimes> native_times_;
};

// Those of one communicator, each made when it is first asked for: most communicators ask for none, and one
// may be made and freed for a single broadcast.
class Trials {
  public:
    // `bytes` of a pair, where they are equal on all ranks (MPI_Alltoall); else whatever. on_one_host: the
    // whole world is, as far as is known before anything is set up. by_size: of neighbourhoods, whether rows
    // speak of their sizes, which the ranks then tell one another. Throws std::bad_alloc.
    Trial& of(CallKind kind, std::uint64_t bytes, bool on_one_host, bool by_size = false);
    // Of broadcasts alike; on_one_host: the communicator is. Throws std::bad_alloc.
    Trial& of_broadcasts(std::uint64_t bytes, bool on_one_host);
    // Of allgathers, allgathervs and allreduces, whose `bytes` are those of a block, of blocks on average and
    // of the vector: equal on all ranks. Between hosts. Throws std::bad_alloc.
    Trial& of_collectives(CallKind kind, std::uint64_t bytes);
    // Whether broadcasts share their trial with none of another size_class().
    static bool are_alone(std::uint64_t bytes) { return class_of(bytes) < classes - 1; }

  private:
    static constexpr std::size_t classes = 40;  // larger ones share the last
    static std::size_t class_of(std::uint64_t bytes);
    using ByClass = std::array<std::unique_ptr<Trial>, classes>;
    ByClass alike_, broadcasts_;
    std::array<std::unique_ptr<ByClass>, 3> collectives_;  // by kind
    std::unique_ptr<Trial> alltoallv_, alltoallw_;
    std::array<std::unique_ptr<Trial>, 5> neighbours_;  // by kind
};

}  // namespace thalweg
