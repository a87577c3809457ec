// Letting go of what communicators were set up with for nonblocking and persistent operations.
#include <memory>
#include <mutex>
#include <vector>

#include "plan/native_plan.h"
#include "plan/nonblocking.h"
#include "plan/requests.h"
#include "plan/set_up.h"
#include "plan/window_plan.h"
#include "transport/mpi/host.h"

namespace thalweg {

namespace {

constinit std::mutex detached_mutex;
std::vector<std::shared_ptr<NonblockingState>>& detached() {
    static auto* const list = new std::vector<std::shared_ptr<NonblockingState>>;
    return *list;
}

}  // namespace

void NonblockingState::drop_idle() {
    for (const std::shared_ptr<Lane>& lane : {lane_, exchange_lane_})
        if (lane != nullptr) lane->drop_idle();
}

bool close_lanes() {
    release_detached();
    const bool no_plans = release_requests();
    return NonblockingState::close_all() && no_plans;
}

void detach(MPI_Comm comm, Communicator& communicator) {
    Communicator::SelfDriven& self_driven = communicator.self_driven;
    want_no_meeting(self_driven);
    self_driven.state.reset();
    if (self_driven.windows != nullptr && !self_driven.windows->close())
        LeftBehind<WindowGround>::leave(self_driven.windows);
    self_driven.windows.reset();
    if (self_driven.native_plans != nullptr &&
        !self_driven.native_plans->close(comm, communicator.rank() == 0, *World::get()))
        LeftBehind<NativeGround>::leave(self_driven.native_plans);
    self_driven.native_plans.reset();
}

void detach_later(Communicator::SelfDriven& dead) noexcept {
    want_no_meeting(dead);
    if (dead.state == nullptr) return;
    const std::lock_guard lock(detached_mutex);
    detached().push_back(std::move(dead.state));
}

void release_detached() {
    std::vector<std::shared_ptr<NonblockingState>> dead;
    {
        const std::lock_guard lock(detached_mutex);
        dead.swap(detached());
    }
}

}  // namespace thalweg
