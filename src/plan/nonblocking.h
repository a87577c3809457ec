// The path of nonblocking and persistent collectives: which are taken, and what a communicator needs for
// them.
//
// Taken only where something of ours advances them while their rank is inside any native MPI call or in none
// (attendance.h). A communicator is set up for them where all its ranks are certain to come by and may wait
// for each other: in the first blocking collective after as many nonblocking ones as a set-up pays for, in a
// persistent _init, or when it is created (THALWEG_SETUP=early). Never in a nonblocking call: what comes
// before is declined.
#pragma once

#include <mpi.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "plan/attendance.h"
#include "plan/collective_call.h"
#include "plan/communicator.h"
#include "plan/exchange.h"
#include "plan/lane.h"
#include "plan/living.h"
#include "plan/neighbour_leaders.h"
#include "plan/ongoing.h"
#include "plan/plan_account.h"
#include "plan/port_ranks.h"
#include "plan/world.h"
#include "select/decisions.h"
#include "select/neighbours.h"

namespace thalweg {

// What a communicator has for operations that progress by themselves.
class NonblockingState {
  public:
    // Collective over `comm`, by all of its ranks or by none. Null, on all of them, with `why`. for_plan: the
    // next that the ranks do on `comm` is make_plan_lane(), in which they find out whether all could be set
    // up, or confirm(). Until then this rank may have no lanes. in_memory: as Attendance::agree_on_carrier().
    // between_hosts: what it is for is the native library's on one host; where all ranks are on one, `why` is
    // native_best, on all of them, and nothing was started.
    struct Purpose {
        bool for_plan = false, in_memory = false, between_hosts = false;
    };
    static std::shared_ptr<NonblockingState> set_up(MPI_Comm comm, Communicator& communicator, World& world,
                                                    Purpose purpose, Reason& why);
    // Collective where that is still open. False, on all ranks: some could not be set up.
    bool confirm(MPI_Comm comm);

    ~NonblockingState();
    NonblockingState(const NonblockingState&) = delete;
    NonblockingState& operator=(const NonblockingState&) = delete;
    // Lets go of the lanes of all. False: operations hold some.
    static bool close_all();

    int rank() const { return rank_; }
    int size() const { return size_; }
    // Anything but none.
    Carrier carrier() const { return carrier_; }
    WaitPolicy policy() const { return policy_; }
    const std::shared_ptr<Lane>& lane() const { return lane_; }
    // Where exchanges run, whose pairs differ. May be the same.
    const std::shared_ptr<Lane>& exchange_lane() const { return exchange_lane_; }

    // How an operation of `bytes` runs; `stable` as of a blocking one (blocking.h). Equal on all ranks. By
    // one thread at a time. Throws std::bad_alloc.
    Decision decide(Collective collective, std::uint64_t bytes, bool stable = false);
    // What decides that. Valid until the next decide().
    const Selector& selector(Collective collective) { return decisions(collective, false).selector(); }
    const Topology& topology() const { return topology_; }
    const Network& network() const { return network_; }
    // As the ranks found together (neighbours.h).
    bool natively_in_order(bool blocking) const { return natively_in_order_[blocking]; }
    // Edges join no two ranks more often than schedules have numbers for: as they found together.
    bool numbers_suffice() const { return numbers_suffice_; }
    // The communicator is a session's, or made of one, for all that any of its ranks knows.
    bool may_outlive_world() const { return may_outlive_world_; }
    // Links of a host to others that carry messages at the same time.
    std::uint64_t ports() const;
    std::uint32_t generation() const { return generation_; }
    // Frees what its lanes keep for the next calls.
    void drop_idle();
    // What the model expects of the native MPI_Alltoallv with pairs of `bytes`, sent one after another; 0:
    // nothing is known of the network.
    Picoseconds predicted_native(std::uint64_t bytes) const;

