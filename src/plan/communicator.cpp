#include "plan/communicator.h"

#include <cstring>
#include <mutex>
#include <new>
#include <vector>

#include "base/log.h"
#include "model/machine.h"
#include "plan/keyvals.h"
#include "transport/mpi/host.h"
#include "transport/mpi/mpi_transport.h"
#if defined(THALWEG_SABOTEUR)
#include "transport/saboteur/saboteur.h"
#endif

namespace thalweg {

namespace {

// A private communicator and everything around it cost about as much as moving this much; before, the native
// library has the calls.
constexpr std::uint64_t worth_calls = 8;
constexpr std::uint64_t worth_bytes = 1u << 20;

// What a hop costs beyond the network where ranks sleep while they wait: about one sleep and a wake-up.
constexpr Picoseconds sleeping_hop = 30'000'000;

// Private communicators of user communicators that were freed in a way we did not see coming (an attribute
// callback at some rank's leisure). Freed when the next communicator is set up.
constinit std::mutex graveyard_mutex;
std::vector<Communicator*>& graveyard() {
    static auto* const list = new std::vector<Communicator*>;
    return *list;
}

// While we speak on the user's communicator its error handler must not see our errors: they only mean that
// the native library gets the call.
class QuietErrors {
  public:
    explicit QuietErrors(MPI_Comm comm) : comm_(comm) {
        const Host& mpi = *host();
        quiet_ = mpi.Comm_get_errhandler(comm, &handler_) == MPI_SUCCESS &&
                 mpi.Comm_set_errhandler(comm, mpi.errors_return) == MPI_SUCCESS;
    }
    ~QuietErrors() {
        if (!quiet_) return;
        const Host& mpi = *host();
        mpi.Comm_set_errhandler(comm_, handler_);
        mpi.Errhandler_free(&handler_);
    }
    QuietErrors(const QuietErrors&) = delete;
    QuietErrors& operator=(const QuietErrors&) = delete;

