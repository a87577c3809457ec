#include "plan/remains.h"

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <new>

#include "engine/channel.h"
#include "engine/driven.h"
#include "transport/shm/shm.h"
#include "transport/ucx/ucx.h"

namespace thalweg {

namespace {

struct Bare {
    std::unique_ptr<Transport> transport;
    std::unique_ptr<DrivenChannel> driven;
};

constinit std::mutex mutex;
// Of libucp, and of the host's memory. Never destroyed, as the ports.
constinit std::array<std::atomic<Bare*>, 2> bares{};

template <typename Port>
bool prepare_one(Port* port, std::atomic<Bare*>& bare) {
    if (bare.load(std::memory_order_acquire) != nullptr) return true;
    const std::lock_guard lock(mutex);
    if (bare.load(std::memory_order_relaxed) != nullptr) return true;
    auto made = std::make_unique<Bare>();
    if (failed(port->make_bare_channel(made->transport))) return false;
    made->driven =
        std::make_unique<DrivenChannel>(make_channel(*made->transport, Limits{}), &Attendance::agent());
    bare.store(made.release(), std::memory_order_release);
    return true;
}

bool by_ucx(Carrier carrier) { return carrier == Carrier::ucx || carrier == Carrier::composite; }
bool by_shm(Carrier carrier) { return carrier == Carrier::shm || carrier == Carrier::composite; }

}  // namespace

bool Remains::prepare(Carrier carrier) try {
    return (!by_ucx(carrier) || prepare_one(Attendance::ucx(), bares[0])) &&
           (!by_shm(carrier) || prepare_one(Attendance::shm(), bares[1]));
} catch (const std::bad_alloc&) {
    return false;
}

void Remains::see_out(Carrier carrier) {
    if (!Attendance::carries()) return;
    for (const bool shm : {false, true}) {
        if (!(shm ? by_shm(carrier) : by_ucx(carrier))) continue;
        if (Bare* const bare = bares[shm].load(std::memory_order_acquire)) bare->driven->see_out();
    }
}

void Remains::close() {
    for (std::atomic<Bare*>& bare : bares) delete bare.exchange(nullptr, std::memory_order_acq_rel);
}

}  // namespace thalweg
