// What we keep for one of the user's communicators, as an attribute of it. Made at its first broadcast above
// the threshold; everything dear (a survey of its hosts, a channel) waits until it pays, by counts that are
// equal on all its ranks, and happens inside a blocking broadcast.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "engine/engine.h"
#include "plan/kept_memory.h"
#include "plan/neighbour_sizes.h"
#include "plan/statistics.h"
#include "plan/trials.h"
#include "plan/world.h"
#include "select/decisions.h"
#include "select/select.h"
#include "topology/topology.h"
#include "transport/transport.h"

namespace thalweg {

class BlockingState;
class MpiTransport;
class NonblockingState;
struct Neighbourhood;
class NativeGround;
class WindowGround;

// Thrown where MPI says of a handle that it is no communicator's. It has called the program's error handler
// then, once, as it would have in the call that is to be answered with `error`.
struct NoCommunicator {
    int error;

    // Throws where a call of ours that asked MPI about the handle says so: `error` is what it returned, and
    // `answered` whether it wrote what it was asked for.
    static void check(int error, bool answered);
};

class Communicator {
  public:
    enum class Phase : std::uint8_t {
        counting,  // nothing dear was done yet
        surveyed,  // the topology is known and decisions are made
        ready,     // there is a channel
        native,    // for good: reason() says why
    };

    // The state of `comm`, made when it has none. Null when there is no memory, or while
    // the communicator is freed. Costs one attribute look-up.
    // Throws NoCommunicator.
    static Communicator* of(MPI_Comm comm, World& world);
    // The state that exists, or null.
    static Communicator* existing(MPI_Comm comm);
    // The same; throws NoCommunicator.
    static Communicator* known(MPI_Comm comm);
    // In the collective MPI_Comm_free or MPI_Comm_disconnect of its communicator: frees the channel, and it.
    void release(MPI_Comm comm);
    // In the attribute's delete callback, whenever MPI runs it: makes no MPI call.
    static void bury(Communicator* dead);

    ~Communicator();
    Communicator(const Communicator&) = delete;
    Communicator& operator=(const Communicator&) = delete;

    int rank() const { return rank_; }
    int size() const { return size_; }
    Phase phase() const { return phase_; }
    Reason reason() const { return reason_; }
    CommunicatorRecord& record() { return *record_; }
    const std::shared_ptr<CommunicatorRecord>& shared_record() const { return record_; }
    // For the report: programs name a communicator after it was made. Without memory the name stays.
    void learn_name(MPI_Comm comm) noexcept;
    WaitPolicy policy() const { return policy_; }
    KeptMemory& memory() { return memory_; }

    // Counts one eligible broadcast and does what has become worth doing. Collective over the communicator,
    // because all its ranks count alike. Afterwards: ready or surveyed where plan() may be asked, or why not.
    enum class Outcome : std::uint8_t { go, decline };
    Outcome prepare(MPI_Comm comm, std::uint64_t bytes, Reason& why);

    // The same for a call of any blocking collective: true where the ranks' places are known, so that a
    // selector may be asked. at_once: an algorithm was asked for.
    bool gains(MPI_Comm comm, std::uint64_t bytes, bool at_once, Reason& why);

    // Of broadcasts alike, where their way is to be tried; null: the selection has decided. Pre: prepare()
    // said go. Throws std::bad_alloc.
    Trial* broadcast_trial(std::uint64_t bytes, std::uint64_t decided_bytes);
    // By what one runs then. Valid until the next call. Throws std::bad_alloc.
    const Decision& tried_decision(std::uint64_t decided_bytes) { return tried_->of(decided_bytes); }

    // The plan for one piece of `bytes` (at most piece_bytes) from `root`, by the algorithm chosen for pieces
    // of `decided_bytes`; made when missing, which may open the channel and is then collective.
    // A plan without execution means native; never for a smaller last piece after a larger one ran. Errors:
    // out_of_memory.
    Status plan(MPI_Comm comm, std::uint64_t bytes, int root, std::uint64_t decided_bytes, Plan*& plan);

    // Gives back what the reserve lent to plans, and makes room for malloc to serve the next ones. The plans
    // that plan() returned may be gone.
    void relieve_reserve();

    // Numbers this communicator's operations in call order; equal on all ranks.
    std::uint32_t next_operation() { return operation_++; }

    // Local: whether all ranks are of the world; else native for good. Asked before the first agreement, in
    // which others would not take part.
    bool is_of_world(MPI_Comm comm);
    // Finds out where the ranks are, where that has not been done. Collective. False: native for good,
    // reason() says why.
    bool survey_now(MPI_Comm comm);
    // The same where it takes no message but an agreement that every rank has succeeded, which the caller
    // makes with something else: `good` says whether this one has, and after the agreement that all have
    // comes settle_survey(). False, on all ranks: nothing was done, or nothing is left to be done.
    bool survey_alone(MPI_Comm comm, bool& good);
    void settle_survey();
    const Topology& topology() const { return topology_; }
    // Makes the channel where there is none. Collective, after gains(). False: native for good, reason() says
    // why.
    bool open_now(MPI_Comm comm);
    // Pre: open_now() said true. The MPI transport is the channel's, or what that wraps.
    const std::shared_ptr<Channel>& channel() const { return channel_; }
    const MpiTransport* mpi_transport() const { return mpi_transport_; }
    // What is known of the network, and a selector made from that for blocking calls; `ports`: of a host to
    // others. Equal on all ranks.
    const Network& network() const { return network_; }
    std::shared_ptr<const Selector> selector_for(Collective collective, const Network& network, bool sleeps,
                                                 std::uint64_t ports = 1) const;
    // Of persistent operations in the memory of the one host, or of those between neighbours there.
    std::shared_ptr<const Selector> selector_for_plans(Collective collective, bool neighbours) const;
    // Of operations that something of ours advances.
    std::shared_ptr<const Selector> selector_for_overlapped(Collective collective, const Network& network,
                                                            bool sleeps, std::uint64_t ports) const;
    // Of blocking collectives of neighbourhoods that are tried there, by the mean of all messages.
    std::shared_ptr<const Selector> selector_for_neighbours(bool sleeps) const;
    // How an operation that progresses by itself would run, as far as that is known before the set-up for it.
    // Pre: the ranks' places are known. Equal on all ranks. Throws std::bad_alloc.
    Decision foresee(Collective collective, std::uint64_t bytes) const;
    bool sleeps() const { return policy_ == WaitPolicy::sleep; }
    // What a selector decides from; equal on all ranks.
    Selection selection(Collective collective, const Network& network, bool sleeps) const;

