#include "plan/window_plan.h"

#include <time.h>

#include <array>
#include <atomic>
#include <new>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "plan/attendance.h"
#include "plan/plan_request.h"
#include "plan/quiet_errors.h"
#include "plan/requests.h"
#include "plan/reserve.h"
#include "plan/session_communicators.h"
#include "plan/set_up.h"
#include "schedule/builder.h"

namespace thalweg {

// A channel whose only message stands for an epoch: its send starts one and is complete when that is over. So
// the engine drives a window plan as it drives schedules, and the agent where that may call MPI.
class WindowTransport final : public Transport {
  public:
    WindowTransport(std::shared_ptr<WindowGround> ground, std::unique_ptr<RmaAlltoallv> plan, EpochWay way,
                    int rank, int size, bool any_thread)
        : ground_(std::move(ground)),
          plan_(std::move(plan)),
          blocks_(start_blocks(way)),
          rank_(rank),
          size_(size) {
        capabilities_.name = "windows";
        capabilities_.max_message_bytes = SIZE_MAX;
        capabilities_.any_thread = any_thread;
    }

    const std::atomic<int>& error() const { return noted_error_; }
    const Capabilities& capabilities() const override { return capabilities_; }
    int rank() const override { return rank_; }
    int size() const override { return size_; }
    Slot slots() const override { return 2; }
    Status grow(Slot slots) override { return slots <= 2 ? Status::ok : Status::unsupported; }

    Status post_send(Slot slot, int, MessageId, const void*, std::size_t, SendMode) override {
        slot_ = slot;
        running_ = true;
        polled_ = false;
        if (const int error = plan_->start(); error != MPI_SUCCESS) return note(error);
        if (blocks_) ordered();
        return Status::ok;
    }
    Status post_recv(Slot, int, MessageId, void*, std::size_t) override { return Status::unsupported; }

    Status progress(std::span<Slot> done, std::size_t& count) override {
        count = 0;
        if (!running_ || done.empty()) return Status::ok;
        bool over = false;
        int error = MPI_SUCCESS;
        if (!blocks_) {
            error = plan_->look(over);
        } else if (polled_) {
            error = complete_in_order();
            over = true;
        }
        // MPI_Start looks once for what is complete at once, and must not wait for the end.
        polled_ = true;
        if (error != MPI_SUCCESS) return note(error);
        if (!over) return Status::ok;
        running_ = false;
        done[count++] = slot_;
        return Status::ok;
    }

  private:
    Status note(int error) {
        noted_error_.store(error, std::memory_order_relaxed);
        THALWEG_LOG_AT(error, "an exchange over windows failed: MPI error %d", error);
        return Status::transport_failed;
    }

    void ordered() {
        const std::lock_guard lock(ground_->mutex_);
        next_started_ = nullptr;
        claimed_ = completed_ = false;
        WindowTransport** end = &ground_->started_;
        while (*end != nullptr) end = &(*end)->next_started_;
        *end = this;
    }

    // Completes the older ones of the communicator first: all ranks started them in this order. Whoever waits
    // for those finds them done.
    int complete_in_order() {
        for (std::uint64_t began_ns = 0;;) {
            WindowTransport* oldest = nullptr;
            {
                const std::lock_guard lock(ground_->mutex_);
                if (completed_) return error_;
                oldest = ground_->started_;
                if (oldest->claimed_)
                    oldest = nullptr;  // by another thread
                else
                    oldest->claimed_ = true;
            }
            if (oldest == nullptr) {
                began_ns = pause_between(began_ns);
                continue;
            }
            const int error = oldest->plan_->wait();
            const std::lock_guard lock(ground_->mutex_);
            ground_->started_ = oldest->next_started_;
            oldest->error_ = error;
            oldest->completed_ = true;
        }
    }

