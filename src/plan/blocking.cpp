#include "plan/blocking.h"

#include <optional>
#include <utility>
#include <vector>

#include "algorithms/most_steps.h"
#include "base/clock.h"
#include "engine/channel.h"
#include "plan/datatype.h"
#include "plan/declining.h"
#include "plan/failure.h"
#include "plan/freeing.h"
#include "plan/nonblocking.h"
#include "plan/reserve.h"
#include "plan/unasked.h"
#include "transport/mpi/error_handler.h"
#include "transport/mpi/host.h"

namespace thalweg {

namespace {

const char* what(CallKind kind) {
    switch (kind) {
        case CallKind::allgather:
            return "an allgather";
        case CallKind::allgatherv:
            return "an allgatherv";
        case CallKind::bcast:
            return "a broadcast";
        default:
            return "an allreduce";
    }
}

const NonblockingState* attended(const Communicator& communicator) {
    return communicator.self_driven.state.get();
}

// Why the chosen algorithm cannot serve the call, as all ranks see it: by the lengths of blocks, not their
// places, and by a bound on steps, because whether the reserve suffices must not depend on who needs it.
bool cannot(const Communicator& communicator, const CallShape& shape, const Choice& choice) {
    Problem problem;
    problem.size = communicator.size();
    problem.bytes = shape.bytes;
    problem.element_bytes = shape.reducer.element_bytes;
    std::vector<Block> blocks;
    if (!shape.segments.empty()) {
        std::uint64_t at = 0;
        blocks.reserve(shape.segments.size());
        for (const Segment& segment : shape.segments) {
            const std::uint64_t bytes = segment.count * shape.element_size;
            blocks.push_back({at, bytes});
            at += bytes;
        }
        problem.blocks = blocks;
    }
    const Topology& topology = communicator.topology();
    return !refuse(choice, problem, topology).empty() ||
           most_steps(choice, problem, topology) > most_plan_steps;
}

using TrialTurn = TrialTurns::Turn;

// Of calls like this one, where only the cost model speaks for their schedule; null: the decision stands.
// Whoever carries out an operation whose bits depend on the order of operands does so in every call.
Trial* trial_of(Communicator& communicator, const CollectiveCall& call, const CallShape& shape,
                const Decision& decision) {
    if (!decision.tried || shape.reducer.rounds) return nullptr;
    return &communicator.trials.of_collectives(call.kind, shape.bytes);
}

// What the next call of it does. Collective.
TrialTurn turn_of(Trial& trial, const Communicator& communicator, MPI_Comm comm, std::uint64_t bytes) {
    const bool is_set_up =
        attended(communicator) != nullptr || communicator.phase() == Communicator::Phase::ready;
    const TrialTurn turn =
        trial.next(comm, communicator, is_set_up ? Trial::SetUp::nothing : Trial::SetUp::when_paid);
    if (turn == TrialTurn::tried_native || turn == TrialTurn::tried_schedule) trial.set_sent(bytes, {});
    return turn;
}

}  // namespace

BlockingState::Inputs BlockingState::inputs(std::uint32_t generation) const {
    const NonblockingState* const attended_by = attended(communicator_);
    return {generation, attended_by != nullptr ? attended_by->network() : communicator_.network(),
            policy() == WaitPolicy::sleep, attended_by != nullptr ? attended_by->ports() : 1};
}

WaitPolicy BlockingState::policy() const {
    const NonblockingState* const attended_by = attended(communicator_);
    return attended_by != nullptr ? attended_by->policy() : communicator_.policy();
}

void BlockingState::renew(std::uint32_t generation) {
    const Inputs now = inputs(generation);
    if (now == decided_from_) return;
    decided_ = {};
    stable_.reset();
    neighbours_.reset();
    decided_from_ = now;
}

const Decision& BlockingState::decide_neighbours(std::uint64_t bytes, std::uint32_t generation) {
    renew(generation);
    if (!neighbours_) neighbours_.emplace(communicator_.selector_for_neighbours(decided_from_.sleeps));
    return neighbours_->of(bytes);
}

const Decision& BlockingState::decide(Collective collective, std::uint64_t bytes, std::uint32_t generation,
                                      bool stable) {
    renew(generation);
    std::optional<Decisions>& decided = stable ? stable_ : decided_[static_cast<std::size_t>(collective)];
    const Inputs from = stable ? Inputs{generation, Network{}, false, 1} : decided_from_;
    if (!decided)
        decided.emplace(communicator_.selector_for(collective, from.network, from.sleeps, from.ports));
    return decided->of(bytes);
}

// Of blocks that differ by all of them.
bool BlockingState::serves(const CallShape& shape, const Choice& choice) {
    const auto ask = [&] { return !cannot(communicator_, shape, choice); };
    if (!shape.segments.empty()) return ask();
    return servable_.by(choice, shape.bytes, shape.reducer.element_bytes, ask);
}

bool BlockingState::shares_numbers() const { return attended(communicator_) == nullptr; }

std::shared_ptr<Lane> BlockingState::lane(MPI_Comm comm) {
    if (const NonblockingState* const attended_by = attended(communicator_)) return attended_by->lane();
    if (!communicator_.open_now(comm)) return nullptr;
    if (own_lane_ == nullptr)
        own_lane_ =
            std::make_shared<Lane>(*World::get(), communicator_.channel(), communicator_.mpi_transport());
    return own_lane_;
}

void BlockingState::drop_idle() {
    if (own_lane_ != nullptr) own_lane_->drop_idle();
}

namespace {

// As run_blocking(), but for the error handler.
bool carry_out(World& world, const CollectiveCall& call, int& error, Trial*& trial) {
    const Declining decline(call.kind);
    if (call.comm == host()->comm_null) return decline.anywhere(Reason::invalid), false;
    Communicator* const found = Communicator::of(call.comm, world);
    if (found == nullptr)
        return decline.anywhere(being_freed(call.comm) ? Reason::freeing : Reason::invalid), false;
    Communicator& communicator = *found;
    const auto left_to_native = [&](Reason reason, std::uint64_t bytes) {
        decline.on(communicator, reason, bytes);
        return false;
    };
    if (communicator.phase() == Communicator::Phase::native) return left_to_native(communicator.reason(), 0);
    const std::uint64_t asked_ns = now_ns();
    CallShape shape;
    if (const auto why = look_at(call, communicator.rank(), communicator.size(), shape))
        return left_to_native(*why, shape.bytes);
    const Wanted wanted = world.wanted(call.collective);
    if (wanted == Wanted::native) return left_to_native(Reason::native_setting, shape.bytes);
    if (shape.bytes < gate_of(call.collective).bytes) return left_to_native(Reason::native_best, shape.bytes);
    if (communicator.broken) {
        error = tell_failure(what(call.kind), Status::transport_failed, communicator.native_error());
        return true;
    }
    const Settings& settings = world.settings();
    const bool asked_for = wanted == Wanted::algorithm;
    const bool stable = stays_stable(settings, shape, wanted);
    if (shape.reducer.rounds && !asked_for &&
        (settings.float_order == FloatOrder::native ||
         (stable && shape.total < worth_bytes && settings.setup != SetupSetting::early)))
        return left_to_native(Reason::order, shape.bytes);
    Reason why = Reason::not_worth_yet;
    if (!communicator.gains(call.comm, shape.total, asked_for || stable, why))
        return left_to_native(why, shape.bytes);

    if (communicator.blocking == nullptr)
        communicator.blocking = std::make_unique<BlockingState>(communicator);
    BlockingState& state = *communicator.blocking;
    const std::uint32_t generation = world.generation();
    const Decision* decision = &state.decide(call.collective, shape.bytes, generation, stable);
    const auto declines = [&]() -> std::optional<Reason> {
        if (!decision->choice) return reason_of(*decision);
        if (!state.serves(shape, *decision->choice)) return Reason::cannot;
        return std::nullopt;
    };
    if (const auto reason = declines()) return left_to_native(*reason, shape.bytes);
    Trial* const its = trial_of(communicator, call, shape, *decision);
    TrialTurn turn = TrialTurn::schedule;
    if (its != nullptr) {
        turn = turn_of(*its, communicator, call.comm, shape.bytes);
        if (runs_natively(turn)) {
            if (turn != TrialTurn::native) trial = its;
            return left_to_native(Reason::native_best, shape.bytes);
        }
        its->begin(asked_ns);
    }
    // Making the channel touches what broadcasts keep, which another thread may be trimming.
    std::optional<KeptMemory::InUse> in_use(std::in_place, communicator.memory());
    std::shared_ptr<Lane> lane = state.lane(call.comm);
    in_use.reset();
    if (its != nullptr) its->set_up_ends();
    if (lane == nullptr) {
        if (its != nullptr) its->give_up();
        return left_to_native(communicator.reason(), shape.bytes);
    }
    // Again, because making the channel may have taught what the network is.
    decision = &state.decide(call.collective, shape.bytes, generation, stable);
    if (const auto reason = declines()) return left_to_native(*reason, shape.bytes);
    if (lane->broken()) {
        error = tell_failure(what(call.kind), Status::transport_failed, lane->native_error());
        return true;
    }

    Carriage carriage{lane, communicator.topology(), *decision, state.policy(), generation};
    if (state.shares_numbers()) carriage.numbers.push_back(communicator.next_operation());
    if (!run_on_lane(communicator, call, shape, std::move(carriage), error))
        return left_to_native(Reason::invalid, shape.bytes);
    if (turn == TrialTurn::tried_schedule && error == MPI_SUCCESS) its->end();
    return true;
}

}  // namespace

bool run_blocking(World& world, const CollectiveCall& call, int& error, Trial*& trial) {
    const bool done = carry_out(world, call, error, trial);
    // The handler may free the communicator or never return: nothing of ours is touched afterwards.
    if (done && error != MPI_SUCCESS) call_error_handler(call.comm, error);
    return done;
}

bool run_on_lane(Communicator& communicator, const CollectiveCall& call, const CallShape& shape,
                 Carriage carriage, int& error) {
    std::shared_ptr<Lane> lane = carriage.lane;
    const Decision& decision = carriage.decision;
    const WaitPolicy policy = carriage.policy;
    const bool shares_channel = !carriage.numbers.empty();
    // Nothing more can run on it; nor on the channel, where that is the communicator's.
    const auto fail = [&] {
        lane->fail();
        if (!shares_channel) return;
        communicator.broken = true;
        Unasked::settle_broadcasts(call.comm);
    };
    Bound bound;
    std::unique_ptr<Ongoing> ongoing = assemble(communicator, call, shape, std::move(carriage), bound);
    // Wrong on this rank, and so for MPI on all of them.
    if (bound.status == Status::invalid_argument) return false;
    if (ongoing == nullptr) {
        fail();
        error = tell_failure(what(call.kind), bound.status, MPI_SUCCESS);
        return true;
    }
    note_accelerated(to_text(*decision.choice), decision.reason, shape.bytes,
                     lane->driven().channel()->transport().capabilities(), policy);
    ongoing->run();
    error = ongoing->finish();
    if (__builtin_expect(reserve_in_use() != 0, 0)) {
        const KeptMemory::InUse held(communicator.memory());
        communicator.relieve_reserve();
    }
    if (error != MPI_SUCCESS) fail();
    return true;
}

}  // namespace thalweg
