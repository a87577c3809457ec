// Where a communicator's plans over windows take their windows from, and give them back to.
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

// All that are not closed, oldest first.
constinit std::mutex grounds_mutex;
std::vector<std::shared_ptr<WindowGround>>& grounds() {
    static auto* const list = new std::vector<std::shared_ptr<WindowGround>>;
    return *list;
}
std::vector<std::shared_ptr<WindowGround>> known_grounds() {
    const std::lock_guard lock(grounds_mutex);
    return grounds();
}

}  // namespace

std::shared_ptr<WindowGround> WindowGround::make(MPI_Comm comm) {
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
    std::uint64_t trouble[1] = {ground == nullptr};
    agree_on(comm, host()->max, trouble);
    if (trouble[0] == 0) return ground;
    // To free the communicator is collective, and some rank may have none.
    const std::lock_guard lock(grounds_mutex);
    std::erase(grounds(), ground);
    return nullptr;
}

void WindowGround::close() {
    if (closed_ || pool_.drain() != MPI_SUCCESS || pool_.alive() != 0) return;
    host()->Comm_free(&comm_);
    closed_ = true;
    const std::lock_guard lock(grounds_mutex);
    std::erase_if(grounds(), [this](const auto& ground) { return ground.get() == this; });
}

void close_windows() {
    for (const std::shared_ptr<WindowGround>& ground : known_grounds()) ground->close();
}

std::uint64_t windows_alive() {
    std::uint64_t alive = 0;
    for (const std::shared_ptr<WindowGround>& ground : known_grounds())
        alive += static_cast<std::uint64_t>(ground->pool().alive());
    return alive;
}

}  // namespace thalweg