    // For operations that progress by themselves: asked for when enough of them have been declined (decision
    // 10); then set up, or refused for good, in the next collective that may. Equal on all ranks, but for
    // what sizes are noted.
    struct SelfDriven {
        bool wanted = false;  // a meeting, in which it is set up or its ranks tell one another their sizes
        // Nonblocking calls that a set-up might have gained for, and their bytes where all ranks know them.
        std::uint64_t asked_calls = 0, asked_bytes = 0;
        std::shared_ptr<NonblockingState> state;  // null until then, and where refused
        std::optional<Reason> refused;
        // Some of those that count may be ours on one host, too. The ranks have found that they are on one:
        // others are the native library's, and it is not set up for them.
        bool serves_one_host = false, left_on_one_host = false;
        // Its one host's memory could not be had: nobody asks for that again.
        bool memory_refused = false;
        std::shared_ptr<const Neighbourhood> neighbourhood;  // once it was asked for
        NeighbourSizes sizes;
        ExchangeSizes exchange_sizes;
        EdgeNotes edges;
        // Of these, in the meeting.
        bool tells_largest = false, tells_traits = false, tells_edges = false;
        std::shared_ptr<WindowGround> windows;       // once a plan over windows was
        std::shared_ptr<NativeGround> native_plans;  // once the MPI library lacked one
        // A floating-point reduction came before the set-up: they stay native (THALWEG_FLOAT_ORDER).
        bool native_order = false;
    };
    SelfDriven self_driven;
    // Of its blocking alltoalls, broadcasts, allgathers and allreduces.
    Trials trials;

    // For blocking collectives that run on lanes. Made at the first of them that is eligible.
    std::unique_ptr<BlockingState> blocking;

    // The channel failed: nothing more can run on it.
    bool broken = false;
    // Ranks could not agree here (AgreementFailed): what the others do on it is not known any more.
    bool out_of_step = false;
    // The MPI error code behind that failure; MPI_SUCCESS where MPI reported none.
    int native_error() const;

  private:
    Communicator(MPI_Comm comm, World& world, bool is_inter, int rank, int size);
    std::shared_ptr<const Selector> shared_selector(const SelectorInputs& inputs) const;
    void survey(MPI_Comm comm);
    bool place(const std::uint64_t* keys);
    bool place_by_world(MPI_Comm comm);
    Plan make_plan(Decision decision, std::uint64_t bytes, int root, std::uint64_t decided_bytes);
    void open_channel(MPI_Comm comm);
    enum class Opened : std::uint8_t { yes, taken, no };
    Opened open_in_pool(MPI_Comm comm, const RankMap& places, int number);
    bool make_transport(const RankMap& places);
    Opened agree_on_opened(MPI_Comm comm, bool taken, bool opened);
    void close_channel();
    void go_native(Reason reason);
    void follow_steering();
    void make_selector();

    World& world_;
    int rank_ = 0, size_ = 1;
    Phase phase_ = Phase::counting;
    bool located_ = false;  // all ranks are of the world, as far as is_of_world() was asked
    Reason reason_ = Reason::not_worth_yet;
    std::uint64_t eligible_calls_ = 0, eligible_bytes_ = 0;
    std::uint32_t operation_ = 0;
    Steering steering_;
    Topology topology_ = Topology::single_node(1);
    std::shared_ptr<const Selector> selector_;
    std::optional<Decisions> tried_;  // by that, of broadcasts that are tried
    // What any of the ranks knew of the network in the survey, or what it was found to be since; and how many
    // links one of them used then: equal on all ranks.
    Network network_;
    std::uint64_t told_ports_ = 1;
    WaitPolicy policy_ = WaitPolicy::spin;
    std::shared_ptr<CommunicatorRecord> record_;

    int pool_number_ = -1;  // what the channel has of the world's pool; -1: there is none
    bool counted_ = false;  // in World::channels
    std::unique_ptr<Transport> transport_;
    const MpiTransport* mpi_transport_ = nullptr;  // transport_, or what it wraps
    std::shared_ptr<Channel> channel_;
    KeptMemory memory_;
    PlanCache& plans_ = memory_.plans;
};

// A channel and everything around it cost about as much as moving this much, or as this many calls; before,
// the native library has the calls.
inline constexpr std::uint64_t worth_calls = 8;
inline constexpr std::uint64_t worth_bytes = 1u << 20;

}  // namespace thalweg