    // How messages between neighbours travel; as decide().
    const NeighbourSelector& neighbours();
    // What decides that in nonblocking calls, for neighbours(): the largest message of all ranks as they last
    // agreed on it, or unknown. Collective: `largest` is this rank's since then; all 0 leave it as it is.
    std::uint64_t neighbour_bytes() const { return neighbour_bytes_; }
    void agree_on_neighbour_bytes(MPI_Comm comm, std::uint64_t largest);
    // What all edges are like, as if each had a message: for settle_neighbours() of calls of which nobody
    // knows all messages. Out of step where a rank cannot tell.
    const Traits& edges() const { return edges_; }
    // What may travel together in calls that are not persistent. agree_on_edges: collective, where
    // neighbours().bundles().
    const NeighbourLeaders& leaders() const { return leaders_; }
    void agree_on_edges(MPI_Comm comm);

    // What decides nonblocking alltoallvs: what the ranks have agreed that earlier ones were like; null: they
    // have not. Collective: `noted` is this rank's.
    const Traits* exchange_traits() const { return exchange_traits_ ? &*exchange_traits_ : nullptr; }
    void agree_on_exchange_traits(MPI_Comm comm, const ExchangeSizes::Noted& noted);

    // A name for the lane of an exchange's plan, to be handed out with something else; nothing on other ranks
    // than 0, and where lanes have no names. first: what all ranks know since the set-up, if anything; once.
    std::optional<ChannelName> name_plan() const;
    Carrier exchange_carrier() const { return exchange_carrier_; }
    std::optional<ChannelName> name_first_plan() { return std::exchange(first_plan_, std::nullopt); }
    // What ranks tell one another while they make that; each becomes the largest that any rank says.
    struct Told {
        std::uint64_t message_bytes = 0;
        NativeTimes::Words native{};
    };
    // A lane of its own for a persistent operation of `parts` schedules, which keep `numbers`; for an
    // exchange, as exchange_lane(). Collective. Null, on all ranks, with `why`; where one is not `ready` to
    // run it, too. `name`: what name_plan() gave on rank 0, known to all ranks, or nothing.
    std::shared_ptr<Lane> make_plan_lane(MPI_Comm comm, bool exchange, std::optional<ChannelName> name,
                                         std::size_t parts, bool ready, std::vector<std::uint32_t>& numbers,
                                         Told& told, Reason& why);

  private:
    NonblockingState(Communicator& communicator, World& world);
    Decisions& decisions(Collective collective, bool stable);
    bool take_over(RankMap places);      // false: no memory
    bool keep_ranks(std::size_t rails);  // for lanes over ports, by places_; false: no memory
    void keep_peers() noexcept;
    // Of edges(). Collective, between neighbours on hosts of one rank; null: this rank cannot tell.
    void agree_on_steps(MPI_Comm comm, const Neighbourhood* neighbours);
    // Those of `state`, which is null where this rank lacks memory. Collective, with an answer of each rank's
    // own. Where nobody asked for the memory inside hosts it carries exchanges only, and those between
    // neighbours have rails of their own where hosts have several, so there are two then.
    static bool make_lanes(MPI_Comm comm, Carrier carrier, Attendance::Told told, World& world,
                           Communicator& communicator, NonblockingState* state, Reason& why);
    std::shared_ptr<Lane> make_named_plan_lane(MPI_Comm comm, bool exchange, std::optional<ChannelName> known,
                                               std::size_t parts, bool ready,
                                               std::vector<std::uint32_t>& numbers, Told& told, Reason& why);

