// Setting a communicator up for nonblocking and persistent operations.
#include <algorithm>
#include <mutex>
#include <new>
#include <utility>

#include "base/log.h"
#include "plan/attendance.h"
#include "plan/neighbours.h"
#include "plan/nonblocking.h"
#include "plan/quiet_errors.h"
#include "plan/requests.h"
#include "plan/session_communicators.h"
#include "plan/set_up.h"
#include "plan/window_plan.h"
#include "transport/mpi/host.h"
#include "transport/mpi/mpi_transport.h"
#include "transport/shm/shm.h"
#include "transport/ucx/ucx.h"

namespace thalweg {

namespace {

constinit std::mutex alive_mutex;

// Null: there are none, or this rank cannot tell. `numbered`: whether their edges have numbers; of a rank
// that cannot tell they do not: others ask it for nothing then.
std::shared_ptr<const Neighbourhood> neighbours_of(MPI_Comm comm, const Communicator::SelfDriven& self_driven,
                                                   bool& numbered) try {
    numbered = false;
    std::shared_ptr<const Neighbourhood> known = self_driven.neighbourhood;
    std::optional<Neighbourhood> found;
    if (known == nullptr) found = find_neighbourhood(comm);
    if (found) known = std::make_shared<const Neighbourhood>(std::move(*found));
    numbered = known == nullptr || numbers_suffice(*known);
    return known;
} catch (const std::bad_alloc&) {
    return nullptr;
}

// What ranks tell one another while they make a plan's lane, as words.
constexpr std::size_t told_words = 1 + NativeTimes::places;
void write(const NonblockingState::Told& told, std::uint64_t* words) {
    *words = told.message_bytes;
    std::copy(told.native.begin(), told.native.end(), words + 1);
}
void read(const std::uint64_t* words, NonblockingState::Told& told) {
    told.message_bytes = *words;
    std::copy_n(words + 1, told.native.size(), told.native.begin());
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

// A name that rank 0 gave. Collective. False, on all ranks: it has none left; on one: MPI failed there.
static bool agree_on_name(MPI_Comm comm, Carrier carrier, bool leads, ChannelName& name) {
    std::uint64_t words[3] = {leads && Attendance::name_channels(carrier, {&name, 1}), name.root,
                              name.counter};
    if (hand_out_words(words, 3, 0, comm) != MPI_SUCCESS) return false;
    name = {static_cast<std::uint32_t>(words[1]), static_cast<std::uint32_t>(words[2])};
    return words[0] != 0;
}

static std::shared_ptr<Lane> make_mpi_lane(MPI_Comm comm, World& world, Communicator& communicator,
                                           const RankMap* places, Reason& why) {
    const int rank = communicator.rank(), size = communicator.size();
    std::shared_ptr<LaneNumber> number = claim_number(comm, world, rank == 0, places != nullptr, why);
    if (number == nullptr || places == nullptr) return nullptr;
    why = Reason::setup_failed;
    try {
        return std::make_shared<Lane>(world, std::move(number), rank, size, *places,
                                      communicator.record().peers);
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}

bool NonblockingState::make_lanes(MPI_Comm comm, Carrier carrier, Attendance::Told told, World& world,
                                  Communicator& communicator, NonblockingState* state, Reason& why) {
    const bool over_ucx = carrier == Carrier::ucx || carrier == Carrier::composite;
    const bool neighbours = over_ucx && has_neighbours(comm);
    const bool in_memory =
        carrier == Carrier::composite && world.settings().transport == TransportSetting::automatic;
    // Rails by where hosts stand put strides of a ring together that their numbers' sum keeps apart.
    const bool apart = in_memory || (neighbours && Attendance::ucx()->rails() > 1);
    const Carrier calls = in_memory ? Carrier::ucx : carrier;
    communicator.record().carrier = in_memory ? "ucx, exchanges over shm and ucx" : name_of(carrier);
    if (state != nullptr) state->carrier_ = calls, state->exchange_carrier_ = carrier;
    std::shared_ptr<Lane> lane, exchange_lane;
    if (carrier == Carrier::mpi) {
        lane = make_mpi_lane(comm, world, communicator, state == nullptr ? nullptr : &state->places_, why);
        exchange_lane = lane;
    } else {
        const bool leads = communicator.rank() == 0;
        ChannelName names[2] = {told.names[0], told.names[1]};
        bool named = told.named;
        // Rank 0 could not tell the carrier then, or has no more names.
        if (!named) {
            named = agree_on_name(comm, carrier, leads, names[0]);
            if (apart) named = agree_on_name(comm, carrier, leads, names[1]) && named;
        }
        why = named ? Reason::setup_failed : Reason::too_many;
        const auto open = [&](Carrier over, ChannelName name, bool exchanges) {
            return Lane::over_ports(world, over, name, state->ranks_,
                                    exchanges ? communicator.record().peers : nullptr,
                                    exchanges && neighbours);
        };
        const bool ready = state != nullptr && state->keep_ranks(neighbours ? Attendance::ucx()->rails() : 1);
        if (named && ready) lane = open(calls, names[0], !apart);
        exchange_lane = apart && lane != nullptr ? open(carrier, names[1], true) : lane;
        if (told.named && !apart && state != nullptr) state->first_plan_ = names[1];
    }
    if (lane == nullptr || exchange_lane == nullptr || state == nullptr) return false;
    state->lane_ = std::move(lane);
    state->exchange_lane_ = std::move(exchange_lane);
    return true;
}

std::shared_ptr<NonblockingState> NonblockingState::set_up(MPI_Comm comm, Communicator& communicator,
                                                           World& world, Purpose purpose, Reason& why) {
    QuietErrors quiet(comm);
    bool placed = true;
    const bool surveys = communicator.survey_alone(comm, placed);
    if (!surveys && !communicator.survey_now(comm)) {
        why = communicator.reason();
        return nullptr;
    }
    const bool is_left = purpose.between_hosts && placed && communicator.topology().nodes() == 1;
    std::shared_ptr<NonblockingState> state;
    if (!is_left) state.reset(new (std::nothrow) NonblockingState(communicator, world));
    RankMap places;
    bool all = false;
    const bool ready = placed && state != nullptr && !failed(world.locate(comm, all, &places)) && all &&
                       state->take_over(std::move(places));
    NonblockingState* const able = ready ? state.get() : nullptr;
    const Network known = world.network();
    bool numbered = false;
    const std::shared_ptr<const Neighbourhood> neighbours =
        neighbours_of(comm, communicator.self_driven, numbered);
    Attendance::Told told = {{},
                             false,
                             {known.latency_ns, known.bytes_per_second, !native_blocks_in_order(comm, false),
                              !native_blocks_in_order(comm, true), communicator.self_driven.sizes.take(),
                              !numbered, SessionCommunicators::may_outlive_world(comm)},
                             is_left};
    const Carrier carrier = Attendance::agree_on_carrier(comm, communicator.rank() == 0, world,
                                                         able == nullptr ? nullptr : &able->places_,
                                                         communicator.topology(), purpose.in_memory, told);
    if (told.is_left) {
        why = Reason::native_best;
        return nullptr;
    }
    // Where a rank is not able there is none.
    if (carrier == Carrier::none || able == nullptr) {
        why = Reason::unattended;
        return nullptr;
    }
    if (surveys) communicator.settle_survey();
    state->network_ = {told.most[0], told.most[1]};
    state->natively_in_order_[false] = told.most[2] == 0;
    state->natively_in_order_[true] = told.most[3] == 0;
    if (told.most[4] != 0) state->neighbour_bytes_ = told.most[4];
    state->numbers_suffice_ = told.most[5] == 0;
    state->may_outlive_world_ = told.most[6] != 0;
    state->opened_ = make_lanes(comm, carrier, told, world, communicator, able, why);
    state->confirmed_ = false;
    if ((!purpose.for_plan || carrier == Carrier::mpi) && !state->confirm(comm)) return nullptr;
    state->agree_on_steps(comm, neighbours.get());
    learn_network(comm, world, state->rank_, state->topology_, state->places_, state->network_);
    if (state->ranks_ != nullptr) state->places_ = {};
    return state;
}

bool NonblockingState::confirm(MPI_Comm comm) {
    if (confirmed_) return true;
    const QuietErrors quiet(comm);
    std::uint64_t trouble[1] = {!opened_};
    agree_on(comm, host()->max, trouble);
    confirmed_ = true;
    return trouble[0] == 0;
}

bool NonblockingState::take_over(RankMap places) try {
    rank_ = communicator_.rank();
    size_ = communicator_.size();
    topology_ = communicator_.topology();
    places_ = std::move(places);
    policy_ = world_.policy();
    communicator_.record().sleeps = world_.sleeps();
    keep_peers();
    plans_ = std::make_shared<PlanNumbers>();
    return true;
} catch (const std::bad_alloc&) {
    return false;
}

bool NonblockingState::keep_ranks(std::size_t rails) try {
    ranks_ = std::make_shared<const PortRanks>(topology_, rank_, places_, rails);
    return true;
} catch (const std::bad_alloc&) {
    return false;
}

// For the report. Without memory nothing is counted.
void NonblockingState::keep_peers() noexcept try {
    CommunicatorRecord& record = communicator_.record();
    if (*record.topology == '\0' || record.peers != nullptr) return;
    std::vector<bool> is_near(static_cast<std::size_t>(size_));
    for (int peer = 0; peer < size_; ++peer)
        is_near[static_cast<std::size_t>(peer)] = topology_.node_of(peer) == topology_.node_of(rank_);
    record.peers = std::make_shared<PeerAccounts>(std::move(is_near));
} catch (const std::bad_alloc&) {
}

std::optional<ChannelName> NonblockingState::name_plan() const {
    ChannelName name;
    if (rank_ != 0 || carrier_ == Carrier::mpi || !Attendance::name_channels(exchange_carrier_, {&name, 1}))
        return std::nullopt;
    return name;
}

std::shared_ptr<Lane> NonblockingState::make_plan_lane(MPI_Comm comm, bool exchange,
                                                       std::optional<ChannelName> name, std::size_t parts,
                                                       bool ready, std::vector<std::uint32_t>& numbers,
                                                       Told& told, Reason& why) {
    QuietErrors quiet(comm);
    const Host& mpi = *host();
    if (carrier_ != Carrier::mpi)
        return make_named_plan_lane(comm, exchange, name, parts, ready, numbers, told, why);
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
            numbered->lane = std::make_unique<Lane>(world_, plans_->lane, rank_, size_, places_,
                                                    communicator_.record().peers);
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
    // [trouble, what they tell]
    std::uint64_t most[1 + told_words] = {!ready ? 2u : !enough ? 1u : 0u};
    write(told, most + 1);
    agree_on(comm, mpi.max, most);
    read(most + 1, told);
    if (most[0] != 0) {
        why = most[0] == 1 ? Reason::too_many : Reason::setup_failed;
        return nullptr;
    }
    return lane;
}

// A channel of its own for each, so that its numbers are nobody else's.
std::shared_ptr<Lane> NonblockingState::make_named_plan_lane(MPI_Comm comm, bool exchange,
                                                             std::optional<ChannelName> known,
                                                             std::size_t parts, bool ready,
                                                             std::vector<std::uint32_t>& numbers, Told& told,
                                                             Reason& why) {
    const Carrier carrier = exchange ? exchange_carrier_ : carrier_;
    std::shared_ptr<PeerAccounts> accounts;
    if (exchange || exchange_lane_ == lane_) accounts = communicator_.record().peers;
    ChannelName name = known.value_or(ChannelName{});
    const bool named = known || agree_on_name(comm, carrier, rank_ == 0, name);
    why = named ? Reason::setup_failed : Reason::too_many;
    std::shared_ptr<Lane> lane;
    if (named && ranks_ != nullptr)
        lane = Lane::over_ports(world_, carrier, name, ranks_, std::move(accounts),
                                exchange && has_neighbours(comm));
    try {
        for (std::uint32_t part = 0; part < parts; ++part) numbers.push_back(part);
    } catch (const std::bad_alloc&) {
        lane.reset();
    }
    // [trouble, the communicator's lanes are broken, what they tell]
    const bool lacks = !ready || !opened_ || lane == nullptr || lane->live_operations() <= parts;
    std::uint64_t most[3 + told_words] = {lacks, lane_ != nullptr && lane_->broken(),
                                          exchange_lane_ != nullptr && exchange_lane_->broken()};
    write(told, most + 3);
    agree_on(comm, host()->max, most);
    read(most + 3, told);
    confirmed_ |= most[0] == 0;
    if (most[1] != 0 && lane_ != nullptr) lane_->fail();
    if (most[2] != 0 && exchange_lane_ != nullptr) exchange_lane_->fail();
    return most[0] != 0 || most[1] != 0 || most[2] != 0 ? nullptr : lane;
}

NonblockingState::NonblockingState(Communicator& communicator, World& world)
    : world_(world), communicator_(communicator) {
    const std::lock_guard lock(alive_mutex);
    alive_.enter(place_);
}

NonblockingState::~NonblockingState() {
    if (first_plan_) Attendance::give_back(exchange_carrier_, *first_plan_);
    const std::lock_guard lock(alive_mutex);
    alive_.leave(place_);
}

constinit Living<NonblockingState> NonblockingState::alive_;

bool NonblockingState::close_all() {
    std::vector<std::shared_ptr<Lane>> lanes;
    {
        const std::lock_guard lock(alive_mutex);
        alive_.for_each([&lanes](NonblockingState& state) {
            if (state.exchange_lane_ != nullptr && state.exchange_lane_ != state.lane_)
                lanes.push_back(state.exchange_lane_);
            state.exchange_lane_.reset();
            if (state.lane_ != nullptr) lanes.push_back(std::move(state.lane_));
        });
    }
    bool last = true;
    for (const std::shared_ptr<Lane>& lane : lanes) last &= lane.use_count() == 1;
    return last;
}

}  // namespace thalweg
