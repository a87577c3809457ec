#include "plan/lane.h"

#include <algorithm>
#include <iterator>
#include <new>

#include "engine/channel.h"
#include "plan/attendance.h"
#include "plan/ongoing.h"
#include "plan/remains.h"
#include "transport/composite/composite.h"
#include "transport/mpi/mpi_transport.h"
#include "transport/packing/packing.h"
#if defined(THALWEG_SABOTEUR)
#include "transport/saboteur/saboteur.h"
#endif
#include "transport/shm/shm.h"
#include "transport/ucx/ucx.h"

namespace thalweg {

LaneNumber::LaneNumber(World& world, int number) : world_(world), number_(number) {
    world.channels.fetch_add(1, std::memory_order_relaxed);
}

LaneNumber::~LaneNumber() {
    world_.channels.fetch_sub(1, std::memory_order_relaxed);
    if (!kept_.load(std::memory_order_acquire)) world_.pool().give_back(number_);
}

// Twice the window: one operation may start while the sends of the one before are still leaving.
static Slot slots_of(const World& world) { return 2 * static_cast<Slot>(world.settings().in_flight); }

Lane::Lane(World& world, std::shared_ptr<LaneNumber> number, int rank, int size, RankMap places,
           std::shared_ptr<PeerAccounts> accounts)
    : number_(std::move(number)), accounts_(std::move(accounts)) {
    std::unique_ptr<MpiTransport> transport =
        MpiTransport::make_beside_others({world.pool().comm(), rank, size, std::move(places),
                                          static_cast<unsigned>(number_->value()), accounts_.get()},
                                         slots_of(world));
    mpi_ = transport.get();
    transport_ = std::move(transport);
    make_channels(world, &Attendance::agent());
}

Lane::Lane(const World& world, std::shared_ptr<Channel> channel, const MpiTransport* mpi) : mpi_(mpi) {
    drive(std::move(channel), nullptr, world);
}

Lane::Lane(const World& world, std::unique_ptr<Transport> transport, Agent* agent)
    : transport_(std::move(transport)) {
    make_channels(world, agent);
}

std::shared_ptr<Lane> Lane::over_ports(World& world, Carrier carrier, ChannelName name,
                                       std::shared_ptr<const PortRanks> ranks,
                                       std::shared_ptr<PeerAccounts> accounts, bool among_neighbours) try {
    if (!Remains::prepare(carrier)) return nullptr;
    std::shared_ptr<Lane> lane(new Lane);
    lane->name_.emplace(carrier, name);
    lane->accounts_ = std::move(accounts);
    lane->ranks_ = std::move(ranks);
    const PortRanks& group_ranks = *lane->ranks_;
    std::unique_ptr<Transport> inside, between;
    if (carrier != Carrier::shm) {
        UcxGroup group;
        group.name = name;
        group.rank = group_ranks.rank();
        group.size = group_ranks.size();
        group.processes = group_ranks.processes();
        group.processes_end = group_ranks.processes_end();
        group.slots = slots_of(world);
        group.drive_host = Attendance::drive_host;
        group.accounts = lane->accounts_.get();
        if (among_neighbours) group.rails = group_ranks.rails();
        if (failed(Attendance::ucx()->make_channel(group, between))) return nullptr;
    }
    if (carrier != Carrier::ucx) {
        ShmGroup group;
        group.name = name;
        group.rank = group_ranks.rank();
        group.size = group_ranks.size();
        group.processes = group_ranks.processes();
        group.slots = slots_of(world);
        group.drive_host = Attendance::drive_host;
        group.accounts = lane->accounts_.get();
        group.near = group_ranks.near();
        if (failed(Attendance::shm()->make_channel(group, inside))) return nullptr;
    }
    if (carrier == Carrier::composite) {
        CompositeParts parts;
        parts.inside = std::move(inside);
        parts.between = std::move(between);
        parts.is_near = group_ranks.is_near();
        parts.junction = &Attendance::junction();
        parts.port = Attendance::shm();
        parts.accounts = lane->accounts_.get();
        if (failed(make_composite(std::move(parts), lane->transport_))) return nullptr;
    } else {
        lane->transport_ = carrier == Carrier::shm ? std::move(inside) : std::move(between);
    }
    lane->make_channels(world, &Attendance::agent());
    return lane;
} catch (const std::bad_alloc&) {
    return nullptr;
}

void Lane::make_channels(const World& world, Agent* agent) {
    Limits limits;
    limits.in_flight = static_cast<std::uint32_t>(world.settings().in_flight);
    limits.credit_bytes = world.settings().credit_bytes;
#if defined(THALWEG_SABOTEUR)
    transport_ = sabotaged(std::move(transport_));
#endif
    transport_ = with_packing(std::move(transport_), accounts_.get());
    drive(make_channel(*transport_, limits), agent, world);
}

void Lane::drive(std::shared_ptr<Channel> channel, Agent* agent, const World& world) {
    most_idle_bytes_ = world.settings().plan_memory;
    channel_ = std::move(channel);
    driven_ = std::make_unique<DrivenChannel>(channel_, agent);
}

constinit std::atomic<std::uint64_t> Lane::IdleBytes::all_{0};
std::uint64_t Lane::footprint_of(const Run& run) { return run.footprint_bytes; }
std::uint64_t Lane::footprint_of(const Ongoing& ongoing) { return ongoing.footprint_bytes(); }

// What was kept in the transport goes with it; what it has sent does not.
Lane::~Lane() {
    kept_.clear();
    drop_idle();
    if (name_ && driven_ != nullptr && driven_->lingers() && !broken()) Remains::see_out(name_->carrier());
}

std::uint32_t Lane::live_operations() const { return channel_->transport().capabilities().live_operations; }

int Lane::native_error() const {
    if (noted_error_ != nullptr) return noted_error_->load(std::memory_order_relaxed);
    return mpi_ == nullptr ? MPI_SUCCESS : mpi_->last_error();
}

void Lane::fail() {
    broken_.store(true, std::memory_order_release);
    if (number_ != nullptr) number_->keep();
    if (name_) name_->keep();
}

std::unique_ptr<Run> Lane::take_idle(const RunKey& key) {
    const std::lock_guard lock(mutex_);
    const auto found =
        std::find_if(idle_.begin(), idle_.end(), [&](const auto& idle) { return idle.thing->key == key; });
    if (found == idle_.end()) return nullptr;
    std::unique_ptr<Run> run = std::move(found->thing);
    idle_.erase(found);
    return run;
}

// Idle runs go first: they are made again without asking anything of the program's datatypes.
void Lane::keep(std::unique_ptr<Ongoing> ongoing) {
    std::list<Idle<Ongoing>> dropped;  // outside the lock, as these
    std::list<Idle<Run>> dropped_runs;
    Ongoing& kept = *ongoing;
    try {
        dropped.emplace_back(std::move(ongoing));
    } catch (const std::bad_alloc&) {
        kept.leave(*this);
        return;
    }
    {
        const std::lock_guard lock(mutex_);
        kept_.splice(kept_.begin(), dropped);
        dropped_runs = trim_idle();
        while (!kept_.empty() && (kept_.size() > most_kept || is_full())) {
            kept_.back().bytes.forget();
            dropped.splice(dropped.end(), kept_, std::prev(kept_.end()));
        }
    }
    for (const Idle<Ongoing>& each : dropped) each.thing->leave(*this);
}

void Lane::drop_idle() {
    std::list<Idle<Ongoing>> unwanted;
    {
        const std::lock_guard lock(mutex_);
        unwanted.swap(kept_);
    }
    for (const Idle<Ongoing>& kept : unwanted) kept.thing->leave(*this);
    std::list<Idle<Run>> dropped;  // outside the lock
    const std::lock_guard lock(mutex_);
    dropped.swap(idle_);
}

// Pre: mutex_ is held. What is returned is to be destroyed outside it.
std::list<Lane::Idle<Run>> Lane::trim_idle() {
    std::list<Idle<Run>> dropped;
    while (idle_.size() > 1 && (idle_.size() > most_idle || is_full())) {
        idle_.back().bytes.forget();
        dropped.splice(dropped.end(), idle_, std::prev(idle_.end()));
    }
    return dropped;
}

void Lane::give_back(std::unique_ptr<Run> run) {
    std::list<Idle<Run>> given, dropped;  // outside the lock
    try {
        given.emplace_back(std::move(run));
    } catch (const std::bad_alloc&) {
        return;  // the run goes
    }
    const std::lock_guard lock(mutex_);
    idle_.splice(idle_.begin(), given);
    dropped = trim_idle();
}

}  // namespace thalweg
