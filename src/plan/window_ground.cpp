// Where a communicator's plans over windows take their windows from, and give them back to.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

#include "plan/private_comm.h"
#include "plan/quiet_errors.h"
#include "plan/set_up.h"
#include "plan/window_plan.h"

namespace thalweg {

namespace {

// All that are not closed.
constinit std::mutex grounds_mutex;
std::vector<std::shared_ptr<WindowGround>>& grounds() {
    static auto* const list = new std::vector<std::shared_ptr<WindowGround>>;
    return *list;
}
std::vector<std::shared_ptr<WindowGround>> known_grounds() {
    const std::lock_guard lock(grounds_mutex);
    return grounds();
}

// So many this process has led as rank 0.
constinit std::atomic<std::uint64_t> led{0};

}  // namespace

std::shared_ptr<WindowGround> WindowGround::make(MPI_Comm comm, bool leads, const World& world) {
    if (std::shared_ptr<WindowGround> left = LeftBehind<WindowGround>::take_over(comm, leads)) return left;
    MPI_Comm own;
    bool made = false;
    {
        // Where there is none to be had the exchange goes another way, which is no error of the program's.
        const QuietErrors quiet(comm, true);
        made = make_private(comm, own);
    }
    std::shared_ptr<WindowGround> ground;
    if (made) try {
            ground.reset(new WindowGround(own));
            const std::lock_guard lock(grounds_mutex);
            grounds().push_back(ground);
        } catch (const std::bad_alloc&) {
            ground.reset();
        }
    // [trouble; of rank 0: who it is, and how many it has led]
    std::uint64_t most[3] = {ground == nullptr, leads ? static_cast<std::uint64_t>(world.rank()) : 0,
                             leads ? led.fetch_add(1, std::memory_order_relaxed) : 0};
    agree_on(comm, host()->max, most);
    if (most[0] == 0) {
        ground->order_ = {most[1], most[2]};
        return ground;
    }
    // To free the communicator is collective, and some rank may have none.
    const std::lock_guard lock(grounds_mutex);
    std::erase(grounds(), ground);
    return nullptr;
}

bool WindowGround::close() {
    if (closed_) return true;
    if (pool_.drain() != MPI_SUCCESS || pool_.alive() != 0) return false;
    host()->Comm_free(&comm_);
    closed_ = true;
    const std::lock_guard lock(grounds_mutex);
    std::erase_if(grounds(), [this](const auto& ground) { return ground.get() == this; });
    return true;
}

void close_windows() {
    std::vector<std::shared_ptr<WindowGround>> all = known_grounds();
    std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a->order() < b->order(); });
    for (const std::shared_ptr<WindowGround>& ground : all) ground->close();
}

std::uint64_t windows_alive() {
    std::uint64_t alive = 0;
    for (const std::shared_ptr<WindowGround>& ground : known_grounds())
        alive += static_cast<std::uint64_t>(ground->pool().alive());
    return alive;
}

}  // namespace thalweg