    std::shared_ptr<WindowGround> ground_;  // the plan gives its window back there
    std::unique_ptr<RmaAlltoallv> plan_;
    const bool blocks_;
    const int rank_, size_;
    Capabilities capabilities_;
    Slot slot_ = 0;
    bool running_ = false, polled_ = false;
    std::atomic<int> noted_error_{MPI_SUCCESS};
    // Under the ground's mutex.
    WindowTransport* next_started_ = nullptr;
    bool claimed_ = false, completed_ = false;
    int error_ = MPI_SUCCESS;
};

namespace {

// What goes where, by peer.
struct Tables {
    std::vector<std::uint64_t> send_bytes, receive_bytes;
    std::vector<MPI_Aint> send_at, receive_at;
    std::vector<char> near;

    Tables(int rank, const Topology& topology, const CollectiveCall& call, const CallShape& shape,
           const std::optional<Exchange>& exchange) {
        const auto size = static_cast<std::size_t>(topology.size());
        for (auto* bytes : {&send_bytes, &receive_bytes}) bytes->assign(size, 0);
        for (auto* places : {&send_at, &receive_at}) places->assign(size, 0);
        for (int peer = 0; peer < topology.size(); ++peer)
            near.push_back(topology.node_of(peer) == topology.node_of(rank));
        if (!call.has_letters()) {
            for (std::size_t peer = 0; peer < size; ++peer) {
                send_bytes[peer] = receive_bytes[peer] = shape.bytes;
                send_at[peer] = receive_at[peer] = static_cast<MPI_Aint>(peer * shape.bytes);
            }
            return;
        }
        const auto fill = [](const std::vector<Parcel>& parcels, std::vector<std::uint64_t>& bytes,
                             std::vector<MPI_Aint>& places) {
            for (const Parcel& parcel : parcels) {
                bytes[static_cast<std::size_t>(parcel.peer)] = parcel.bytes;
                places[static_cast<std::size_t>(parcel.peer)] = static_cast<MPI_Aint>(parcel.offset);
            }
        };
        fill(exchange->outgoing, send_bytes, send_at);
        fill(exchange->incoming, receive_bytes, receive_at);
    }
};

// The program's memory, bound to an operation without parts. Null: no memory here, or none where MPI expects
// some, which the path of messages finds out again.
std::unique_ptr<Ongoing> bind_memory(const CollectiveCall& call, const CallShape& shape,
                                     Communicator& communicator, const World& world, std::string_view name,
                                     RunKey& key) try {
    Ongoing::Options options;
    options.record = communicator.shared_record();
    options.tally = &communicator.record().accelerated(std::string(name), size_class(shape.bytes), call.kind);
    options.policy = world.policy();
    options.bytes = shape.total;
    options.persistent = options.numbered = options.stores = true;
    auto ongoing = std::make_unique<Ongoing>(std::move(options));
    if (call.has_letters()) key.exchange.emplace();
    if (claim_request(*ongoing) && !failed(bind(call, shape, communicator.size(), *ongoing, key)))
        return ongoing;
    ongoing->release();
    return nullptr;
} catch (const std::bad_alloc&) {
    return nullptr;
}

// The one step that stands for an epoch. Throws std::bad_alloc.
std::unique_ptr<Run> borrow_epoch(Lane& lane, const RunKey& key, int rank, int size) {
    return lane.borrow(key, [rank, size] {
        Builder builder(rank, size);
        builder.send((rank + 1) % size, {Buffer::in, 0, 0});
        return std::move(builder).finish();
    });
}

// Puts the epoch behind the operation's one step. False: no memory.
bool add_part(Ongoing& ongoing, const World& world, std::unique_ptr<WindowTransport> transport, Agent* agent,
              const RunKey& key) try {
    const int rank = transport->rank(), size = transport->size();
    const std::atomic<int>& error = transport->error();
    auto lane = std::make_shared<Lane>(world, std::move(transport), agent);
    lane->take_errors_from(error);
    ongoing.options().lane = lane;
    ongoing.parts().push_back({borrow_epoch(*lane, key, rank, size), 0, 0});
    return true;
} catch (const std::bad_alloc&) {
    return false;
}

// Null where the ranks have none of it, or this one could not prepare it. Throws AgreementFailed.
std::unique_ptr<RmaAlltoallv> make_exchange(WindowGround& ground, const ByteBlocks& blocks,
                                            const RmaOptions& options, int& error) {
    std::unique_ptr<RmaAlltoallv> made =
        RmaAlltoallv::make(*host(), ground.comm(), ground.pool(), blocks, options, error);
    if (made == nullptr && ground.pool().out_of_step()) throw AgreementFailed{error};
    return made;
}

bool anywhere(MPI_Comm comm, bool trouble) {
    std::uint64_t any[1] = {trouble};
    agree_on(comm, host()->max, any);
    return any[0] != 0;
}

// What the agent shows before plans over windows are left to it.
enum class Carries : std::uint8_t { unknown, yes, no };
constinit std::array<std::atomic<Carries>, std::size(epoch_way_names)> agent_carries_it{};
constexpr std::uint64_t longest_trial_ns = 5'000'000'000;
constexpr long trial_nap_ns = 50'000;

// One word to the next rank, while this thread stays out of MPI.
struct AgentTrial {
    std::uint64_t given, got = 0;
    std::vector<std::uint64_t> send_bytes, receive_bytes;
    std::vector<MPI_Aint> at;
    std::shared_ptr<Lane> lane;
    std::unique_ptr<Run> run;