    World& world_;
    Communicator& communicator_;
    int rank_ = 0, size_ = 1;
    Carrier carrier_ = Carrier::mpi, exchange_carrier_ = Carrier::mpi;
    WaitPolicy policy_ = WaitPolicy::spin;
    Topology topology_ = Topology::single_node(1);
    RankMap places_;                          // until there are lanes over ports, and where there are none
    std::shared_ptr<const PortRanks> ranks_;  // of those; null: there are none
    Network network_;
    std::uint32_t generation_ = 0;
    std::array<std::optional<Decisions>, collective_count> decided_;
    std::optional<Decisions> stable_;           // of allreduces
    bool natively_in_order_[2] = {true, true};  // of nonblocking calls, of blocking ones
    bool numbers_suffice_ = true;
    bool may_outlive_world_ = false;
    std::optional<NeighbourSelector> neighbours_;
    std::uint32_t neighbours_generation_ = 0;
    std::uint64_t neighbour_bytes_ = NeighbourSelector::unknown;
    Traits edges_;
    NeighbourLeaders leaders_;
    std::optional<Traits> exchange_traits_;
    bool confirmed_ = true, opened_ = true;  // all ranks are known to have lanes; this one has
    std::optional<ChannelName> first_plan_;
    std::shared_ptr<Lane> lane_, exchange_lane_;
    struct PlanNumbers;
    std::shared_ptr<PlanNumbers> plans_;
    Living<NonblockingState>::Place place_{*this};  // among those that are alive
    static Living<NonblockingState> alive_;
};

// Null: the native library has the call, or `error` is not MPI_SUCCESS and the call failed with it. Else the
// operation: started, but where it is persistent. Every rank takes the same way. Collective where it is
// persistent or blocking.
std::unique_ptr<Ongoing> offer(const CollectiveCall& call, int& error);

// What a call is like where the communicator's topology says who is meant: its letters, their bytes in all
// and on average. False: what the native library judges. Throws std::bad_alloc.
bool look_at_neighbours(const CollectiveCall& call, Communicator& communicator, CallShape& shape);
// Whether the library judges the arguments of any call: they are wrong, and no other rank need be in it.
// Local. Throws std::bad_alloc.
bool is_judged(const CollectiveCall& call, Communicator& communicator);

// Whether a nonblocking or persistent call is the native library's on every communicator, wherever its ranks
// are: it is shorter than any that is taken, and nobody asked for anything. Equal on all ranks.
bool is_left_everywhere(const World& world, const CollectiveCall& call, const CallShape& shape);

// Whether it may be ours between ranks of one host. Equal on all ranks.
bool may_be_on_one_host(const World& world, const CollectiveCall& call);

// Of a nonblocking call on a communicator that has not been set up, which is counted: why it does not ask for
// that; nothing: the next blocking collective sets up. By the rule of blocking calls (decision 10), and at
// once where an algorithm was asked for. By what all ranks know: the number of the call, and its bytes where
// they are equal on all ranks. Local, with the same answer everywhere.
std::optional<Reason> why_not_set_up(const World& world, const CollectiveCall& call, const CallShape& shape,
                                     Communicator::SelfDriven& self_driven);

// Sets `comm` up where that has not been done, nor refused. Collective over it.
void set_up(MPI_Comm comm, Communicator& communicator, NonblockingState::Purpose purpose = {});

// How many communicators of this process wait for a collective in which their ranks may agree.
extern constinit std::atomic<int> meetings_wanted;
void want_meeting(Communicator::SelfDriven& self_driven);
void want_no_meeting(Communicator::SelfDriven& self_driven) noexcept;
// In a blocking collective on `comm`, before anything of it happens: sets it up, or lets its ranks agree on
// what their neighbours exchange, where it waits for that. `call`: the collective; null: its arguments are
// not known. One whose arguments are wrong is none for the other ranks: then nothing happens.
void meet(MPI_Comm comm, const CollectiveCall* call);
// After `comm` was created, in the collective call that did: THALWEG_SETUP=early. Throws AgreementFailed.
void set_up_early(MPI_Comm comm);
// Before that, in the same call on `parent`: whether all its ranks have made it. Throws AgreementFailed.
bool made_everywhere(MPI_Comm parent, bool made);

// Before the native MPI_Comm_free or MPI_Comm_disconnect: lets go of what the communicator has for these
// operations; those that are pending go on.
void detach(MPI_Comm comm, Communicator& communicator);
// Inside an attribute callback: keeps it until release_detached(), because freeing it waits for the agent.
void detach_later(Communicator::SelfDriven& dead) noexcept;
void release_detached();
// Before MPI_Finalize, when nothing is started any more: frees what communicators and plans that the program
// did not free have. False: some are in use.
bool close_lanes();

}  // namespace thalweg
