#include "plan/own_agent.h"

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <new>
#include <vector>

#include "base/log.h"
#include "engine/agent.h"
#include "plan/place.h"
#include "topology/placement.h"

namespace thalweg {

namespace {

constinit std::mutex mutex;
constinit std::atomic<Agent*> the_agent{nullptr};
AgentPlacement placement;

AgentOptions place_of(AgentSetting wanted, const World& world) {
    std::vector<HardwareThread> threads;
    AgentOptions options;
    Surroundings surroundings;
    if (own_hardware_threads(threads, kernels_cpus, mask_in_init()) == Status::ok)
        surroundings.threads = threads;
    surroundings.computing_threads = computing_threads(environ);
    surroundings.shared = world.shares_cores();
    placement = place_agent(wanted, surroundings);
    if (wanted == AgentSetting::sibling || wanted == AgentSetting::core) {
        if (placement.place == AgentPlace::anywhere)
            THALWEG_LOG_AT(info, "the agent sleeps where the rank runs: %s", placement.why);
    }
    options.hardware_thread = placement.hardware_thread;
    options.mask = mask_in_init();
    options.manner = placement.place == AgentPlace::core      ? AgentManner::spin
                     : placement.place == AgentPlace::sibling ? AgentManner::watch
                                                              : AgentManner::sleep;
    options.posts = world.threads_per_rank() > static_cast<std::uint32_t>(surroundings.computing_threads);
    return options;
}

// Registered when there is an agent, so that it runs before the handlers of what was loaded earlier: MPI's.
void stop_at_exit() {
    constexpr std::uint64_t longest_ns = 2'000'000'000;
    if (Agent* const agent = the_agent.load(std::memory_order_acquire)) agent->stop_within(longest_ns);
}

}  // namespace

bool OwnAgent::make(const World& world, bool beside_program) try {
    const std::lock_guard lock(mutex);
    Agent* agent = the_agent.load(std::memory_order_relaxed);
    if (agent == nullptr) {
        agent = new Agent(place_of(world.settings().agent, world));
        the_agent.store(agent, std::memory_order_release);
        std::atexit(stop_at_exit);
    }
    if (beside_program) agent->give_room_to_program();
    return agent->start() == Status::ok;
} catch (const std::bad_alloc&) {
    return false;
}

Agent* OwnAgent::made() { return the_agent.load(std::memory_order_acquire); }

bool OwnAgent::tell(std::string& place, std::string& why_there) {
    const std::lock_guard lock(mutex);
    if (the_agent.load(std::memory_order_relaxed) == nullptr) return false;
    place = name_of(placement.place);
    why_there = placement.why;
    return true;
}

}  // namespace thalweg
