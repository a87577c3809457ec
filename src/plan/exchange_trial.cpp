#include "plan/exchange_trial.h"

#include <algorithm>
#include <new>

#include "base/clock.h"
#include "base/log.h"
#include "plan/quiet_errors.h"
#include "plan/set_up.h"
#include "transport/mpi/host.h"

namespace thalweg {

namespace {

// A schedule must be so much faster than the native call: less is noise, and the native way needs no plan.
constexpr double worth = 0.97;

// What this thread's native call is timed for, as long as that exists.
thread_local constinit Trial* timed [[gnu::tls_model("initial-exec")]] = nullptr;

}  // namespace

bool Trial::make_room(MPI_Comm comm) {
    if (tried_ == nullptr) tried_.reset(new (std::nothrow) std::array<TrialCall, trial_calls>);
    std::uint64_t trouble[1] = {tried_ == nullptr};
    const QuietErrors quiet(comm);
    agree_on(comm, host()->max, trouble);
    return trouble[0] == 0;
}

Trial::~Trial() {
    if (timed == this) timed = nullptr;
}

void Trial::begin_native(Trial& trial) {
    timed = &trial;
    trial.begin();
}

void Trial::end_native(const Trial* trial) {
    if (timed == nullptr || timed != trial) return;
    timed->end();
    timed = nullptr;
}

void Trial::begin() { began_ns_ = now_ns(); }

void Trial::end() {
    using Turn = TrialTurns::Turn;
    const double took = seconds(now_ns() - began_ns_);
    const Turn turn = turns.turn();
    if (turn == Turn::tried_native || turn == Turn::native_timed)
        if (const auto times = native()) times->add(took);
    if (turn == Turn::tried_native || turn == Turn::tried_schedule) (*tried_)[turns.place()] = {took, bytes_};
}

void Trial::agree(MPI_Comm comm) {
    const QuietErrors quiet(comm);
    std::uint64_t most[2 * trial_calls];
    for (std::size_t i = 0; i < trial_calls; ++i) {
        most[2 * i] = static_cast<std::uint64_t>((*tried_)[i].seconds * 1e9);
        most[2 * i + 1] = (*tried_)[i].bytes;
    }
    agree_on(comm, host()->max, most);
    for (std::size_t i = 0; i < trial_calls; ++i)
        (*tried_)[i] = {1e-9 * static_cast<double>(most[2 * i]), most[2 * i + 1]};
    const TrialVerdict verdict = judge(*tried_, worth);
    turns.decide(verdict);
    THALWEG_LOG_AT(debug, "alltoalls: %d phases, the first %s; the slower way takes %.2f times as long",
                   verdict.period, verdict.takes_schedule[0] ? "as a schedule" : "natively", verdict.loss);
}

std::shared_ptr<NativeTimes> Trial::native() {
    if (native_times_ == nullptr) try {
            native_times_ = std::make_shared<NativeTimes>();
        } catch (const std::bad_alloc&) {
        }
    return native_times_;
}

Trial& ExchangeTrials::of(CallKind kind, std::uint64_t bytes) {
    if (kind == CallKind::alltoallv) return alltoallv_;
    if (kind == CallKind::alltoallw) return alltoallw_;
    if (kind >= CallKind::neighbor_allgather && kind <= CallKind::neighbor_alltoallw)
        return neighbours_[static_cast<std::size_t>(kind) -
                           static_cast<std::size_t>(CallKind::neighbor_allgather)];
    return alike_[std::min(static_cast<std::size_t>(size_class(bytes)), classes - 1)];
}

}  // namespace thalweg
