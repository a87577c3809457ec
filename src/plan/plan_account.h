// What each persistent operation has cost and gained so far: the answer to "after how many starts has the
// plan paid for itself" (model/break_even.h). One account per plan, kept after the plan is freed; what native
// calls take is of the slowest rank, the rest of this rank alone, in the time that its calls of ours took.
// And one for the repeated alltoalls of a communicator that were tried, whose times are all of the slowest
// rank.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "model/break_even.h"
#include "model/machine.h"
#include "plan/statistics.h"

namespace thalweg {

// Times of native calls that do what the plan does, on its communicator: of the slowest rank, once the ranks
// have agreed on that, where they agree anyhow. Written by the thread that is inside a collective on it; a
// reader may miss the last one.
class NativeTimes {
  public:
    // Of what a call sent where all that are counted here are alike, or where that is not known.
    static constexpr std::uint64_t any_size = UINT64_MAX;
    // What the ranks have agreed on; `sent`: bytes of this rank in that call. Allocates nothing. A few dozen
    // are kept, the latest of each size.
    void add(std::uint64_t ns, std::uint64_t sent = any_size);
    // This rank's, to be agreed on: as many as there are places for.
    void note(std::uint64_t ns, std::uint64_t sent = any_size);
    // These, for an agreement on the largest; 0: no call, on all ranks alike. Where they have
    // been agreed on before they are all 0.
    static constexpr std::size_t places = 4;
    using Words = std::array<std::uint64_t, places>;
    Words noted() const;
    // What came of it stands for what was noted.
    void settle(const Words& slowest);
    // In seconds, of calls in which this rank sent half as much to twice as much as `sent`: what others take
    // says nothing of those. Throws std::bad_alloc.
    std::vector<double> samples(std::uint64_t sent = any_size) const;

  private:
    struct Sample {
        std::uint64_t ns = 0, sent = any_size;
    };
    static constexpr std::size_t most = 32;
    mutable std::mutex mutex_;
    std::array<Sample, most> samples_;
    std::array<Sample, places> noted_;
    std::size_t count_ = 0, noted_count_ = 0;
};

// What the ranks have noted, settled by `agree`, which makes of a rank's words those of the slowest, and in
// which every rank takes part: one that has no memory for its own (null) answers the others all the same.
template <class Agree>
void settle_together(NativeTimes* native, Agree agree) {
    NativeTimes::Words words{};
    if (native != nullptr) words = native->noted();
    agree(words);
    if (native != nullptr) native->settle(words);
}

class PlanAccount {
  public:
    // Where a native call's time comes from.
    enum class Once : std::uint8_t { unknown, measured, model };

    // `native` may be empty, or have no calls of about as many bytes of this rank as the plan `sends`; then
    // model_once stands for it, where it is not 0.
    PlanAccount(CallKind kind, std::string algorithm, int ranks, std::shared_ptr<const NativeTimes> native,
                Picoseconds model_once, std::uint64_t sends = NativeTimes::any_size);

    void set_init(std::uint64_t ns) { init_ns_ = ns; }
    // Of repeated calls: what the ranks have found in a trial, in the place of what was added. The times of a
    // call natively and as it was decided; the samples behind them.
    struct Tried {
        double init_seconds = 0, once_seconds = 0, plan_seconds = 0;
        std::vector<double> once, plan;
    };
    void set_tried(Tried tried);
    // What it does not give that the standard demands, as one phrase of static storage; empty: nothing.
    void set_shortcoming(const char* phrase) { shortcoming_ = phrase; }
    // One start and its completion; how many messages all of them have put so far. Allocates nothing.
    void add_run(std::uint64_t ns, std::uint64_t puts);

    struct Figures {
        CallKind kind = CallKind::alltoallv_init;
        std::string algorithm;
        const char* shortcoming = "";
        int ranks = 0;
        std::uint64_t starts = 0, puts = 0;
        double init_seconds = 0, plan_seconds = 0, once_seconds = 0;
        Once once = Once::unknown;
        // Where `once` is known and it was started; without samples its interval is NaN.
        BreakEven even;
    };
    // Milliseconds: not for the path of a call.
    Figures figures() const;

  private:
    static constexpr std::size_t most_runs = 64;  // the latest
    Figures computed() const;

    CallKind kind_;
    std::string algorithm_;
    const char* shortcoming_ = "";
    int ranks_;
    std::shared_ptr<const NativeTimes> native_;
    Picoseconds model_once_;
    std::uint64_t sends_, init_ns_ = 0;
    mutable std::mutex mutex_;
    std::uint64_t starts_ = 0, puts_ = 0;
    std::uint64_t runs_ns_[most_runs] = {};
    std::optional<Tried> tried_;
};

// All plans of this process in the order in which they were made; the first 1024.
void keep_account(std::shared_ptr<PlanAccount> account);
std::shared_ptr<PlanAccount> account_of(std::size_t plan);

// Their rows of the report: JSON objects, or lines of a table.
std::string plans_json();
std::string plans_table();

}  // namespace thalweg
