// What each persistent operation has cost and gained so far: the answer to "after how many starts has the
// plan paid for itself" (model/break_even.h). One account per plan, kept after the plan is freed; of this
// rank alone, in the time that its calls of ours took.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "model/break_even.h"
#include "plan/statistics.h"

namespace thalweg {

// Times of native calls that do what the plan does, on its communicator. Written by the thread that is inside
// a collective on it; a reader may miss the last one.
class NativeTimes {
  public:
    // Allocates nothing. The first few dozen are kept.
    void add(double seconds);
    std::vector<double> samples() const;

  private:
    static constexpr std::size_t most = 32;
    mutable std::mutex mutex_;
    double samples_[most] = {};
    std::size_t count_ = 0;
};

class PlanAccount {
  public:
    // Where a native call's time comes from.
    enum class Once : std::uint8_t { unknown, measured, model };

    // `native` may be empty; then model_once_seconds stands for it, where it is not 0.
    PlanAccount(CallKind kind, std::string algorithm, int ranks, std::shared_ptr<const NativeTimes> native,
                double model_once_seconds);

    void set_init(double seconds) { init_seconds_ = seconds; }
    // What it does not give that the standard demands, as one phrase of static storage; empty: nothing.
    void set_shortcoming(const char* phrase) { shortcoming_ = phrase; }
    // One start and its completion; how many messages all of them have put so far. Allocates nothing.
    void add_run(double seconds, std::uint64_t puts);

    struct Figures {
        CallKind kind = CallKind::alltoallv_init;
        std::string algorithm;
        const char* shortcoming = "";
        int ranks = 0;
        std::uint64_t starts = 0, puts = 0;
        double init_seconds = 0, plan_seconds = 0, once_seconds = 0;
        Once once = Once::unknown;
        BreakEven even;  // where `once` is known and it was started
    };
    // Milliseconds: not for the path of a call.
    Figures figures() const;

  private:
    static constexpr std::size_t most_runs = 64;  // the latest

    CallKind kind_;
    std::string algorithm_;
    const char* shortcoming_ = "";
    int ranks_;
    std::shared_ptr<const NativeTimes> native_;
    double model_once_seconds_, init_seconds_ = 0;
    mutable std::mutex mutex_;
    std::uint64_t starts_ = 0, puts_ = 0;
    double runs_[most_runs] = {};
};

// All plans of this process in the order in which they were made; the first 1024.
void keep_account(std::shared_ptr<PlanAccount> account);
std::shared_ptr<PlanAccount> account_of(std::size_t plan);

// Their rows of the report: JSON objects, or lines of a table.
std::string plans_json();
std::string plans_table();

}  // namespace thalweg
