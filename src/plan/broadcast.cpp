#include "plan/broadcast.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "plan/blocking.h"
#include "plan/communicator.h"
#include "plan/failure.h"
#include "plan/freeing.h"
#include "plan/last_call.h"
#include "plan/nonblocking.h"
#include "plan/payload.h"
#include "plan/planned_in_memory.h"
#include "plan/reserve.h"
#include "plan/unasked.h"
#include "select/pieces.h"
#include "transport/mpi/error_handler.h"
#include "transport/mpi/host.h"
#include "transport/mpi/mpi_transport.h"

namespace thalweg {

namespace {

// Runs one piece on `data`, packed bytes in host memory.
Status run(Communicator& state, Plan& plan, void* data) {
    const std::uint64_t began = now_ns();
    Bindings bindings;
    bindings.out = data;
    Status status = plan.execution->start(bindings, state.next_operation());
    if (!failed(status)) status = wait(*plan.execution, state.policy(), plan.tally->waited);
    plan.tally->elapsed_ns += now_ns() - began;
    return status;
}

// Runs one piece from and to where this rank's data is.
Status move_piece(Communicator& state, Plan& plan, Payload& payload, std::uint64_t begin, std::uint64_t end) {
    if (payload.direct() != nullptr) return run(state, plan, payload.direct() + begin);
    std::byte* const staged = state.memory().staging.piece(end - begin);
    Status status = Status::ok;
    if (plan.root == state.rank()) status = payload.load(staged, begin, end);
    if (!failed(status)) status = run(state, plan, staged);
    if (!failed(status) && plan.root != state.rank()) status = payload.store(staged, begin, end);
    return status;
}

using Turn = TrialTurns::Turn;

// What the next broadcast of this trial does. Collective.
Turn turn_of(Trial& trial, const Communicator& state, MPI_Comm comm, std::uint64_t bytes, bool in_memory) {
    const bool is_set_up =
        state.phase() == Communicator::Phase::ready || (in_memory && lane_in_memory(state) != nullptr);
    const Turn turn = trial.next(comm, state,
                                 is_set_up   ? Trial::SetUp::nothing
                                 : in_memory ? Trial::SetUp::in_memory_when_paid
                                             : Trial::SetUp::when_paid);
    if (turn == Turn::tried_native || turn == Turn::tried_schedule) trial.set_sent(bytes, {});
    return turn;
}

// Through the memory of the host. As run_on_lane().
bool run_in_memory(Communicator& state, const CollectiveCall& call, std::uint64_t bytes,
                   std::uint64_t decided_bytes, const std::shared_ptr<Lane>& lane, std::uint32_t generation,
                   int& error) {
    if (lane->broken()) {
        error = tell_failure("a broadcast", Status::transport_failed, lane->native_error());
        return true;
    }
    CallShape shape;
    shape.bytes = shape.total = shape.decided_bytes = bytes;
    return run_on_lane(
        state, call, shape,
        {lane, state.topology(), state.tried_decision(decided_bytes), state.policy(), generation}, error);
}

// As broadcast(), but for the error handler.
bool carry_out(World& world, void* buffer, std::uint64_t bytes, std::uint64_t count, MPI_Datatype type,
               int root, MPI_Comm comm, int& error, Trial*& trial, UnaskedCalls*& unasked) {
    const Host& mpi = *host();
    const auto left_to_native = [bytes](Reason reason) {
        note_declined(reason, bytes);
        return false;
    };
    unasked = nullptr;
    // Wrong arguments are the native library's to report, and are wrong before anything is counted.
    if (comm == mpi.comm_null || buffer == MPI_IN_PLACE) return left_to_native(Reason::invalid);
    Payload payload(buffer, count, type, comm);
    if (payload.refused_by_native()) return left_to_native(Reason::invalid);
    unasked = Unasked::of_broadcast(comm, bytes, root);
    if (unasked != nullptr) return left_to_native(Reason::native_best);
    Communicator* const state = Communicator::of(comm, world);
    if (state == nullptr) return left_to_native(being_freed(comm) ? Reason::freeing : Reason::invalid);
    const auto count_declined = [&](Reason reason) -> Tally& {
        Tally& tally = state->record().declined(reason, size_class(bytes));
        ++tally.calls;
        tally.bytes += bytes;
        return tally;
    };
    const auto decline = [&](Reason reason) {
        count_declined(reason);
        return left_to_native(reason);
    };
    if (state->reason() == Reason::intercommunicator) return decline(Reason::intercommunicator);
    if (root < 0 || root >= state->size()) return decline(Reason::invalid);
    if (bytes == 0) return decline(Reason::empty);
    if (state->broken) {
        error = tell_failure("a broadcast", Status::transport_failed, state->native_error());
        return true;
    }

    const std::uint64_t asked_ns = now_ns();
    const Pieces pieces = pieces_of(bytes);
    Reason why = Reason::small;
    std::optional<KeptMemory::InUse> in_use(std::in_place, state->memory());
    if (state->prepare(comm, pieces.bytes, why) == Communicator::Outcome::decline) return decline(why);
    Trial* const its = state->broadcast_trial(bytes, pieces.bytes);
    Turn turn = Turn::schedule;
    if (its != nullptr) {
        const bool in_memory = !state->tried_decision(pieces.bytes).over_library;
        turn = turn_of(*its, *state, comm, bytes, in_memory);
        its->set_root(root == state->rank());
        if (runs_natively(turn)) {
            its->declined = &count_declined(Reason::native_best);
            if (turn != Turn::native)
                trial = its;
            else
                its->leave_native(comm, bytes, state->size());
            return left_to_native(Reason::native_best);
        }
        its->begin(asked_ns);
        const std::shared_ptr<Lane> lane = !in_memory                     ? nullptr
                                           : turn == Turn::first_schedule ? open_lane_in_memory(comm, *state)
                                                                          : lane_in_memory(*state);
        if (lane == nullptr && state->tried_decision(pieces.bytes).only_in_memory) {
            its->give_up();
            return decline(Reason::native_best);
        }
        if (lane != nullptr) {
            in_use.reset();
            its->set_up_ends();
            CollectiveCall call;
            call.kind = CallKind::bcast;
            call.blocking = true;
            call.receive = buffer;
            call.receive_count = static_cast<MPI_Count>(count);
            call.receive_type = type;
            call.root = root;
            call.comm = comm;
            if (!run_in_memory(*state, call, bytes, pieces.bytes, lane, world.generation(), error))
                return decline(Reason::invalid);
            if (turn == Turn::tried_schedule && error == MPI_SUCCESS) its->end();
            return true;
        }
    }
    Plan* plan = nullptr;
    Status status = state->plan(comm, pieces.bytes, root, pieces.bytes, plan);
    if (!failed(status) && plan->execution == nullptr) {
        if (its != nullptr) its->give_up();
        return decline(plan->native_reason);
    }
    if (its != nullptr) its->set_up_ends();
    if (!failed(status)) status = payload.prepare(state->memory().staging);
    if (!failed(status)) {
        note_accelerated(plan->algorithm, plan->reason, bytes, state->mpi_transport()->capabilities(),
                         state->policy());
        ++plan->tally->calls;
        plan->tally->bytes += bytes;
        plan->tally->staged_calls += payload.direct() == nullptr;
    }
    for (std::uint64_t begin = 0; !failed(status) && begin < bytes; begin += pieces.bytes) {
        const std::uint64_t end = std::min(begin + pieces.bytes, bytes);
        if (end - begin != plan->bytes) status = state->plan(comm, end - begin, root, pieces.bytes, plan);
        if (!failed(status)) status = move_piece(*state, *plan, payload, begin, end);
    }
    if (failed(status)) {
        if (plan != nullptr) ++plan->tally->errors;
        state->broken = true;
        Unasked::settle_broadcasts(comm);
        error = tell_failure("a broadcast", status, state->native_error());
        return true;
    }
    if (turn == Turn::tried_schedule) its->end();
    if (__builtin_expect(reserve_in_use() != 0, 0)) state->relieve_reserve();
    error = MPI_SUCCESS;
    return true;
}

}  // namespace

bool broadcast(World& world, void* buffer, std::uint64_t bytes, std::uint64_t count, MPI_Datatype type,
               int root, MPI_Comm comm, int& error, Trial*& trial, UnaskedCalls*& unasked) {
    const bool done = carry_out(world, buffer, bytes, count, type, root, comm, error, trial, unasked);
    // The handler may free the communicator, and the trial with it, or never return.
    if (done && error != MPI_SUCCESS) call_error_handler(comm, error);
    return done;
}

}  // namespace thalweg
