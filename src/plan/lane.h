// What operations that progress by themselves run on: a channel that the agent drives, and executions on it
// that are made once and used again.
//
// A communicator has one lane for its nonblocking operations, which it numbers in call order; each persistent
// one has a lane of its own, whose operations keep their numbers as long as it lives, because ranks may start
// two of them in different orders. A lane outlives its communicator while operations are pending.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/patterns/parcels.h"
#include "engine/driven.h"
#include "engine/engine.h"
#include "plan/attendance.h"
#include "plan/calibrate.h"
#include "plan/port_ranks.h"
#include "plan/statistics.h"
#include "plan/world.h"
#include "select/select.h"
#include "topology/topology.h"
#include "transport/channel_name.h"
#include "transport/mpi/rank_map.h"

namespace thalweg {

class Agent;
class MpiTransport;
class Ongoing;
class PeerAccounts;

// The number of a lane in the tags of the world's pool, given back when nobody needs it any more.
class LaneNumber {
  public:
    LaneNumber(World& world, int number);
    ~LaneNumber();
    LaneNumber(const LaneNumber&) = delete;
    LaneNumber& operator=(const LaneNumber&) = delete;
    int value() const { return number_; }
    // After a failure nobody knows what is still on its way: it is not used again by this process.
    void keep() {
        kept_ = true;
        world_.pool().keep();
    }

  private:
    World& world_;
    const int number_;
    std::atomic<bool> kept_{false};
};

// A name for a lane over ports. Where this process gave it, it is given back with this, unless it is kept,
// after a failure: then this process opens no channel of this name any more, whoever gave it.
class LaneName {
  public:
    LaneName(Carrier carrier, ChannelName name) : carrier_(carrier), name_(name) {}
    ~LaneName() {
        if (kept_.load(std::memory_order_acquire))
            Attendance::refuse(carrier_, name_);
        else
            Attendance::give_back(carrier_, name_);
    }
    Carrier carrier() const { return carrier_; }
    LaneName(const LaneName&) = delete;
    LaneName& operator=(const LaneName&) = delete;
    void keep() { kept_.store(true, std::memory_order_release); }

  private:
    const Carrier carrier_;
    const ChannelName name_;
    std::atomic<bool> kept_{false};
};

// A schedule to run: what it depends on, all of it equal in every run.
struct RunKey {
    Collective collective = Collective::bcast;
    std::uint64_t bytes = 0;
    int root = 0;
    // The algorithm, because calls that choose differently share a lane, and ranks give runs back at
    // different times; and the size it was chosen for: a last piece is smaller.
    Choice choice;
    std::uint64_t decided_bytes = 0;
    std::uint32_t generation = 0;  // of the settings that chose it
    std::uint64_t element_bytes = 1;
    bool in_place = false;
    std::vector<Block> blocks;         // of an allgather whose blocks differ
    std::optional<Exchange> exchange;  // of an alltoallv whose pairs differ
    bool operator==(const RunKey&) const = default;
};

// One execution and the operation that runs it.
struct Run {
    Run(const RunKey& made_for, std::shared_ptr<const Schedule> made, std::shared_ptr<Channel> channel)
        : key(made_for),
          schedule(made_for.exchange && !made_for.exchange->sizes_agree
                       ? std::move(made)
                       : suited_to(*channel, std::move(made))),
          footprint_bytes(schedule->scratch_bytes() + 128 * schedule->steps().size()),
          execution(schedule, std::move(channel)),
          operation(execution) {
        if (!key.exchange || key.exchange->sizes_agree) return;
        execution.expect_unequal();
        own = patterns::own_misfit(*key.exchange, schedule->rank());
    }
    RunKey key;
    std::shared_ptr<const Schedule> schedule;
    std::uint64_t footprint_bytes;  // memory that goes with it
    Execution execution;
    Operation operation;
    patterns::OwnMisfit own;
};

class Lane {
  public:
    // Local. Throws std::bad_alloc. `places`: the group's ranks in the world. `accounts`, here and below:
    // where the messages of each rank are counted; null: nowhere.
    Lane(World& world, std::shared_ptr<LaneNumber> number, int rank, int size, RankMap places,
         std::shared_ptr<PeerAccounts> accounts);
    // The same over ports of this process's own, as a channel of this name; pre: `carrier` is ucx, shm or
    // composite. `among_neighbours`, equal on all ranks: its whole messages are spread over the links of a
    // host as exchanges on a topology need it, where `ranks` says so. Null where there is no memory, or a
    // port refuses. O(1) in the ranks of other hosts.
    static std::shared_ptr<Lane> over_ports(World& world, Carrier carrier, ChannelName name,
                                            std::shared_ptr<const PortRanks> ranks,
                                            std::shared_ptr<PeerAccounts> accounts, bool among_neighbours);
    // On a channel that others use too, over MPI, and that outlives it: its operations have numbers of their
    // own (Ongoing), and only who waits for them drives them. Throws std::bad_alloc.
    Lane(const World& world, std::shared_ptr<Channel> channel, const MpiTransport* mpi);
    // Of one plan, over a transport of its own. Null `agent`: only who waits or tests drives it. Throws
    // std::bad_alloc.
    Lane(const World& world, std::unique_ptr<Transport> transport, Agent* agent);
    // Where that transport notes the MPI error code of what fails. Before anything runs.
    void take_errors_from(const std::atomic<int>& noted) { noted_error_ = &noted; }
    // Waits for the agent to let go, at most one pass of its. Not inside an attribute callback. Pre: nothing
    // is pending.
    ~Lane();
    Lane(const Lane&) = delete;
    Lane& operator=(const Lane&) = delete;

