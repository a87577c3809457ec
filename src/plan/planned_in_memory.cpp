#include "plan/planned_in_memory.h"

#include <cstdint>
#include <utility>

#include "plan/attendance.h"
#include "plan/bypass.h"
#include "plan/nonblocking.h"
#include "select/select.h"
#include "transport/mpi/host.h"

namespace thalweg {

namespace {

// As found in MPI_Init: a table speaks of plans between neighbours, of calls between them that are tried.
bool plans_neighbours = false, calls_neighbours = false;

// Whether there is a lane in the memory of the host, or one may be asked for. Equal on all ranks.
bool may_have_memory(const Communicator::SelfDriven& self_driven) {
    if (!Attendance::serves_memory() || self_driven.refused || self_driven.memory_refused) return false;
    return self_driven.state == nullptr || self_driven.state->carrier() == Carrier::shm;
}

bool speaks_of_neighbours(const World& world, bool persistent) {
    if (!world.single_host()) return false;
    Selection selection;
    selection.family = host_family();
    selection.library = host()->library_version;
    selection.sleeps = world.sleeps();
    selection.table = world.table();
    selection.persistent = persistent;
    selection.neighbours = true;
    const auto ranks = static_cast<std::uint64_t>(world.size());
    return smallest_on_one_host(Collective::alltoallv, selection, ranks) != Bypass::all;
}

}  // namespace

// Where it cannot be, that says nothing of what others ask for.
std::shared_ptr<Lane> open_lane_in_memory(MPI_Comm comm, Communicator& communicator) {
    Communicator::SelfDriven& self_driven = communicator.self_driven;
    if (!may_have_memory(self_driven)) return nullptr;
    if (self_driven.state == nullptr) {
        release_detached();
        Reason why = Reason::setup_failed;
        auto state = NonblockingState::set_up(comm, communicator, *World::get(), {false, true}, why);
        if (state == nullptr || state->carrier() != Carrier::shm) {
            self_driven.memory_refused = true;
            return nullptr;
        }
        want_no_meeting(self_driven);
        self_driven.state = std::move(state);
    }
    return lane_in_memory(communicator);
}

std::shared_ptr<Lane> lane_in_memory(const Communicator& communicator) {
    const NonblockingState* const state = communicator.self_driven.state.get();
    return state != nullptr && state->carrier() == Carrier::shm ? state->lane() : nullptr;
}

bool look_for_planned_rows(const World& world) {
    plans_neighbours = speaks_of_neighbours(world, true);
    return plans_neighbours || world.plans_in_memory(Collective::alltoallv);
}

void look_for_tried_rows(const World& world) { calls_neighbours = speaks_of_neighbours(world, false); }
bool tries_neighbours() { return calls_neighbours; }

bool may_be_planned_in_memory(const CollectiveCall& call) {
    if (!call.persistent || !Attendance::serves_plans_in_memory()) return false;
    const World& world = *World::get();
    return world.wanted(call.collective) == Wanted::automatic && world.windows_wanted().empty() &&
           (call.neighbours ? plans_neighbours : world.plans_in_memory(call.collective));
}

// What they exchange is agreed on before anything is set up, which costs as much as a hundred exchanges gain;
// of an MPI_Alltoall_init all ranks know it.
bool plan_in_memory(const CollectiveCall& call, const CallShape& shape, Communicator& communicator,
                    Forethought& forethought) {
    if (!communicator.survey_now(call.comm) || !may_have_memory(communicator.self_driven)) return false;
    const auto selector = communicator.selector_for_plans(call.collective, call.neighbours);
    // Of as many ranks no row speaks.
    if (selector->native_below() == Bypass::all) return false;
    Traits traits;
    if (call.has_letters())
        traits = agree_on_traits(call.comm, shape.letters, communicator.rank(), communicator.size(),
                                 communicator.topology());
    else
        traits.mean_bytes = call.pieces_of(shape.decided_bytes).bytes;
    Decision decision = selector->decide(call.neighbours ? traits.mean_message_bytes : traits.mean_bytes);
    if (!decision.choice || open_lane_in_memory(call.comm, communicator) == nullptr) return false;
    forethought.known = traits;
    forethought.decision = std::move(decision);
    return true;
}

}  // namespace thalweg
