#include "plan/communicator.h"

#include <algorithm>
#include <new>

#include "algorithms/most_steps.h"
#include "base/float_modes.h"
#include "base/log.h"
#include "model/machine.h"
#include "plan/blocking.h"
#include "plan/neighbours.h"
#include "plan/nonblocking.h"
#include "plan/quiet_errors.h"
#include "plan/reserve.h"
#include "plan/session_communicators.h"
#include "plan/set_up.h"
#include "plan/unasked.h"
#include "select/pieces.h"
#include "select/sleeps.h"
#include "transport/mpi/host.h"
#include "transport/mpi/mpi_transport.h"
#if defined(THALWEG_SABOTEUR)
#include "transport/saboteur/saboteur.h"
#endif

namespace thalweg {

namespace {

// Numbers of the pool that are tried: two threads of a process may pick the same one for two communicators.
constexpr int picks = 8;

}  // namespace

Communicator::Communicator(MPI_Comm comm, World& world, bool is_inter, int rank, int size)
    : world_(world), record_(new CommunicatorRecord) {
    size_ = size;
    rank_ = rank;
    steering_ = world.steering();
    policy_ = world.policy();
    record_->size = size_;
    learn_name(comm);
    if (!world.settings().report.view().empty() && !is_inter) record_->topology = topology_of(comm);
    if (is_inter)
        go_native(Reason::intercommunicator);
    else if (size_ == 1)
        go_native(Reason::single);
    else if (SessionCommunicators::are_native(comm))
        go_native(Reason::session);
    registry().add(record_);
}

void Communicator::learn_name(MPI_Comm comm) noexcept try {
    const Host& mpi = *host();
    char name[MPI_MAX_OBJECT_NAME + 1] = "";
    int length = 0;
    if (mpi.Comm_get_name != nullptr && mpi.Comm_get_name(comm, name, &length) == MPI_SUCCESS)
        record_->name.assign(name, static_cast<std::size_t>(length));
} catch (const std::bad_alloc&) {
}

Communicator::~Communicator() {
    record_->freed.store(true, std::memory_order_release);
    trials = {};  // which tell the record of the last calls
    registry().retire(record_);
    const KeptMemory::InUse in_use(memory_);
    plans_.clear();
    blocking.reset();  // whose lane is on the channel
    close_channel();
}

// What every rank received, it received before its last operation ended; what it sent and others are still to
// receive concerns only pairs whose other rank has the number in use. After a failure nobody knows, and the
// number is not used again by this process. Where a channel could not be opened, or another number is to be
// tried, what asked for it (BlockingState::lane) goes on.
void Communicator::close_channel() {
    plans_.clear();
    channel_.reset();
    transport_.reset();
    mpi_transport_ = nullptr;
    if (pool_number_ >= 0 && broken) world_.pool().keep();
    if (pool_number_ >= 0 && !broken) world_.pool().give_back(pool_number_);
    pool_number_ = -1;
    if (counted_) world_.channels.fetch_sub(1, std::memory_order_relaxed);
    counted_ = false;
}

int Communicator::native_error() const {
    return mpi_transport_ == nullptr ? MPI_SUCCESS : mpi_transport_->last_error();
}

void Communicator::go_native(Reason reason) {
    phase_ = Phase::native;
    reason_ = reason;
}

void Communicator::follow_steering() {
    steering_ = world_.steering();
    plans_.clear();
    if (phase_ == Phase::surveyed || phase_ == Phase::ready) make_selector();
}

void Communicator::make_selector() {
    selector_ = selector_for(Collective::bcast, network_, sleeps());
    tried_.reset();
}

std::shared_ptr<const Selector> Communicator::selector_for(Collective collective, const Network& network,
                                                           bool sleeps, std::uint64_t ports) const {
    return shared_selector({collective, world_.generation(), sleeps, false, ports, network});
}

std::shared_ptr<const Selector> Communicator::selector_for_plans(Collective collective,
                                                                 bool neighbours) const {
    return shared_selector(
        {collective, world_.generation(), world_.sleeps(), true, 1, {}, false, neighbours});
}

std::shared_ptr<const Selector> Communicator::selector_for_overlapped(Collective collective,
                                                                      const Network& network, bool sleeps,
                                                                      std::uint64_t ports) const {
    return shared_selector({collective, world_.generation(), sleeps, false, ports, network, true});
}

std::shared_ptr<const Selector> Communicator::selector_for_neighbours(bool sleeps) const {
    return shared_selector({Collective::alltoallv, world_.generation(), sleeps, false, 1, {}, false, true});
}

Decision Communicator::foresee(Collective collective, std::uint64_t bytes) const {
    return selector_for_overlapped(collective, network_, true, told_ports_)->decide(bytes);
}

std::shared_ptr<const Selector> Communicator::shared_selector(const SelectorInputs& inputs) const {
    std::shared_ptr<const Selector> selector = world_.selectors().find(topology_, inputs);
    if (selector != nullptr) return selector;
    Selection selected = selection(inputs.collective, inputs.network, inputs.sleeps);
    selected.machine.inter.ports = inputs.ports;
    selected.persistent = inputs.persistent;
    selected.neighbours = inputs.neighbours;
    selected.overlapped = inputs.overlapped;
    selector = std::make_shared<const Selector>(inputs.collective, topology_, selected);
    world_.selectors().keep(selector, topology_, inputs);
    return selector;
}

Selection Communicator::selection(Collective collective, const Network& network, bool sleeps) const {
    Selection selection;
    const Settings& settings = world_.settings();
    selection.machine = in_standard_modes([&] {
        return Machine::from_options(
            settings.latency_us > 0 ? settings.latency_us : static_cast<double>(network.latency_ns) / 1e3,
            settings.rate > 0 ? settings.rate : static_cast<double>(network.bytes_per_second));
    });
    // The two that measured slept as well, unless the network answered before they would have.
    if (settings.latency_us <= 0 && sleeps) count_sleep(selection.machine);
    selection.family = host_family();
    selection.library = host()->library_version;
    selection.sleeps = sleeps;
    selection.forced = world_.steering().wishes[static_cast<std::size_t>(collective)].forced;
    selection.table = world_.table();
    // Before anything is known of the network, a table may still turn out to speak of it. Where nothing will
    // be, the model speaks of a network that it guessed.
    selection.tries_model = network.known() || network.in_vain || settings.rate > 0;
    selection.unknown = !selection.tries_model;
    return selection;
}

bool Communicator::survey_now(MPI_Comm comm) {
    if (phase_ == Phase::counting) survey(comm);
    return phase_ != Phase::native;
}

bool Communicator::gains(MPI_Comm comm, std::uint64_t bytes, bool at_once, Reason& why) {
    if (phase_ == Phase::counting) {
        ++eligible_calls_;
        eligible_bytes_ += bytes;
        if (!at_once && eligible_calls_ < worth_calls && eligible_bytes_ < worth_bytes) {
            why = Reason::not_worth_yet;
            return false;
        }
        survey(comm);
    }
    if (phase_ == Phase::native) why = reason_;
    return phase_ != Phase::native;
}

bool Communicator::open_now(MPI_Comm comm) {
    if (phase_ == Phase::surveyed) open_channel(comm);
    return phase_ == Phase::ready;
}

Communicator::Outcome Communicator::prepare(MPI_Comm comm, std::uint64_t bytes, Reason& why) {
    if (phase_ == Phase::native) {
        why = reason_;
        return Outcome::decline;
    }
    if (world_.generation() != steering_.generation) follow_steering();
    if (steering_.bcast_native) {
        why = Reason::native_setting;
        return Outcome::decline;
    }
    // Inside one host a set-up takes as long as many bytes: only calls count.
    const std::uint64_t counted = world_.single_host() ? 0 : bytes;
    if (!gains(comm, counted, steering_.bcast_forced.has_value(), why)) return Outcome::decline;
    if (bytes < selector_->native_below()) {
        why = Reason::native_best;
        return Outcome::decline;
    }
    return Outcome::go;
}

Trial* Communicator::broadcast_trial(std::uint64_t bytes, std::uint64_t decided_bytes) {
    if (!selector_->tries(decided_bytes)) return nullptr;
    if (!tried_) tried_.emplace(selector_);
    return &trials.of_broadcasts(bytes, topology_.nodes() == 1);
}

// Makes the channel, on all ranks or on none, with a number of the world's pool. Where none is left the
// communicator stays native: to create another one here could wait for what another thread creates.
void Communicator::open_channel(MPI_Comm comm) {
    const Host& mpi = *host();
    QuietErrors quiet(comm);
    RankMap places;
    bool all = false;
    const bool ready =
        !failed(memory_.staging.reserve(piece_bytes)) && !failed(world_.locate(comm, all, &places)) && all;
    Opened opened = Opened::taken;
    for (int pick = 0; pick < picks && opened == Opened::taken; ++pick) {
        const bool full = world_.channels.load() >= world_.settings().max_communicators;
        // [trouble, the cap is reached, numbers in use, rank 0's seed]
        std::uint64_t any[4] = {!ready, full, world_.pool().in_use(),
                                rank_ == 0 ? world_.pool().next_seed(world_.rank()) : 0};
        agree_on(comm, mpi.bor, any);
        if (any[0] != 0) return go_native(Reason::setup_failed);
        const int number = any[1] != 0 ? -1 : ChannelPool::pick(any[2], any[3]);
        if (number < 0) break;
        opened = open_in_pool(comm, places, number);
    }
    if (opened == Opened::taken) {
        THALWEG_LOG_AT(
            info, "all channels are in use (THALWEG_MAX_COMMUNICATORS=%llu); a communicator stays native",
            static_cast<unsigned long long>(world_.settings().max_communicators));
        return go_native(Reason::too_many);
    }
    if (opened == Opened::no) {
        close_channel();
        return go_native(Reason::setup_failed);
    }
    record_->sleeps = sleeps();
    phase_ = Phase::ready;
    // Decisions made before are of a network that was guessed; those after follow what was measured, by this
    // communicator or by one that some of its ranks share.
    learn_network(comm, world_, rank_, topology_, places, network_);
    if (!network_.known() && !network_.in_vain) return;
    make_selector();
    Unasked::settle_broadcasts(comm);
    plans_.clear();
}

Communicator::Opened Communicator::open_in_pool(MPI_Comm comm, const RankMap& places, int number) {
    const bool claimed = world_.pool().claim(number);
    if (claimed) pool_number_ = number;
    const Opened opened = agree_on_opened(comm, !claimed, claimed && make_transport(places));
    if (opened != Opened::yes) close_channel();
    return opened;
}

// On the pool's communicator, whose ranks `places` are. False: no memory.
bool Communicator::make_transport(const RankMap& places) try {
    Limits limits;
    limits.in_flight = static_cast<std::uint32_t>(world_.settings().in_flight);
    limits.credit_bytes = world_.settings().credit_bytes;
    // Twice the window: one operation may start while the sends of the one before are still leaving.
    const Slot slots = 2 * limits.in_flight;
    std::unique_ptr<MpiTransport> transport = MpiTransport::make_beside_others(
        {world_.pool().comm(), rank_, size_, places, static_cast<unsigned>(pool_number_)}, slots);
    mpi_transport_ = transport.get();
    transport_ = std::move(transport);
#if defined(THALWEG_SABOTEUR)
    transport_ = sabotaged(std::move(transport_));
#endif
    if (transport_ != nullptr) channel_ = make_channel(*transport_, limits);
    world_.channels.fetch_add(1, std::memory_order_relaxed);
    counted_ = true;
    return channel_ != nullptr;
} catch (const std::bad_alloc&) {
    return false;
}

// Whether all ranks have it all; and what any of them knows of the network.
Communicator::Opened Communicator::agree_on_opened(MPI_Comm comm, bool taken, bool opened) {
    const Network known = world_.network();
    std::uint64_t most[4] = {taken, !opened && !taken, known.latency_ns, known.bytes_per_second};
    agree_on(comm, host()->max, most);
    if (most[1] != 0) return Opened::no;
    if (most[0] != 0) return Opened::taken;
    network_ = {most[2], most[3]};
    return Opened::yes;
}

Status Communicator::plan(MPI_Comm comm, std::uint64_t bytes, int root, std::uint64_t decided_bytes,
                          Plan*& plan) {
    plan = plans_.find(bytes, root, decided_bytes);
    if (plan != nullptr) return Status::ok;
    Decision decision = selector_->decide(decided_bytes);
    if (decision.choice && phase_ == Phase::surveyed) {
        open_channel(comm);
        if (phase_ == Phase::ready) decision = selector_->decide(decided_bytes);
    }
    // The others may have the memory and run: what is kept for other calls goes first, then the reserve
    // lends.
    for (const bool last : {false, true}) {
        try {
            plan = &plans_.insert(make_plan(decision, bytes, root, decided_bytes));
            return Status::ok;
        } catch (const std::bad_alloc&) {
            if (last) break;
            plans_.clear();
            KeptMemory::give_up_idle();
        }
    }
    return Status::out_of_memory;
}

Plan Communicator::make_plan(Decision decision, std::uint64_t bytes, int root, std::uint64_t decided_bytes) {
    const std::size_t reserve_before = reserve_in_use();
    Plan made;
    made.bytes = bytes;
    made.root = root;
    made.decided_bytes = decided_bytes;
    const Problem problem{rank_, size_, root, bytes};
    if (decision.choice && phase_ == Phase::native) {
        decision.choice.reset();
        made.native_reason = reason_;
    }
    if (decision.choice) {
        std::string_view refused = decision.choice->algorithm->refuse(problem, topology_, *decision.choice);
        // By a bound that is equal on all ranks: whether the reserve suffices must not depend on who needs
        // it.
        if (refused.empty() && most_steps(*decision.choice, problem, topology_) > most_plan_steps)
            refused = "a rank's part of it could exceed the memory that is set aside";
        if (!refused.empty() && bytes < decided_bytes) {
            // A last piece too small for the algorithm of the others. The simplest one serves everything.
            decision.choice = standard_choice(*find_algorithm(Collective::bcast, "linear"));
        } else if (!refused.empty()) {
            decision.reason = refused;
            decision.choice.reset();
            made.native_reason = Reason::cannot;
        }
    }
    made.reason = decision.reason;
    if (!decision.choice) {
        made.tally = &record_->declined(made.native_reason, size_class(bytes));
    } else {
        made.algorithm = to_text(*decision.choice);
        auto schedule =
            suited_to(*channel_, std::make_shared<const Schedule>(decision.choice->algorithm->build(
                                     problem, topology_, *decision.choice)));
        // A step with its dependencies and the engine's book-keeping for it is about 128 bytes.
        made.footprint_bytes = schedule->scratch_bytes() + 128 * schedule->steps().size();
        made.execution = std::make_unique<Execution>(std::move(schedule), channel_);
        made.tally = &record_->accelerated(made.algorithm, size_class(bytes));
    }
    made.transient = reserve_in_use() > reserve_before;
    return made;
}

void Communicator::relieve_reserve() {
    plans_.drop_transient();
    if (!reserve_is_kept()) return;
    if (blocking != nullptr) blocking->drop_idle();
    if (self_driven.state != nullptr) self_driven.state->drop_idle();
    KeptMemory::give_up_idle();
    reserve_was_relieved();
}

}  // namespace thalweg