    DrivenChannel& driven() { return *driven_; }
    // To be used while nobody drives (DrivenChannel::exclusively).
    Transport& transport() { return *transport_; }
    // Null where the channel is another's.
    Transport* own_transport() { return transport_.get(); }
    // How many operations it can tell apart.
    std::uint32_t live_operations() const;

    // A run for `key` that nobody uses, made with `schedule` where there is none. By one thread at a time,
    // while others may give back. Throws std::bad_alloc.
    template <typename MakeSchedule>
    std::unique_ptr<Run> borrow(const RunKey& key, MakeSchedule schedule) {
        if (std::unique_ptr<Run> idle = take_idle(key)) return idle;
        auto made = std::make_shared<const Schedule>(schedule());
        return driven_->exclusively([&] { return std::make_unique<Run>(key, std::move(made), channel_); });
    }
    // Pre: not pending. Any thread.
    void give_back(std::unique_ptr<Run> run);
    // Frees the runs that nobody uses, and what was kept. Any thread.
    void drop_idle();

    // What a call that is repeated can use again (Ongoing::retire), if there is room for it: else only its
    // runs are kept, as those of what has to go for it. Any thread.
    void keep(std::unique_ptr<Ongoing> ongoing);
    // The latest kept that `matches`; null: there is none. By one thread at a time, while others may keep.
    template <typename Matches>
    std::unique_ptr<Ongoing> take_kept(Matches matches) {
        const std::lock_guard lock(mutex_);
        for (auto kept = kept_.begin(); kept != kept_.end(); ++kept) {
            if (!matches(*kept->thing)) continue;
            std::unique_ptr<Ongoing> found = std::move(kept->thing);
            kept_.erase(kept);
            return found;
        }
        return nullptr;
    }

    // Numbers of the operations on it, in call order; equal on all ranks.
    std::uint32_t next_operation() { return operation_++; }

    // An operation on it failed: nothing more can run. Any thread.
    void fail();
    bool broken() const { return broken_.load(std::memory_order_acquire); }
    // The MPI error code behind the failure; MPI_SUCCESS where MPI reported none.
    int native_error() const;

  private:
    Lane() = default;
    void make_channels(const World& world, Agent* agent);
    void drive(std::shared_ptr<Channel> channel, Agent* agent, const World& world);
    std::unique_ptr<Run> take_idle(const RunKey& key);

    // So many bytes of the process that are kept for later, counted as long as this lives.
    class IdleBytes {
      public:
        explicit IdleBytes(std::uint64_t bytes) : bytes_(bytes) {
            all_.fetch_add(bytes, std::memory_order_relaxed);
        }
        ~IdleBytes() { forget(); }
        IdleBytes(const IdleBytes&) = delete;
        IdleBytes& operator=(const IdleBytes&) = delete;
        // They are to go, though they have not yet.
        void forget() { all_.fetch_sub(std::exchange(bytes_, 0), std::memory_order_relaxed); }
        static std::uint64_t all() { return all_.load(std::memory_order_relaxed); }

      private:
        static std::atomic<std::uint64_t> all_;
        std::uint64_t bytes_;
    };
    template <typename Thing>
    struct Idle {
        explicit Idle(std::unique_ptr<Thing> kept) : thing(std::move(kept)), bytes(footprint_of(*thing)) {}
        std::unique_ptr<Thing> thing;
        IdleBytes bytes;
    };
    static std::uint64_t footprint_of(const Run& run);
    static std::uint64_t footprint_of(const Ongoing& ongoing);
    bool is_full() const { return IdleBytes::all() > most_idle_bytes_; }
    std::list<Idle<Run>> trim_idle();

    // Runs and exchanges that are kept for the next operations: so many on a lane, and so many bytes in the
    // process, but always the run that was used last.
    static constexpr std::size_t most_idle = 32, most_kept = 8;
    std::uint64_t most_idle_bytes_ = 0;

    // What it is known by, over MPI or over ports, which goes after its transport.
    std::shared_ptr<LaneNumber> number_;
    std::optional<LaneName> name_;
    std::shared_ptr<const PortRanks> ranks_;  // over ports: those of the group
    std::shared_ptr<PeerAccounts> accounts_;
    std::unique_ptr<Transport> transport_;  // null where the channel is another's
    const MpiTransport* mpi_ = nullptr;     // the channel's transport, where it is that
    const std::atomic<int>* noted_error_ = nullptr;
    std::shared_ptr<Channel> channel_;
    std::unique_ptr<DrivenChannel> driven_;
    std::mutex mutex_;
    std::list<Idle<Run>> idle_;      // the one given back last first
    std::list<Idle<Ongoing>> kept_;  // likewise; they hold no lane
    std::uint32_t operation_ = 0;
    std::atomic<bool> broken_{false};
};

}  // namespace thalweg
