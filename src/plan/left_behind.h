// What plans have of a communicator that the program frees before them: a communicator of ours, and what
// hangs on it. To free that takes all its ranks, and each frees a plan by itself, whenever it likes. So it is
// left behind, and a later communicator of the same ranks in the same order takes it over: a program that
// makes one in each turn of a loop has no more of them than plans at a time. What nobody takes over is
// MPI_Finalize's.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "plan/session_communicators.h"
#include "plan/set_up.h"
#include "transport/mpi/host.h"

namespace thalweg {

// Equal on all ranks, and of no two: the process that led it as rank 0, and how many that had led before.
using GroundOrder = std::pair<std::uint64_t, std::uint64_t>;

// Ground: has order(), comm(), which has its ranks, and may_be_taken_over(), which is this rank's opinion.
template <typename Ground>
class LeftBehind {
  public:
    // Local. Without memory it is lost, and so is the oldest one where there are many: nobody takes those
    // over.
    static void leave(std::shared_ptr<Ground> ground) noexcept try {
        const std::lock_guard lock(mutex_);
        std::vector<std::shared_ptr<Ground>>& all = list();
        if (all.size() >= most) all.erase(all.begin());
        all.push_back(std::move(ground));
    } catch (const std::bad_alloc&) {
    }

    // Collective over `comm`, whose rank 0 `leads`: one small agreement, another one where rank 0 knows of
    // one. Null, on all ranks alike: there is none. Throws AgreementFailed.
    static std::shared_ptr<Ground> take_over(MPI_Comm comm, bool leads) {
        std::shared_ptr<Ground> found = leads ? take_one_of(comm) : nullptr;
        // Of rank 0: whether there is one, and which.
        std::uint64_t which[3] = {};
        if (found != nullptr) which[0] = 1, which[1] = found->order().first, which[2] = found->order().second;
        agree_on(comm, host()->max, which);
        if (which[0] == 0) return nullptr;
        if (!leads) found = take({which[1], which[2]});
        // [2: it is lost here, and 1: in use]
        std::uint64_t trouble[1] = {found == nullptr ? 2u : !found->may_be_taken_over() ? 1u : 0u};
        agree_on(comm, host()->max, trouble);
        if (trouble[0] == 0) return found;
        // Behind the others, which are asked for first the next time.
        if (trouble[0] == 1) leave(std::move(found));
        return nullptr;
    }

  private:
    static constexpr std::size_t most = 64;

    static std::vector<std::shared_ptr<Ground>>& list() {
        static auto* const left = new std::vector<std::shared_ptr<Ground>>;
        return *left;
    }
    static std::shared_ptr<Ground> take(const GroundOrder& order) {
        const std::lock_guard lock(mutex_);
        std::vector<std::shared_ptr<Ground>>& all = list();
        const auto found =
            std::find_if(all.begin(), all.end(), [&](const auto& each) { return each->order() == order; });
        if (found == all.end()) return nullptr;
        std::shared_ptr<Ground> ground = std::move(*found);
        all.erase(found);
        return ground;
    }
    // Null without memory, too. MPI is asked without the lock.
    static std::shared_ptr<Ground> take_one_of(MPI_Comm comm) try {
        const Host& mpi = *host();
        if (mpi.Comm_compare == nullptr || SessionCommunicators::may_outlive_world(comm)) return nullptr;
        std::vector<std::shared_ptr<Ground>> all;
        {
            // Whoever has taken one over uses it by now.
            const std::lock_guard lock(mutex_);
            for (const std::shared_ptr<Ground>& each : list())
                if (each->may_be_taken_over()) all.push_back(each);
        }
        for (const std::shared_ptr<Ground>& each : all) {
            int alike = MPI_UNEQUAL;
            if (mpi.Comm_compare(comm, each->comm(), &alike) != MPI_SUCCESS || alike != MPI_CONGRUENT)
                continue;
            // Another thread may have been faster.
            if (std::shared_ptr<Ground> taken = take(each->order())) return taken;
        }
        return nullptr;
    } catch (const std::bad_alloc&) {
        return nullptr;
    }

    static constinit inline std::mutex mutex_;
};

}  // namespace thalweg
