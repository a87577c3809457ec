#include "plan/blocking_exchange.h"

#include <algorithm>
#include <map>

#include "base/clock.h"
#include "base/log.h"
#include "plan/attendance.h"
#include "plan/datatype.h"
#include "plan/last_call.h"
#include "plan/quiet_errors.h"
#include "plan/set_up.h"
#include "transport/mpi/host.h"

namespace thalweg {

namespace {

// A schedule must be so much faster than the native call: less is noise, and the native way needs no plan.
constexpr double worth = 0.97;
// Calls before anything is set up: a program that makes a few pays nothing.
constexpr std::uint32_t calls_before = 8;

double median(std::vector<double> samples) {
    std::sort(samples.begin(), samples.end());
    return samples.empty() ? 0 : samples[samples.size() / 2];
}

}  // namespace

// What is kept for the blocking exchanges of one communicator.
struct ExchangeTrials {
    std::map<std::pair<CallKind, int>, Trial> all;
};

Trial::Turn Trial::next() {
    if (decided_) return takes_ours_ ? Turn::ours : Turn::native;
    const std::uint32_t call = calls_++;
    if (call < calls_before - per_way) return Turn::native;
    if (call < calls_before) return call == calls_before - per_way ? Turn::native : Turn::native_timed;
    if (call == calls_before) return Turn::ours;
    return call < calls_before + per_way ? Turn::ours_timed : Turn::agree;
}

void Trial::agree(MPI_Comm comm) {
    const QuietErrors quiet(comm);
    const auto ns = [](double seconds) { return static_cast<std::uint64_t>(seconds * 1e9); };
    std::uint64_t times[2] = {ns(median(native_times_->samples())), ns(median({ours_, ours_ + samples}))};
    const bool known = combined(comm, host()->max, times);
    decide(known && static_cast<double>(times[1]) < worth * static_cast<double>(times[0]));
    THALWEG_LOG_AT(debug, "alltoalls: %.1f us natively, %.1f us as a schedule", 1e-3 * double(times[0]),
                   1e-3 * double(times[1]));
}

void Trial::begin() { began_ns_ = now_ns(); }
void Trial::end() { native_times_->add(seconds(now_ns() - began_ns_)); }

namespace {

// By the class of its size where that is equal on all ranks.
Trial& trial_of(Communicator& communicator, const CollectiveCall& call, CallKind kind) {
    if (communicator.trials == nullptr) communicator.trials = std::make_shared<ExchangeTrials>();
    int row = -1;
    if (!call.received.given()) {
        const std::int64_t size = type_size(call.receive_type);
        row = size < 0 || call.receive_count < 0 ? 0
                                                 : size_class(static_cast<std::uint64_t>(size) *
                                                              static_cast<std::uint64_t>(call.receive_count));
    }
    return communicator.trials->all[{kind, row}];
}

void count_declined(Communicator& communicator, const CollectiveCall& call, Reason reason) {
    note_declined(reason, 0);
    ++communicator.record().declined(reason, 0, call.kind).calls;
}

// As a schedule. False: declined on all ranks alike.
bool run_now(const CollectiveCall& call, int& error) {
    const std::unique_ptr<Ongoing> ongoing = offer(call, error);
    if (ongoing == nullptr) return error != MPI_SUCCESS;
    ongoing->run();
    error = ongoing->finish();
    if (error != MPI_SUCCESS) host()->Comm_call_errhandler(call.comm, error);
    return true;
}

}  // namespace

bool may_exchange() {
    if (!Attendance::present()) return false;
    const World& world = *World::get();
    const Wanted wanted = world.wanted(Collective::alltoallv);
    return wanted == Wanted::algorithm ||
           (wanted != Wanted::native && !world.leaves_all_native(Collective::alltoallv));
}

bool exchange_now(const CollectiveCall& call, int& error, Trial*& trial) {
    error = MPI_SUCCESS;
    if (!may_exchange() || call.comm == host()->comm_null) return false;
    World& world = *World::get();
    if (world.wanted(call.collective) == Wanted::algorithm) return run_now(call, error);
    Communicator* const communicator = Communicator::of(call.comm, world);
    if (communicator == nullptr || communicator->phase() == Communicator::Phase::native) return false;
    if (communicator->self_driven.refused) {
        count_declined(*communicator, call, *communicator->self_driven.refused);
        return false;
    }
    Trial& its = trial_of(*communicator, call, call.kind);
    Trial::Turn turn = its.next();
    if (turn == Trial::Turn::agree) {
        its.agree(call.comm);
        turn = its.next();
    }
    if (turn == Trial::Turn::native || turn == Trial::Turn::native_timed) {
        count_declined(*communicator, call, Reason::native_best);
        if (turn == Trial::Turn::native_timed) trial = &its;
        return false;
    }
    // Looked at before anything is set up; all ranks are at the same turn.
    if (turn == Trial::Turn::ours &&
        (!communicator->survey_now(call.comm) ||
         (communicator->topology().nodes() < 2 && world.leaves_one_host(call.collective)))) {
        its.decide(false);
        count_declined(*communicator, call, Reason::native_best);
        return false;
    }
    const std::uint64_t began_ns = now_ns();
    if (!run_now(call, error)) {
        its.decide(false);
        return false;
    }
    // Where it failed, the error handler may have freed the communicator, and the trial with it.
    if (error == MPI_SUCCESS && turn == Trial::Turn::ours_timed) its.add_ours(seconds(now_ns() - began_ns));
    return true;
}

std::shared_ptr<PlanAccount> open_account(NonblockingState& state, Communicator& communicator,
                                          const CollectiveCall& call, const std::string& algorithm,
                                          std::uint64_t bytes, std::uint64_t began_ns) {
    std::shared_ptr<const NativeTimes> native;
    double predicted_seconds = 0;
    if (call.collective == Collective::alltoallv && !call.neighbours) {
        const CallKind blocking = !call.received.given()                  ? CallKind::alltoall
                                  : call.kind == CallKind::alltoallw_init ? CallKind::alltoallw
                                                                          : CallKind::alltoallv;
        native = trial_of(communicator, call, blocking).native();
        predicted_seconds = state.predicted_native_seconds(bytes);
    }
    auto account = std::make_shared<PlanAccount>(call.kind, algorithm, state.size(), std::move(native),
                                                 predicted_seconds);
    account->set_init(seconds(now_ns() - began_ns));
    keep_account(account);
    return account;
}

}  // namespace thalweg
