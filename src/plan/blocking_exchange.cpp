#include "plan/blocking_exchange.h"

#include <algorithm>
#include <new>

#include "base/clock.h"
#include "plan/attendance.h"
#include "plan/blocking.h"
#include "plan/bypass.h"
#include "plan/datatype.h"
#include "plan/exchange_decision.h"
#include "plan/last_call.h"
#include "plan/planned_in_memory.h"
#include "transport/mpi/error_handler.h"
#include "transport/mpi/host.h"

namespace thalweg {

namespace {

using Turn = TrialTurns::Turn;

// Of a pair, where that is equal on all ranks; else 0.
std::uint64_t pair_bytes(const CollectiveCall& call) {
    if (call.neighbours || call.received.given()) return 0;
    const std::int64_t size = type_size(call.receive_type);
    if (size < 0 || call.receive_count < 0) return 0;
    return static_cast<std::uint64_t>(size) * static_cast<std::uint64_t>(call.receive_count);
}

// Notes what this rank sends: nothing where that cannot be told. O(ranks): for the calls of a trial.
void note_sent(const CollectiveCall& call, Communicator& communicator, Trial& trial) {
    std::uint64_t bytes = 0;
    TraitWords words{};
    try {
        CallShape shape;
        if (call.neighbours ? look_at_neighbours(call, communicator, shape)
                            : !look_at(call, communicator.rank(), communicator.size(), shape)) {
            bytes = shape.total;
            if (trial.wants_words())
                words = words_of(shape.letters, communicator.rank(), communicator.size(),
                                 communicator.topology());
        }
    } catch (const std::bad_alloc&) {
    }
    trial.set_sent(bytes, words);
}

// Whether the library refuses this rank alone before it hears of others: such a call counts nowhere, and this
// rank may make it anew. Of predefined types of an alltoall their handles say enough, where the counts are
// some and the buffers two. Of others O(ranks); false without memory, which is then missed later.
bool is_refused(const CollectiveCall& call, Communicator& communicator) try {
    const auto plain = [](const void* buffer, MPI_Count count, MPI_Datatype type) {
        return count >= 0 && thalweg_is_no_place(buffer) == 0 && Bypass::is_predefined((std::intptr_t)type);
    };
    if (!call.has_letters() && plain(call.receive, call.receive_count, call.receive_type) &&
        (call.send == MPI_IN_PLACE ||
         (call.send != call.receive && plain(call.send, call.send_count, call.send_type))))
        return false;
    return is_judged(call, communicator);
} catch (const std::bad_alloc&) {
    return false;
}

// Without memory a call is not counted.
void count_declined(Communicator& communicator, const CollectiveCall& call, Reason reason,
                    Tally*& tally) noexcept try {
    note_declined(reason, 0);
    if (tally == nullptr) tally = &communicator.record().declined(reason, 0, call.kind);
    ++tally->calls;
} catch (const std::bad_alloc&) {
}

// As a schedule. False: declined on all ranks alike. `its`: of the trial it belongs to, if any, on a
// communicator between hosts or on one.
bool run_now(const CollectiveCall& call, int& error, Trial* its, bool between_hosts = false) {
    std::unique_ptr<Ongoing> ongoing = offer(call, error);
    if (ongoing == nullptr) return error != MPI_SUCCESS;
    if (its != nullptr) its->set_up_ends(between_hosts);
    ongoing->options().account = its != nullptr ? its->account : nullptr;
    ongoing->run();
    error = ongoing->finish();
    Ongoing::retire(std::move(ongoing));
    if (error != MPI_SUCCESS) call_error_handler(call.comm, error);
    return true;
}

// Of calls between neighbours rows of their own speak, which want them tried; what others say of alltoalls
// counts for them where it is not to be tried.
const Decision& decision_between_neighbours(BlockingState& blocking, const Trial& trial) {
    static const Decision none{std::nullopt, "one host"};
    const std::uint32_t generation = World::get()->generation();
    if (trial.wants_words()) {
        const Decision& own = blocking.decide_neighbours(trial.largest_message_expected(), generation);
        if (own.choice) return own;
    }
    const Decision& others = blocking.decide(Collective::alltoallv, assumed_pair_bytes, generation, false);
    return others.tried ? none : others;
}

// What tuning tables say of calls of a trial between ranks of one host, as far as it is known what they are
// like. Valid until the next call on the communicator.
const Decision& decision_on_one_host(const CollectiveCall& call, Communicator& communicator,
                                     const Trial& trial) {
    if (communicator.blocking == nullptr)
        communicator.blocking = std::make_unique<BlockingState>(communicator);
    if (call.neighbours) return decision_between_neighbours(*communicator.blocking, trial);
    const std::uint64_t bytes = trial.wants_words() ? trial.largest_expected() : pair_bytes(call);
    return communicator.blocking->decide(Collective::alltoallv, bytes, World::get()->generation(), false);
}

// Whether they run as schedules: where a row says so; what one wants tried runs in the memory of the host,
// which is set up for that. Collective.
bool serves_one_host(const CollectiveCall& call, Communicator& communicator, const Trial& trial) {
    const Decision& decision = decision_on_one_host(call, communicator, trial);
    if (!decision.choice || !decision.tried) return decision.choice.has_value();
    return open_lane_in_memory(call.comm, communicator) != nullptr;
}

// Whether a row might say so of calls of other sizes.
bool may_serve_one_host(const CollectiveCall& call, const Communicator& communicator, const Trial& trial) {
    const BlockingState* const blocking = communicator.blocking.get();
    if (!trial.wants_words() || communicator.self_driven.refused || blocking == nullptr) return false;
    return !(call.neighbours ? blocking->leaves_neighbours_native()
                             : blocking->leaves_all_native(Collective::alltoallv));
}

// Whether calls whose size all ranks know are the native library's, asked before anything is set up for them.
// A table that speaks of some networks only is asked when one of them is known. Collective the first time.
bool is_left_native(const CollectiveCall& call, Communicator& communicator, const Trial& trial) {
    if (!communicator.survey_now(call.comm)) return true;
    if (communicator.topology().nodes() < 2)
        return !decision_on_one_host(call, communicator, trial).choice.has_value();
    const Decision foreseen = communicator.foresee(call.collective, call.pieces_of(pair_bytes(call)).bytes);
    return !foreseen.choice.has_value();
}

// Of repeated calls whose trial begins; null without memory.
std::shared_ptr<PlanAccount> open_repeated(const CollectiveCall& call, const Communicator& communicator) try {
    auto account =
        std::make_shared<PlanAccount>(call.kind, last_call.algorithm, communicator.size(), nullptr, 0);
    keep_account(account);
    return account;
} catch (const std::bad_alloc&) {
    return nullptr;
}

}  // namespace

bool may_exchange() {
    const World* const world = World::get();
    if (world == nullptr || !(Attendance::present() || Attendance::serves_memory())) return false;
    const Wanted wanted = world->wanted(Collective::alltoallv);
    return wanted == Wanted::algorithm ||
           (wanted != Wanted::native &&
            (tries_neighbours() || !world->leaves_all_native(Collective::alltoallv, true)));
}

bool is_missed(const CollectiveCall& call) {
    Communicator* const communicator = Communicator::existing(call.comm);
    if (communicator == nullptr) return false;
    if (is_judged(call, *communicator)) return true;
    CallShape shape;
    const int rank = communicator->rank();
    if (call.neighbours)
        look_at_neighbours(call, *communicator, shape);
    else
        look_at(call, rank, communicator->size(), shape);
    const auto goes_far = [rank](const Letter& letter) { return letter.bytes != 0 && letter.peer != rank; };
    const Letters& all = shape.letters;
    return call.has_letters() ? std::any_of(all.outgoing.begin(), all.outgoing.end(), goes_far) ||
                                    std::any_of(all.incoming.begin(), all.incoming.end(), goes_far)
                              : shape.bytes != 0;
}

bool exchange_now(const CollectiveCall& call, int& error, Trial*& trial, UnaskedCalls*& unasked) {
    error = MPI_SUCCESS;
    unasked = Unasked::of(call.comm, call.kind);
    if (unasked != nullptr) {
        note_declined(Reason::native_best, 0);
        return false;
    }
    if (!may_exchange() || call.comm == host()->comm_null) return false;
    const std::uint64_t asked_ns = now_ns();
    World& world = *World::get();
    if (world.wanted(call.collective) == Wanted::algorithm) return run_now(call, error, nullptr);
    // Handed on unseen, as short broadcasts are; between hosts a report counts them.
    const bool alike = call.kind == CallKind::alltoall;
    const bool is_short = alike && pair_bytes(call) < world.alltoall_from();
    if (is_short && (world.single_host() || world.settings().report.view().empty())) {
        note_declined(Reason::native_best, 0);
        return false;
    }
    Communicator* const communicator = Communicator::of(call.comm, world);
    if (communicator == nullptr || !communicator->is_of_world(call.comm)) return false;
    if (is_short) {
        Tally* tally = nullptr;
        count_declined(*communicator, call, Reason::native_best, tally);
        return false;
    }
    if (communicator->self_driven.refused) {
        Tally* tally = nullptr;
        count_declined(*communicator, call, *communicator->self_driven.refused, tally);
        return false;
    }
    if (alike && is_refused(call, *communicator)) {
        note_declined(Reason::invalid, 0);
        return false;
    }
    const bool by_size = call.neighbours && world.single_host() && tries_neighbours();
    Trial& its = communicator->trials.of(call.kind, pair_bytes(call), world.single_host(), by_size);
    // Where it has been set up for other calls there is nothing to be paid for; between neighbours on several
    // hosts, what a call takes says little of what is to be gained.
    const Trial::SetUp set_up = communicator->self_driven.state != nullptr ? Trial::SetUp::nothing
                                : call.neighbours && !by_size              ? Trial::SetUp::at_once
                                : world.single_host()                      ? Trial::SetUp::when_paid
                                                                           : Trial::SetUp::once_paid;
    if (alike && set_up != Trial::SetUp::nothing && its.is_first_next() &&
        is_left_native(call, *communicator, its)) {
        count_declined(*communicator, call, Reason::native_best, its.declined);
        // What is known of the network by then may let a table speak.
        its.look_again(call.comm, call.kind);
        return false;
    }
    // Others whose messages differ are looked at where ranks meet in them, or where they would be ours. What
    // the library refuses of its own it says itself (is_missed).
    if (!alike && its.meets_next() && is_refused(call, *communicator)) {
        note_declined(Reason::invalid, 0);
        return false;
    }
    const Turn turn = its.next(call.comm, *communicator, set_up);
    if (turn == Turn::tried_native || turn == Turn::tried_schedule ||
        (turn == Turn::native_timed && its.wants_words()))
        note_sent(call, *communicator, its);
    if (runs_natively(turn)) {
        count_declined(*communicator, call, Reason::native_best, its.declined);
        if (turn == Turn::native) its.leave_native(call.comm, call.kind);
        trial = &its;
        return false;
    }
    // Looked at before anything else is set up; all ranks are at the same turn.
    if (turn == Turn::first_schedule) {
        its.learn_sizes(call.comm);
        if (!communicator->survey_now(call.comm) ||
            (communicator->topology().nodes() < 2 && !serves_one_host(call, *communicator, its))) {
            count_declined(*communicator, call, Reason::native_best, its.declined);
            if (may_serve_one_host(call, *communicator, its))
                its.look_again(call.comm, call.kind);
            else
                its.give_up(call.comm, call.kind);
            return false;
        }
    }
    its.begin(asked_ns);
    CollectiveCall expected = call;
    const Traits traits = its.expected() != nullptr ? *its.expected() : Traits{};
    if (its.expected() != nullptr) expected.expected = &traits;
    bool is_left = false;  // to the library, by what tables say of what the calls have become like
    if ((!call.neighbours || by_size) && lane_in_memory(*communicator) != nullptr) {
        const Decision& decision = decision_on_one_host(call, *communicator, its);
        if (decision.choice && (decision.tried || !call.neighbours))
            expected.tried = &decision;
        else
            is_left = may_serve_one_host(call, *communicator, its);
    }
    const bool between_hosts = communicator->topology().nodes() > 1;
    if (!run_now(expected, error, &its, between_hosts)) {
        // The others run it.
        if (turn != Turn::first_schedule && is_refused(call, *communicator)) {
            its.take_back();
            return false;
        }
        if (is_left) {
            its.look_again(call.comm, call.kind);
            return false;
        }
        // Not where there was nothing to do but to decline.
        if (communicator->self_driven.state != nullptr || communicator->self_driven.refused)
            its.set_up_was_in_vain(between_hosts);
        its.give_up(call.comm, call.kind);
        return false;
    }
    if (turn == Turn::first_schedule && error == MPI_SUCCESS && its.account == nullptr)
        its.account = open_repeated(call, *communicator);
    // Where it failed, the error handler may have freed the communicator, and the trial with it.
    if (error == MPI_SUCCESS && turn == Turn::tried_schedule) its.end();
    return true;
}

std::shared_ptr<NativeTimes> native_times_of(Communicator& communicator, const CollectiveCall& call) try {
    if (call.collective != Collective::alltoallv || call.neighbours) return nullptr;
    const CallKind blocking = !call.received.given()                  ? CallKind::alltoall
                              : call.kind == CallKind::alltoallw_init ? CallKind::alltoallw
                                                                      : CallKind::alltoallv;
    return communicator.trials.of(blocking, pair_bytes(call), World::get()->single_host()).native();
} catch (const std::bad_alloc&) {
    return nullptr;
}

std::shared_ptr<PlanAccount> open_account(NonblockingState* state, Communicator& communicator,
                                          const CollectiveCall& call, const std::string& algorithm,
                                          std::uint64_t bytes, std::uint64_t total, std::uint64_t began_ns) {
    const std::shared_ptr<NativeTimes> native = native_times_of(communicator, call);
    Picoseconds predicted = 0;
    if (native != nullptr && state != nullptr) predicted = state->predicted_native(bytes);
    // Alltoalls of other sizes have another trial.
    auto account = std::make_shared<PlanAccount>(call.kind, algorithm, communicator.size(), native, predicted,
                                                 call.received.given() ? total : NativeTimes::any_size);
    account->set_init(now_ns() - began_ns);
    keep_account(account);
    return account;
}

}  // namespace thalweg