  private:
    MPI_Comm comm_;
    MPI_Errhandler handler_;
    bool quiet_ = false;
};

// The largest of each rank's values. False: MPI failed.
template <int count>
bool largest(MPI_Comm comm, std::uint64_t (&values)[count]) {
    std::uint64_t most[count];
    const Host& mpi = *host();
    if (mpi.Allreduce(values, most, count, mpi.uint64, mpi.max, comm) != MPI_SUCCESS) return false;
    std::memcpy(values, most, sizeof most);
    return true;
}

// The native MPI's name in tuning tables.
std::string family_of(const char* library_version) {
    const std::string_view version = library_version;
    if (version.find("Open MPI") != version.npos) return "openmpi";
    if (version.find("Intel") != version.npos) return "impi";
    return "mpich";
}

}  // namespace

Communicator* Communicator::existing(MPI_Comm comm) {
    void* value = nullptr;
    int found = 0;
    if (host()->Comm_get_attr(comm, keyvals().comm, &value, &found) != MPI_SUCCESS || !found) return nullptr;
    return static_cast<Communicator*>(value);
}

Communicator* Communicator::of(MPI_Comm comm, World& world) {
    if (Communicator* const known = existing(comm)) return known;
    std::unique_ptr<Communicator> made(new (std::nothrow) Communicator(comm, world));
    if (made == nullptr || host()->Comm_set_attr(comm, keyvals().comm, made.get()) != MPI_SUCCESS)
        return nullptr;
    return made.release();
}

Communicator::Communicator(MPI_Comm comm, World& world) : world_(world), record_(new CommunicatorRecord) {
    const Host& mpi = *host();
    int is_inter = 0;
    mpi.Comm_test_inter(comm, &is_inter);
    mpi.Comm_size(comm, &size_);
    mpi.Comm_rank(comm, &rank_);
    steering_ = world.steering();
    record_->size = size_;
    char name[MPI_MAX_OBJECT_NAME + 1] = "";
    int length = 0;
    if (mpi.Comm_get_name != nullptr && mpi.Comm_get_name(comm, name, &length) == MPI_SUCCESS)
        record_->name.assign(name, static_cast<std::size_t>(length));
    if (is_inter)
        go_native(Reason::intercommunicator);
    else if (size_ == 1)
        go_native(Reason::single);
    registry().add(record_);
}

Communicator::~Communicator() {
    registry().retire(record_);
    plans_.clear();
    channel_.reset();
    transport_.reset();
    if (has_channel_comm_) {
        host()->Comm_free(&channel_comm_);
        world_.channels.fetch_sub(1, std::memory_order_relaxed);
    }
}

int Communicator::native_error() const {
    return mpi_transport_ == nullptr ? MPI_SUCCESS : mpi_transport_->last_error();
}

void Communicator::go_native(Reason reason) {
    phase_ = Phase::native;
    reason_ = reason;
}

void Communicator::bury(Communicator* dead) {
    if (!dead->has_channel_comm_) {
        delete dead;
        return;
    }
    registry().retire(dead->record_);
    std::lock_guard lock(graveyard_mutex);
    graveyard().push_back(dead);
}

void Communicator::release(MPI_Comm comm) {
    Communicator* const state = existing(comm);
    if (state == nullptr) return;
    // The callback buries it; nobody else can see it any more, so it is dug out and freed here.
    host()->Comm_delete_attr(comm, keyvals().comm);
    free_buried();
}

// MPI_Comm_free is collective by the standard but waits for nobody in the libraries we know, so that ranks
// may free several private communicators in different orders.
void Communicator::free_buried() {
    std::vector<Communicator*> dead;
    {
        std::lock_guard lock(graveyard_mutex);
        dead.swap(graveyard());
    }
    for (Communicator* communicator : dead) delete communicator;
}

void Communicator::follow_steering() {
    steering_ = world_.steering();
    plans_.clear();
    if (phase_ == Phase::surveyed || phase_ == Phase::ready) make_selector();
}

void Communicator::make_selector() {
    Selection selection;
    const Settings& settings = world_.settings();
    selection.machine = Machine::from_options(
        settings.latency_us > 0 ? settings.latency_us : static_cast<double>(network_.latency_ns) / 1e3,
        settings.rate > 0 ? settings.rate : static_cast<double>(network_.bytes_per_second));
    // Measured while both ends polled; a rank that sleeps sees a message this much later.
    if (settings.latency_us <= 0 && policy_ == WaitPolicy::sleep)
        selection.machine.inter.latency += sleeping_hop;
    selection.family = family_of(host()->library_version);
    selection.forced = steering_.bcast_forced;
    selection.table = world_.table();
    selector_.emplace(Collective::bcast, topology_, selection);
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
    if (phase_ == Phase::counting) {
        ++eligible_calls_;
        eligible_bytes_ += bytes;
        if (!steering_.bcast_forced && eligible_calls_ < worth_calls && eligible_bytes_ < worth_bytes) {
            why = Reason::not_worth_yet;
            return Outcome::decline;
        }
        survey(comm);
        if (phase_ == Phase::native) {
            why = reason_;
            return Outcome::decline;
        }
    }
    if (bytes < selector_->native_below()) {
        why = Reason::native_best;
        return Outcome::decline;
    }
    return Outcome::go;
}

// Finds out where the ranks are. Without communication where the world is one host.
void Communicator::survey(MPI_Comm comm) {
    bool all = false;
    if (failed(world_.contains(comm, all)) || !all) return go_native(Reason::foreign);
    if (world_.single_host()) {
        topology_ = Topology::single_node(size_);
    } else {
        const Host& mpi = *host();
        QuietErrors quiet(comm);
        const std::uint64_t mine = world_.host_key();
        std::unique_ptr<std::uint64_t[]> keys(new (std::nothrow) std::uint64_t[size_]);
        std::uint64_t trouble[1] = {keys == nullptr};
        if (!largest(comm, trouble) || trouble[0] != 0) return go_native(Reason::setup_failed);
        if (mpi.Allgather(&mine, 1, mpi.uint64, keys.get(), 1, mpi.uint64, comm) != MPI_SUCCESS)
            return go_native(Reason::setup_failed);
        topology_ = Topology::from_table({keys.get(), static_cast<std::size_t>(size_)});
    }
    make_selector();
    record_->nodes = topology_.nodes();
    phase_ = Phase::surveyed;
}

// Makes the private communicator and what runs on it, on all ranks or on none.
void Communicator::open_channel(MPI_Comm comm) {
    const Host& mpi = *host();
    QuietErrors quiet(comm);
    free_buried();
    std::uint64_t trouble[2] = {failed(staging_.reserve(piece_bytes)), world_.channels.load()};
    if (!largest(comm, trouble) || trouble[0] != 0) return go_native(Reason::setup_failed);
    if (trouble[1] >= world_.settings().max_communicators) {
        THALWEG_LOG_AT(info, "THALWEG_MAX_COMMUNICATORS=%llu reached; further communicators stay native",
                       static_cast<unsigned long long>(world_.settings().max_communicators));
        return go_native(Reason::too_many);
    }

    MPI_Group group;
    bool opened = false;
    if (mpi.Comm_group(comm, &group) == MPI_SUCCESS) {
        has_channel_comm_ = mpi.Comm_create(comm, group, &channel_comm_) == MPI_SUCCESS;
        mpi.Group_free(&group);
    }
    if (has_channel_comm_) {
        world_.channels.fetch_add(1, std::memory_order_relaxed);
        mpi.Comm_set_errhandler(channel_comm_, mpi.errors_return);
        try {
            Limits limits;
            limits.in_flight = static_cast<std::uint32_t>(world_.settings().in_flight);
            limits.credit_bytes = world_.settings().credit_bytes;
            int error = MPI_SUCCESS;
            // Twice the window: one operation may start while the sends of the one before are still leaving.
            auto transport = MpiTransport::make(channel_comm_, 2 * limits.in_flight, error);
            mpi_transport_ = transport.get();
            transport_ = std::move(transport);
#if defined(THALWEG_SABOTEUR)
            if (const auto sabotage = saboteur_options_from_environment(); transport_ && sabotage)
                transport_ = make_saboteur(std::move(transport_), *sabotage);
#endif
            if (transport_ != nullptr) channel_ = make_channel(*transport_, limits);
            opened = channel_ != nullptr;
        } catch (const std::bad_alloc&) {
        }
    }
    const Network known = world_.network();
    std::uint64_t closed[3] = {!opened, known.latency_ns, known.bytes_per_second};
    if (!largest(comm, closed) || closed[0] != 0) return go_native(Reason::setup_failed);
    network_ = {closed[1], closed[2]};
    const WaitSetting wait = world_.settings().wait;
    const bool sleeps = wait == WaitSetting::sleep || (wait == WaitSetting::automatic && world_.crowded());
    policy_ = sleeps ? WaitPolicy::sleep : WaitPolicy::spin;
    record_->sleeps = sleeps;
    phase_ = Phase::ready;
    learn_network();
}

// Decisions made before are of a network that was guessed; those after follow what was measured, by this
// communicator or by one that some of its ranks share.
void Communicator::learn_network() {
    const Settings& settings = world_.settings();
    if (topology_.nodes() < 2 || (settings.rate > 0 && settings.latency_us > 0)) return;
    if (!network_.known()) network_ = measure_network(channel_comm_, topology_, rank_);
    if (!network_.known()) return;
    world_.learn(network_);
    if (rank_ == 0)
        THALWEG_LOG_AT(info, "the network between hosts: %.3g us, %.4g MB/s",
                       static_cast<double>(network_.latency_ns) / 1e3,
                       static_cast<double>(network_.bytes_per_second) / 1e6);
    make_selector();
    plans_.clear();
}

Status Communicator::plan(MPI_Comm comm, std::uint64_t bytes, int root, std::uint64_t decided_bytes,
                          Plan*& plan) try {
    plan = plans_.find(bytes, root, decided_bytes);
    if (plan != nullptr) return Status::ok;
    Decision decision = selector_->decide(decided_bytes);
    if (decision.choice && phase_ == Phase::surveyed) {
        open_channel(comm);
        if (phase_ == Phase::ready) decision = selector_->decide(decided_bytes);
    }
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
        const std::string_view refused =
            decision.choice->algorithm->refuse(problem, topology_, *decision.choice);
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
        plan = &plans_.insert(std::move(made));
        return Status::ok;
    }
    made.algorithm = to_text(*decision.choice);
    auto schedule = std::make_shared<const Schedule>(
        decision.choice->algorithm->build(problem, topology_, *decision.choice));
    // A step with its dependencies and the engine's book-keeping for it is about 128 bytes.
    made.footprint_bytes = schedule->scratch_bytes() + 128 * schedule->steps().size();
    made.execution = std::make_unique<Execution>(std::move(schedule), channel_);
    made.tally = &record_->accelerated(made.algorithm, size_class(bytes));
    plan = &plans_.insert(std::move(made));
    return Status::ok;
} catch (const std::bad_alloc&) {
    return Status::out_of_memory;
}

}  // namespace thalweg
