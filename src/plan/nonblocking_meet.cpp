// Where the ranks of a communicator meet: to set it up, and to tell one another what they have noted.
#include <atomic>
#include <cstdint>
#include <utility>

#include "plan/attendance.h"
#include "plan/bypass.h"
#include "plan/nonblocking.h"
#include "plan/quiet_errors.h"
#include "plan/set_up.h"
#include "plan/unasked.h"
#include "transport/mpi/host.h"

namespace thalweg {

namespace {

// Any blocking call may be where somebody is met.
constexpr Bypass::Side met_in[] = {Bypass::collectives, Bypass::exchanges, Bypass::meetings};

}  // namespace

bool is_judged(const CollectiveCall& call, Communicator& communicator) {
    CallShape shape;
    if (call.neighbours) return !look_at_neighbours(call, communicator, shape);
    return look_at(call, communicator.rank(), communicator.size(), shape) == Reason::invalid;
}

constinit std::atomic<int> meetings_wanted{0};

void want_meeting(Communicator::SelfDriven& self_driven) {
    if (self_driven.wanted) return;
    self_driven.wanted = true;
    meetings_wanted.fetch_add(1);
    for (const Bypass::Side side : met_in) Bypass::hold(side);
    Unasked::ask_again();
}

void want_no_meeting(Communicator::SelfDriven& self_driven) noexcept {
    if (!self_driven.wanted) return;
    self_driven.wanted = false;
    meetings_wanted.fetch_sub(1, std::memory_order_relaxed);
    for (const Bypass::Side side : met_in) Bypass::let_go(side);
}

void set_up(MPI_Comm comm, Communicator& communicator, NonblockingState::Purpose purpose) {
    Communicator::SelfDriven& self_driven = communicator.self_driven;
    if (self_driven.state != nullptr || self_driven.refused) return;
    want_no_meeting(self_driven);
    release_detached();
    Reason why = Reason::setup_failed;
    self_driven.state = NonblockingState::set_up(comm, communicator, *World::get(), purpose, why);
    if (self_driven.state != nullptr) return;
    if (why == Reason::native_best)
        self_driven.left_on_one_host = true;
    else
        self_driven.refused = why;
}

void meet(MPI_Comm comm, const CollectiveCall* call) {
    if (!Attendance::present() || comm == host()->comm_null) return;
    Communicator* const communicator = Communicator::known(comm);
    if (communicator == nullptr || !communicator->self_driven.wanted) return;
    if (call != nullptr && is_judged(*call, *communicator)) return;
    Communicator::SelfDriven& self_driven = communicator->self_driven;
    want_no_meeting(self_driven);
    if (self_driven.state == nullptr)
        set_up(comm, *communicator, {false, false, !self_driven.serves_one_host});
    else if (std::exchange(self_driven.tells_largest, false))
        self_driven.state->agree_on_neighbour_bytes(comm, self_driven.sizes.take());
    if (self_driven.state != nullptr && std::exchange(self_driven.tells_traits, false))
        self_driven.state->agree_on_exchange_traits(comm, self_driven.exchange_sizes.take());
    if (self_driven.state != nullptr && self_driven.tells_edges && self_driven.state->neighbours().bundles())
        self_driven.state->agree_on_edges(comm);
}

// Ranks that have the communicator would wait for one that has not. Nobody can be asked where only the
// members of a group make it, and not all by one reduction where `parent` has two groups.
bool made_everywhere(MPI_Comm parent, bool made) {
    const World* const world = World::get();
    const Host& mpi = *host();
    int inter = 0;
    bool all = true;
    if (world == nullptr || parent == mpi.comm_null) return made;
    const QuietErrors quiet(parent);
    if (mpi.Comm_test_inter(parent, &inter) != MPI_SUCCESS || inter != 0) return made;
    // Where that fails it is on this rank alone, and the others wait for its word.
    (void)world->locate(parent, all);
    if (!all) return made;
    std::uint64_t missing[1] = {!made};
    agree_on(parent, mpi.max, missing);
    return missing[0] == 0;
}

void set_up_early(MPI_Comm comm) {
    World* const world = World::get();
    if (world == nullptr || !Attendance::present() || comm == host()->comm_null) return;
    Communicator* const communicator = Communicator::of(comm, *world);
    if (communicator == nullptr || communicator->phase() == Communicator::Phase::native) return;
    set_up(comm, *communicator);
}

}  // namespace thalweg
