// Who advances operations while their rank is inside a native MPI call or in none. What the ranks can do is
// agreed once, in MPI_Init: without it nonblocking and persistent operations are left to the native library
// on all ranks.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <span>
#include <string>

#include "base/status.h"
#include "plan/ports.h"
#include "plan/statistics.h"
#include "plan/world.h"
#include "transport/channel_name.h"
#include "transport/mpi/rank_map.h"
#include "transport/shm/shm.h"

namespace thalweg {

class Agent;
class Junction;
class Topology;
class UcxPort;

// What carries the operations of a communicator: nothing of ours, the MPI library, libucp, the memory of the
// one host, or that inside hosts and libucp between them.
enum class Carrier : std::uint8_t { none, mpi, ucx, shm, composite };
const char* name_of(Carrier carrier);

class Attendance {
  public:
    // What the wrappers found out in MPI_Init: every call that completes, restarts or frees a request arrives
    // there; and, a bit each, which makers of persistent alltoalls do. Before agree().
    static void set_completions_intercepted(bool intercepted, unsigned planners);

    // Collective over the world, once, after it agreed: one small allreduce. What costs more (libucp, the
    // agent's thread) waits for the first communicator that needs it.
    static void agree(const World& world);
    // In MPI_Finalize, collective over the world: whether some rank has persistent operations left, which the
    // program's delete callbacks on MPI_COMM_SELF may start, and end() can be called after these.
    static bool ends_late();
    // Before the native MPI_Finalize frees anything, collective over the world: ends the agent's thread, and
    // closes libucp where no lane is left. Nothing is started any more.
    static void end();

    // One load. When false, refusal() says why.
    static bool present();
    static Reason refusal();
    // Whether the memory of one host may carry blocking calls, which nobody need attend. Equal on all ranks.
    static bool serves_memory();
    // Whether persistent ones may run there, which the agent drives: their completion calls arrive, too, and
    // so do the same makers everywhere, and a tuning table takes some. Equal on all ranks.
    static bool serves_plans_in_memory();
    // The makers of persistent operations are wrapped on some ranks only, who would wait for the others.
    // Equal on all ranks.
    static bool makers_differ();
    // Lanes may be there that the agent drives: present(), or memory serves some rank's communicator.
    static bool carries();
    // Whether this rank can give out persistent requests at all: completion calls arrive, and it has self().
    static bool serves_plans();

    // Names for channels, which rank 0 of their group gives. False: it has not so many left.
    static bool name_channels(Carrier carrier, std::span<ChannelName> names);
    // One that this process has no channel of, and none that failed. Does nothing where it did not give it.
    static void give_back(Carrier carrier, ChannelName name) noexcept;
    // One whose channel failed, of which something may still be on its way here.
    static void refuse(Carrier carrier, ChannelName name) noexcept;
    // What ranks tell one another while they agree on their carrier. Of rank 0: names for two lanes. `most`,
    // whatever that is: of all ranks the largest.
    struct Told {
        ChannelName names[2];
        bool named = false;  // by that carrier; equal on all ranks
        std::uint64_t most[7] = {};
        bool is_left = false;  // nothing is to be carried, for all that any rank knows: nothing is started
    };
    // What carries the operations of `comm`, whose ranks are `places` of the world (null: this rank lacks
    // memory) and live as `topology` says. Starts what it takes where that has not been done, and tells the
    // ranks each other's addresses. Collective, with the same answer everywhere. none: nothing of ours can be
    // used, and MPI not by the agent's thread. composite, unless it was asked for: `comm` has a topology.
    // `leads`: this is rank 0 of `comm`. `in_memory`: on one host its memory is asked for, as by
    // THALWEG_TRANSPORT=shm.
    static Carrier agree_on_carrier(MPI_Comm comm, bool leads, const World& world, const RankMap* places,
                                    const Topology& topology, bool in_memory, Told& told);

    // Null until a communicator's carrier is ucx or composite; shm or composite.
    static UcxPort* ucx();
    static ShmPort* shm();
    static Junction& junction();
    // Keeps the MPI library progressing; by a thread that may call it.
    static void drive_host(void*);

    // Pre of both: present, and a carrier has been agreed on. The agent lives as long as the process. A
    // private communicator of this process alone, whose errors return.
    static Agent& agent();
    // Whether threads of ours may call the MPI library beside the program's: all ranks have
    // MPI_THREAD_MULTIPLE. Equal on all ranks.
    static bool any_thread_may_call_mpi();
    // The agent where that is so, made when missing; null elsewhere, and where there is no memory.
    static Agent* agent_that_calls_mpi(const World& world);
    static MPI_Comm self();
    // The one tag on it that is ours here; persistent requests have the others.
    static constexpr int unmatched_tag = 0;

    // For the report: where the agent lives and why, empty where there is none; what became of the ports; and
    // the time during which something was on the wire between hosts, in nanoseconds.
    struct Account : Ports::Account {
        bool agent = false;
        std::string place, why_there;  // "anywhere", "the rank's mask has one core"
        std::uint64_t wire_ns = 0;
    };
    static Account account();
};

}  // namespace thalweg
