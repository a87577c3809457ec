// Numbers of lanes over the native MPI, which all ranks of a communicator have free.
#include <new>

#include "plan/channel_pool.h"
#include "plan/lane.h"
#include "plan/set_up.h"
#include "plan/world.h"
#include "transport/mpi/host.h"

namespace thalweg {
namespace {

// Two threads of a process may pick the same number for two communicators.
constexpr int picks = 4;

}  // namespace

std::shared_ptr<LaneNumber> claim_number(MPI_Comm comm, World& world, bool leads, bool ready, Reason& why,
                                         bool beyond_cap) {
    const Host& mpi = *host();
    ChannelPool& pool = world.pool();
    why = Reason::setup_failed;
    for (int pick = 0; pick < picks; ++pick) {
        const bool full = !beyond_cap && world.channels.load() >= world.settings().max_communicators;
        // [trouble, the cap is reached, numbers in use, rank 0's seed]
        std::uint64_t any[4] = {!ready, full, pool.in_use(), leads ? pool.next_seed(world.rank()) : 0};
        agree_on(comm, mpi.bor, any);
        if (any[0] != 0) return nullptr;
        const int number = any[1] != 0 ? -1 : ChannelPool::pick(any[2], any[3]);
        why = Reason::too_many;
        if (number < 0) return nullptr;
        std::shared_ptr<LaneNumber> claimed;
        bool lost = !pool.claim(number);
        if (!lost) try {
                claimed = std::make_shared<LaneNumber>(world, number);
            } catch (const std::bad_alloc&) {
                pool.give_back(number);
                lost = true;
            }
        std::uint64_t lost_anywhere[1] = {lost};
        why = Reason::setup_failed;
        agree_on(comm, mpi.max, lost_anywhere);
        if (lost_anywhere[0] == 0) return claimed;
    }
    why = Reason::too_many;
    return nullptr;
}

}  // namespace thalweg