    AgentTrial(int rank, int size) : given(static_cast<std::uint64_t>(rank) + 1) {
        const auto ranks = static_cast<std::size_t>(size);
        send_bytes.resize(ranks);
        receive_bytes.resize(ranks);
        at.resize(ranks);
        send_bytes[static_cast<std::size_t>((rank + 1) % size)] = sizeof given;
        receive_bytes[static_cast<std::size_t>((rank + size - 1) % size)] = sizeof got;
    }
    // False: it takes too long, and is still under way.
    bool over() const {
        const std::uint64_t began_ns = now_ns();
        while (run->operation.pending()) {
            if (now_ns() - began_ns > longest_trial_ns) return false;
            const timespec nap{0, trial_nap_ns};
            clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, nullptr);
        }
        return true;
    }
};

// Whether an epoch gets to its end, and the bytes to their place, by the agent's calls alone: a library may
// promise MPI_THREAD_MULTIPLE, and have one-sided calls that do nothing beside the thread that made the
// window. Tried once in a process for each way. Collective; the same on all ranks.
bool agent_carries(MPI_Comm comm, const std::shared_ptr<WindowGround>& ground, const World& world, int rank,
                   int size, const RmaOptions& options, Agent& agent) {
    std::atomic<Carries>& known = agent_carries_it[static_cast<std::size_t>(options.way)];
    // [some rank has not tried it, some rank's failed]
    std::uint64_t any[2] = {known == Carries::unknown, known == Carries::no};
    agree_on(comm, host()->max, any);
    if (any[1] != 0 || any[0] == 0) return any[1] == 0;
    std::unique_ptr<AgentTrial> trial;
    try {
        trial = std::make_unique<AgentTrial>(rank, size);
    } catch (const std::bad_alloc&) {
    }
    if (anywhere(comm, trial == nullptr)) return false;
    int error = MPI_SUCCESS;
    std::unique_ptr<RmaAlltoallv> plan = make_exchange(
        *ground, {&trial->given, &trial->got, trial->send_bytes, trial->receive_bytes, trial->at, trial->at},
        options, error);
    if (plan != nullptr) try {
            auto transport =
                std::make_unique<WindowTransport>(ground, std::move(plan), options.way, rank, size, true);
            trial->lane = std::make_shared<Lane>(world, std::move(transport), &agent);
            trial->run = borrow_epoch(*trial->lane, RunKey(), rank, size);
        } catch (const std::bad_alloc&) {
        }
    if (anywhere(comm, trial->run == nullptr)) return false;
    const Bindings bindings{&trial->given, &trial->got, {}};
    const bool started = trial->lane->driven().hand_over(trial->run->operation, bindings, 0) == Status::ok;
    const bool over = trial->over();
    const auto expected = static_cast<std::uint64_t>((rank + size - 1) % size) + 1;
    const bool right =
        started && over && trial->run->operation.status() == Status::ok && trial->got == expected;
    if (!over) (void)trial.release();  // MPI may still write there
    const bool everywhere = !anywhere(comm, !right);
    known = everywhere ? Carries::yes : Carries::no;
    return everywhere;
}

}  // namespace

