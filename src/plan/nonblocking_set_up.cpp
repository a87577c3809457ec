// Setting a communicator up for nonblocking and persistent operations, and letting go of it.
#include <algorithm>
#include <mutex>
#include <new>
#include <utility>

#include "base/log.h"
#include "model/cost.h"
#include "plan/attendance.h"
#include "plan/neighbours.h"
#include "plan/nonblocking.h"
#include "plan/quiet_errors.h"
#include "plan/requests.h"
#include "plan/set_up.h"
#include "plan/window_plan.h"
#include "transport/mpi/host.h"
#include "transport/mpi/mpi_transport.h"
#include "transport/shm/shm.h"
#include "transport/ucx/ucx.h"

namespace thalweg {

namespace {

// Two threads of a process may pick the same number for two communicators.
constexpr int picks = 4;

constinit std::mutex detached_mutex;
std::vector<std::shared_ptr<NonblockingState>>& detached() {
    static auto* const list = new std::vector<std::shared_ptr<NonblockingState>>;
    return *list;
}

}  // namespace

// The numbers of persistent operations on one communicator. A bit is set while a plan of this rank has the
// number; ranks free plans at their leisure, so a free one is agreed on.
struct NonblockingState::PlanNumbers {
    static constexpr int words = 4;
    std::shared_ptr<LaneNumber> lane;
    std::uint32_t count = 0;  // that the lane can tell apart
    std::mutex mutex;
    std::uint64_t used[words] = {};
};

std::shared_ptr<LaneNumber> claim_number(MPI_Comm comm, World& world, bool leads, bool ready, Reason& why) {
    const Host& mpi = *host();
    ChannelPool& pool = world.pool();
    why = Reason::setup_failed;
    for (int pick = 0; pick < picks; ++pick) {
        const bool full = world.channels.load() >= world.settings().max_communicators;
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

// A name that rank 0 gave, or null where it has none left.
static std::optional<ChannelName> agree_on_name(MPI_Comm comm, Carrier carrier, bool leads) {
    const Host& mpi = *host();
    std::uint64_t name[3] = {0, 0, 0};  // [there is one, its parts]
    ChannelName given;
    if (leads && carrier == Carrier::shm) given = Attendance::shm()->name_channel();
    if (leads && (carrier == Carrier::shm || !failed(Attendance::ucx()->name_channel(given)))) {
        name[0] = 1;
        name[1] = given.root;
        name[2] = given.counter;
    }
    if (mpi.Bcast(name, 3, mpi.uint64, 0, comm) != MPI_SUCCESS || name[0] == 0) return std::nullopt;
    return ChannelName{static_cast<std::uint32_t>(name[1]), static_cast<std::uint32_t>(name[2])};
}

std::shared_ptr<Lane> NonblockingState::make_lane(MPI_Comm comm, Carrier carrier, World& world,
                                                  Communicator& communicator, const RankMap* places,
                                                  Reason& why) {
    const int rank = communicator.rank(), size = communicator.size();
    if (carrier != Carrier::mpi) {
        const std::optional<ChannelName> name = agree_on_name(comm, carrier, rank == 0);
        why = name ? Reason::setup_failed : Reason::too_many;
        if (!name || places == nullptr) return nullptr;
        return Lane::over_ports(world, carrier, *name, rank, communicator.topology(), *places);
    }
    std::shared_ptr<LaneNumber> number = claim_number(comm, world, rank == 0, places != nullptr, why);
    if (number == nullptr || places == nullptr) return nullptr;
    why = Reason::setup_failed;
    try {
        return std::make_shared<Lane>(world, std::move(number), rank, size, *places);
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}

std::shared_ptr<NonblockingState> NonblockingState::set_up(MPI_Comm comm, Communicator& communicator,
                                                           World& world, Reason& why) {
    QuietErrors quiet(comm);
    if (!communicator.survey_now(comm)) {
        why = communicator.reason();
        return nullptr;
    }
    std::shared_ptr<NonblockingState> state(new (std::nothrow) NonblockingState(communicator, world));
    RankMap places;
    bool all = false;
    const bool ready = state != nullptr && !failed(world.locate(comm, all, &places)) && all;
    if (ready) state->take_over(std::move(places));
    const RankMap* const known_places = ready ? &state->places_ : nullptr;
    const Carrier carrier = Attendance::agree_on_carrier(comm, world, known_places, communicator.topology());
    if (carrier == Carrier::none) {
        why = Reason::unattended;
        return nullptr;
    }
    std::shared_ptr<Lane> lane = make_lane(comm, carrier, world, communicator, known_places, why);
    const bool opened = lane != nullptr;
    if (ready) {
        state->lane_ = std::move(lane);
        state->carrier_ = carrier;
        communicator.record().carrier = name_of(carrier);
    }
    const Network known = world.network();
    std::uint64_t most[5] = {!opened, known.latency_ns, known.bytes_per_second,
                             !native_blocks_in_order(comm, false), !native_blocks_in_order(comm, true)};
    agree_on(comm, host()->max, most);
    if (most[0] != 0 || !ready) return nullptr;
    state->natively_in_order_[false] = most[3] == 0;
    state->natively_in_order_[true] = most[4] == 0;
    state->network_ = {most[1], most[2]};
    state->learn_network(comm);
    return state;
}

void NonblockingState::take_over(RankMap places) {
    rank_ = communicator_.rank();
    size_ = communicator_.size();
    topology_ = communicator_.topology();
    places_ = std::move(places);
    const bool sleeps = world_.sleeps();
    policy_ = sleeps ? WaitPolicy::sleep : WaitPolicy::spin;
    communicator_.record().sleeps = sleeps;
    plans_ = std::make_shared<PlanNumbers>();
}

// By way of a channel of the MPI library that lives only meanwhile.
void NonblockingState::learn_network(MPI_Comm comm) {
    const Settings& settings = world_.settings();
    if (topology_.nodes() < 2 || (settings.rate > 0 && settings.latency_us > 0) || network_.known()) return;
    Reason ignored = Reason::setup_failed;
    const std::shared_ptr<LaneNumber> number = claim_number(comm, world_, rank_ == 0, true, ignored);
    if (number == nullptr) return;
    std::unique_ptr<MpiTransport> channel;
    try {
        channel = MpiTransport::make_beside_others(
            {world_.pool().comm(), rank_, size_, places_, static_cast<unsigned>(number->value())}, 2);
    } catch (const std::bad_alloc&) {
    }
    std::uint64_t trouble[1] = {channel == nullptr};
    agree_on(comm, host()->max, trouble);
    if (trouble[0] != 0) return;
    network_ = measure_network(comm, *channel, topology_);
    if (network_.known()) world_.learn(network_);
}

std::uint64_t NonblockingState::ports() const {
    const bool over_ucx = carrier_ == Carrier::ucx || carrier_ == Carrier::composite;
    return over_ucx ? Attendance::ucx()->rails() : 1;
}

Decision NonblockingState::decide(Collective collective, std::uint64_t bytes, bool stable) {
    const std::uint32_t generation = world_.generation();
    if (generation != generation_) {
        decided_ = {};
        stable_.reset();
        generation_ = generation;
    }
    std::optional<Decisions>& decided = stable ? stable_ : decided_[static_cast<std::size_t>(collective)];
    if (!decided) {
        Selection selection = communicator_.selection(collective, stable ? Network{} : network_, !stable);
        selection.machine.inter.ports = stable ? 1 : ports();
        selection.overlapped = true;
        decided.emplace(std::make_shared<const Selector>(collective, topology_, selection));
    }
    return decided->of(bytes);
}

double NonblockingState::predicted_native_seconds(std::uint64_t bytes) const {
    if (!network_.known() || bytes == 0) return 0;
    Problem problem;
    problem.size = size_;
    problem.bytes = bytes;
    const Choice pairwise = standard_choice(*find_algorithm(Collective::alltoallv, "pairwise"));
    return 1e-12 * static_cast<double>(
                       predict(pairwise, problem, topology_,
                               communicator_.selection(Collective::alltoallv, network_, true).machine));
}

std::shared_ptr<Lane> NonblockingState::make_plan_lane(MPI_Comm comm, std::size_t parts,
                                                       std::vector<std::uint32_t>& numbers, Reason& why) {
    QuietErrors quiet(comm);
    const Host& mpi = *host();
    if (carrier_ != Carrier::mpi) return make_named_plan_lane(comm, parts, numbers, why);
    if (plans_->lane == nullptr) {
        plans_->lane = claim_number(comm, world_, rank_ == 0, true, why);
        if (plans_->lane == nullptr) return nullptr;
        plans_->count = std::min<std::uint32_t>(lane_->live_operations(), 64 * PlanNumbers::words);
    }
    // [numbers in use, the lane is broken]
    std::uint64_t used[PlanNumbers::words + 1] = {};
    {
        const std::lock_guard lock(plans_->mutex);
        std::copy(plans_->used, plans_->used + PlanNumbers::words, used);
    }
    used[PlanNumbers::words] = lane_->broken();
    why = Reason::setup_failed;
    agree_on(comm, mpi.bor, used);
    if (used[PlanNumbers::words] != 0) {
        lane_->fail();
        return nullptr;
    }
    bool ready = true;
    try {
        numbers.reserve(parts);
    } catch (const std::bad_alloc&) {
        ready = false;
    }
    for (std::uint32_t number = 0; ready && number < plans_->count && numbers.size() < parts; ++number)
        if ((used[number / 64] >> number % 64 & 1) == 0) numbers.push_back(number);
    std::shared_ptr<Lane> lane;
    const bool enough = numbers.size() == parts;
    if (ready && enough) try {
            // Gives its numbers back with the last reference, whoever has it.
            struct Numbered {
                std::shared_ptr<PlanNumbers> plans;
                std::vector<std::uint32_t> numbers;
                std::unique_ptr<Lane> lane;
                ~Numbered() {
                    // After a failure nobody knows what is still on its way to them.
                    const bool kept = lane != nullptr && lane->broken();
                    lane.reset();
                    if (plans == nullptr || kept) return;
                    const std::lock_guard lock(plans->mutex);
                    for (std::uint32_t number : numbers)
                        plans->used[number / 64] &= ~(std::uint64_t{1} << number % 64);
                }
            };
            auto numbered = std::make_shared<Numbered>();
            numbered->numbers = numbers;
            numbered->lane = std::make_unique<Lane>(world_, plans_->lane, rank_, size_, places_);
            numbered->plans = plans_;
            {
                const std::lock_guard lock(plans_->mutex);
                for (std::uint32_t number : numbers)
                    plans_->used[number / 64] |= std::uint64_t{1} << number % 64;
            }
            lane = std::shared_ptr<Lane>(numbered, numbered->lane.get());
        } catch (const std::bad_alloc&) {
            ready = false;
        }
    std::uint64_t trouble[1] = {!ready ? 2u : !enough ? 1u : 0u};
    agree_on(comm, mpi.max, trouble);
    if (trouble[0] != 0) {
        why = trouble[0] == 1 ? Reason::too_many : Reason::setup_failed;
        return nullptr;
    }
    return lane;
}

// A channel of its own for each, so that its numbers are nobody else's.
std::shared_ptr<Lane> NonblockingState::make_named_plan_lane(MPI_Comm comm, std::size_t parts,
                                                             std::vector<std::uint32_t>& numbers,
                                                             Reason& why) {
    const std::optional<ChannelName> name = agree_on_name(comm, carrier_, rank_ == 0);
    why = name ? Reason::setup_failed : Reason::too_many;
    if (!name) return nullptr;
    std::shared_ptr<Lane> lane = Lane::over_ports(world_, carrier_, *name, rank_, topology_, places_);
    try {
        for (std::uint32_t part = 0; part < parts; ++part) numbers.push_back(part);
    } catch (const std::bad_alloc&) {
        lane.reset();
    }
    // [trouble, the communicator's lane is broken]
    std::uint64_t any[2] = {lane == nullptr || lane->live_operations() <= parts, lane_->broken()};
    agree_on(comm, host()->max, any);
    if (any[1] != 0) lane_->fail();
    return any[0] != 0 || any[1] != 0 ? nullptr : lane;
}

NonblockingState::NonblockingState(Communicator& communicator, World& world)
    : world_(world), communicator_(communicator) {
    const std::lock_guard lock(detached_mutex);
    next_ = alive_;
    alive_ = this;
}

NonblockingState::~NonblockingState() {
    const std::lock_guard lock(detached_mutex);
    NonblockingState** link = &alive_;
    while (*link != this) link = &(*link)->next_;
    *link = next_;
}

constinit NonblockingState* NonblockingState::alive_ = nullptr;

bool NonblockingState::close_all() {
    std::vector<std::shared_ptr<Lane>> lanes;
    {
        const std::lock_guard lock(detached_mutex);
        for (NonblockingState* state = alive_; state != nullptr; state = state->next_)
            if (state->lane_ != nullptr) lanes.push_back(std::move(state->lane_));
    }
    bool last = true;
    for (const std::shared_ptr<Lane>& lane : lanes) last &= lane.use_count() == 1;
    return last;
}

bool close_lanes() {
    release_detached();
    const bool no_plans = release_requests();
    return NonblockingState::close_all() && no_plans;
}

void detach(MPI_Comm comm) {
    if (comm == host()->comm_null) return;
    Communicator* const communicator = Communicator::existing(comm);
    if (communicator == nullptr) return;
    Communicator::SelfDriven& self_driven = communicator->self_driven;
    want_no_set_up(self_driven);
    self_driven.state.reset();
    if (self_driven.windows != nullptr) self_driven.windows->close();
    self_driven.windows.reset();
}

void detach_later(Communicator::SelfDriven& dead) noexcept {
    want_no_set_up(dead);
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
