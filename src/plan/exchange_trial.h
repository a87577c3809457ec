// Which blocking alltoalls of one communicator, and blocking collectives of its neighbourhoods, run natively
// and which as schedules: some calls run in both ways, in turns, and what they took decides for those that
// follow, until the next trial (model/trial.h).
//
// What a call does follows from its number, which all ranks count alike, and from verdicts that they agreed
// on. Counting takes no memory, so that no rank can lose its place.
#pragma once

#include <mpi.h>

#include <array>
#include <cstdint>
#include <memory>

#include "model/trial.h"
#include "plan/plan_account.h"
#include "plan/statistics.h"

namespace thalweg {

// The calls of one kind, of one class of size where that is equal on all ranks.
class Trial {
  public:
    Trial() = default;
    ~Trial();
    Trial(const Trial&) = delete;
    Trial& operator=(const Trial&) = delete;

    TrialTurns turns;
    // Where native calls are counted, once that is known.
    Tally* declined = nullptr;

    // Before the first schedule. Collective. False, on all ranks: one of them has no memory for a trial.
    bool make_room(MPI_Comm comm);
    // Around a call whose turn is native_timed or one of a trial. `bytes`: that this rank sends, of a trial.
    void set_bytes(std::uint64_t bytes) { bytes_ = bytes; }
    void begin();
    void end();
    // The same around a native call, whose error handler may free the communicator: the trial may then be
    // gone when the call returns. Refers to the latest begun on this thread.
    static void begin_native(Trial& trial);
    static void end_native(const Trial* trial);
    // Collective: the slowest rank of every call, and the most bytes, decide.
    void agree(MPI_Comm comm);

    // What native calls took; null where there is no memory.
    std::shared_ptr<NativeTimes> native();

  private:
    std::uint64_t began_ns_ = 0, bytes_ = 0;
    std::unique_ptr<std::array<TrialCall, trial_calls>> tried_;
    std::shared_ptr<NativeTimes> native_times_;
};

// Those of one communicator.
class ExchangeTrials {
  public:
    // `bytes` of a pair, where they are equal on all ranks (MPI_Alltoall); else whatever.
    Trial& of(CallKind kind, std::uint64_t bytes);

  private:
    static constexpr std::size_t classes = 40;  // larger blocks share the last
    std::array<Trial, classes> alike_;
    Trial alltoallv_, alltoallw_;
    std::array<Trial, 5> neighbours_;  // by kind
};

}  // namespace thalweg