const char* shortcoming_of(EpochWay way) {
    if (start_blocks(way)) return "blocking synchronisation, not conforming";
    return Attendance::any_thread_may_call_mpi() ? ""
                                                 : "only its completion calls advance it, not conforming";
}

std::unique_ptr<Ongoing> make_window_plan(const CollectiveCall& call, const CallShape& shape,
                                          Communicator& communicator, World& world, RmaOptions options) {
    const QuietErrors quiet(call.comm);
    const Host& mpi = *host();
    if (!communicator.survey_now(call.comm) || communicator.size() < 2) return nullptr;
    std::shared_ptr<WindowGround>& ground = communicator.self_driven.windows;
    const std::string_view name = name_of(options.way);
    if (misplaces_windows(mpi))
        THALWEG_LOG_AT(info, "%.*s: %s may put beside a window; messages instead",
                       static_cast<int>(name.size()), name.data(), mpi.library_version);
    if (anywhere(call.comm, !has_rma_alltoallv(mpi) || SessionCommunicators::may_outlive_world(call.comm)))
        return nullptr;
    if (ground == nullptr) ground = WindowGround::make(call.comm, communicator.rank() == 0, world);
    if (ground == nullptr) return nullptr;

    RunKey key;
    key.collective = call.collective;
    std::unique_ptr<Ongoing> ongoing = bind_memory(call, shape, communicator, world, name, key);
    std::optional<Tables> tables;
    if (ongoing != nullptr) try {
            tables.emplace(communicator.rank(), communicator.topology(), call, shape, key.exchange);
        } catch (const std::bad_alloc&) {
        }
    Agent* const agent = start_blocks(options.way) ? nullptr : Attendance::agent_that_calls_mpi(world);
    const bool unattended =
        agent == nullptr && !start_blocks(options.way) && Attendance::any_thread_may_call_mpi();
    if (anywhere(call.comm, !tables || unattended)) {
        if (ongoing != nullptr) ongoing->release();
        return nullptr;
    }
    if (agent != nullptr &&
        !agent_carries(call.comm, ground, world, communicator.rank(), communicator.size(), options, *agent)) {
        THALWEG_LOG_AT(info, "%.*s: the progress thread cannot advance it; messages instead",
                       static_cast<int>(name.size()), name.data());
        ongoing->release();
        return nullptr;
    }
    options.near = tables->near;
    int error = MPI_SUCCESS;
    std::unique_ptr<RmaAlltoallv> plan =
        make_exchange(*ground,
                      {ongoing->input().data(), ongoing->buffer().data(), tables->send_bytes,
                       tables->receive_bytes, tables->send_at, tables->receive_at},
                      options, error);
    // What comes behind is small.
    bool ready = plan != nullptr && reserve_has_room();
    if (ready) {
        std::unique_ptr<WindowTransport> transport(
            new (std::nothrow) WindowTransport(ground, std::move(plan), options.way, communicator.rank(),
                                               communicator.size(), agent != nullptr));
        ready = transport != nullptr && add_part(*ongoing, world, std::move(transport), agent, key);
        ongoing->options().unattended = agent == nullptr && !start_blocks(options.way);
    }
    if (!anywhere(call.comm, !ready)) return ongoing;
    THALWEG_LOG_AT(info, "%.*s: windows cannot be used (MPI error %d); messages instead",
                   static_cast<int>(name.size()), name.data(), error);
    ongoing->release();
    return nullptr;
}

}  // namespace thalweg
