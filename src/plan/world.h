// What all ranks of MPI_COMM_WORLD agreed on in MPI_Init: that each of them has us, in the same version, and
// rank 0's settings. Without that agreement every call passes through.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "algorithms/algorithm.h"
#include "algorithms/over_windows.h"
#include "base/options.h"
#include "base/status.h"
#include "engine/engine.h"
#include "plan/bypass.h"
#include "plan/calibrate.h"
#include "plan/channel_pool.h"
#include "plan/known_topologies.h"
#include "plan/selector_cache.h"
#include "select/select.h"
#include "topology/topology.h"
#include "transport/mpi/rank_map.h"

namespace thalweg {

// The smallest blocking collective of each kind that is looked at, in bytes of its message, block or vector;
// the largest number while all of them pass through. The only thing the path of a small one reads.
inline constexpr std::uint64_t gate_closed = UINT64_MAX;
// Beside the bytes: smaller ones may be handed on unseen (bypass.h). No limit is as large.
inline constexpr std::uint64_t gate_unseen = std::uint64_t{1} << 62;
extern constinit std::array<std::atomic<std::uint64_t>, collective_count> gates;
// The bytes, and where they are not closed whether gate_unseen was beside them.
struct Gate {
    std::uint64_t bytes;
    bool unseen;
};
inline Gate gate_of(Collective collective) {
    const std::uint64_t word = gates[static_cast<std::size_t>(collective)].load(std::memory_order_acquire);
    if (word == gate_closed) return {word, false};
    return {word & ~gate_unseen, (word & gate_unseen) != 0};
}

// Settings that may change while the program runs, in the form the path of a call needs. Immutable; a change
// makes a new one.
struct Steering {
    std::uint32_t generation = 0;
    std::uint64_t bcast_min_bytes = 0;
    bool bcast_native = false;           // leave them all to the native library
    std::optional<Choice> bcast_forced;  // the algorithm that was asked for
    // The same of every collective, in the order of Collective.
    struct Wish {
        bool native = false;
        std::optional<Choice> forced;
        // Of algorithms/over_windows.h, which persistent operations take; all others choose by themselves.
        std::string_view windows = {};
    };
    std::array<Wish, collective_count> wishes;
};

// What was asked for: nothing, the native library, an algorithm.
enum class Wanted : std::uint8_t { automatic, native, algorithm };

class World {
  public:
    // Collective over the world, after the native MPI_Init. Opens the gate when all ranks agreed. Throws
    // AgreementFailed (set_up.h).
    static void agree();
    // Null unless the world agreed and has not been left.
    static World* get();
    // Closes the gate and the pool: collective over the world, in MPI_Finalize. The object stays, because
    // callbacks may come late.
    void leave();

    int rank() const { return rank_; }
    int size() const { return size_; }
    // Equal on two ranks exactly when they share a host (or pretend to: THALWEG_TOPOLOGY).
    std::uint64_t host_key() const { return host_key_; }
    bool single_host() const { return single_host_; }
    // Ranks of this one's host, itself among them; of all hosts, where nobody gathered who is where.
    std::uint32_t ranks_of_host() const { return ranks_of_host_; }
    // Some machine has more ranks than cores for them. Equal on all ranks.
    bool crowded() const { return crowded_; }
    // A rank that waits sleeps. Equal on all ranks.
    bool sleeps() const {
        return settings_.wait == WaitSetting::sleep || (settings_.wait == WaitSetting::automatic && crowded_);
    }
    WaitPolicy policy() const { return sleeps() ? WaitPolicy::sleep : WaitPolicy::spin; }
    // Other ranks may run on this rank's hardware threads, for all that the ranks have told each other.
    bool shares_cores() const { return shares_cores_; }
    // Hardware threads that this rank may run on, for each rank of its machine that may run on them too.
    std::uint32_t threads_per_rank() const { return threads_per_rank_; }
    // The user's tuning tables as JSON, empty when there are none. Equal on all ranks.
    const std::string& table() const { return table_; }
    // Opens or closes the way past exchanges (bypass.h), after the ranks have agreed on what serves them.
    void set_exchange_gate();
    // Values of options that cannot change after MPI_Init; anything else is read through steering().
    const Settings& settings() const { return settings_; }
    // Where a call that makes a communicator does not arrive on some rank, for which the others would wait.
    void ignore_early() { settings_.setup = SetupSetting::lazy; }

    std::uint32_t generation() const { return generation_.load(std::memory_order_acquire); }
    Steering steering() const;
    // The same in short, for a call that is declined in most programs: two loads.
    Wanted wanted(Collective collective) const {
        return wanted_[static_cast<std::size_t>(collective)].load(std::memory_order_relaxed);
    }
    std::uint64_t bcast_min_bytes() const { return bcast_min_bytes_.load(std::memory_order_relaxed); }
    // The way over windows that persistent alltoalls were asked to take; empty: none.
    std::string_view windows_wanted() const {
        const int way = windows_wanted_.load(std::memory_order_relaxed);
        return way < 0 ? std::string_view() : over_windows[static_cast<std::size_t>(way)];
    }
    // The value of an option as it is now, as a user writes it. Pre: index < option_count.
    std::string option_text(std::size_t index) const;
    // thalweg_set_option, see thalweg.h.
    Status set_option(const char* name, const char* value);

    // Whether all ranks of an intracommunicator belong to this world and, where `places` is not null, which
    // of its ranks they are. Local; O(size) time. Errors: transport_failed (MPI refused), out_of_memory (only
    // with `places`).
    Status locate(MPI_Comm comm, bool& all, RankMap* places = nullptr) const;

    // Open on all ranks of the world or on none.
    ChannelPool& pool() { return pool_; }
    SelectorCache& selectors() { return selectors_; }
    KnownTopologies& topologies() { return topologies_; }

    // What this rank knows of the network between hosts; ranks agree before they use it (Communicator).
    Network network() const;
    void learn(const Network& network);

    // On one host the native library has every message of fewer bytes for which nobody asked an algorithm;
    // 2^64-1: every message.
    std::uint64_t one_host_below(Collective collective) const {
        return one_host_below_[static_cast<std::size_t>(collective)];
    }
    bool leaves_one_host(Collective collective) const { return one_host_below(collective) == Bypass::all; }
    // And every rank is on one. Of nonblocking and persistent ones other rows speak.
    bool leaves_all_native(Collective collective, bool blocking) const {
        return single_host_ && (blocking ? leaves_one_host(collective)
                                         : !overlapped_on_one_host_[static_cast<std::size_t>(collective)]);
    }

    // Rows speak of overlapped ones between ranks of one host, as many as the job has or fewer; or of
    // messages between neighbours there.
    bool overlaps_on_one_host(Collective collective, bool neighbours) const {
        return neighbours ? neighbours_on_one_host_
                          : overlapped_on_one_host_[static_cast<std::size_t>(collective)];
    }

    // Rows speak of persistent ones between ranks of one host, on which every rank is.
    bool plans_in_memory(Collective collective) const {
        return single_host_ && planned_on_one_host_[static_cast<std::size_t>(collective)];
    }

    // Wherever its ranks are, the native library has every nonblocking collective of this kind of fewer bytes
    // for which nobody asked an algorithm. Equal on all ranks.
    std::uint64_t overlapped_from(Collective collective) const {
        return overlapped_lowest_[static_cast<std::size_t>(collective)];
    }
    // And every MPI_Alltoall whose pairs have fewer: they run as nonblocking ones do, but on one host.
    std::uint64_t alltoall_from() const {
        constexpr auto i = static_cast<std::size_t>(Collective::alltoallv);
        return single_host_ ? one_host_below_[i] : std::min(overlapped_lowest_[i], lowest_[i]);
    }
    // Of any collective.
    bool asks_for_algorithms() const {
        return std::any_of(wanted_.begin(), wanted_.end(), [](const std::atomic<Wanted>& wanted) {
            return wanted.load(std::memory_order_relaxed) == Wanted::algorithm;
        });
    }

    // Whether blocking ones were handed on unseen at any time: they are not in the report.
    bool handed_on(Collective collective) const { return handed_on_[static_cast<std::size_t>(collective)]; }

    // Communicators that have a channel. Bounded by THALWEG_MAX_COMMUNICATORS, and by the pool.
    std::atomic<std::uint64_t> channels{0};

  private:
    World() = default;
    bool agree_on_settings();
    bool find_places(bool has_pool, bool has_keyvals);
    void warn_of_differing(std::uint64_t options_differing) const;
    void read_table();
    Status steer();
    void set_gates();

    int rank_ = 0, size_ = 0;
    MPI_Group group_;
    ChannelPool pool_;
    SelectorCache selectors_;
    KnownTopologies topologies_;
    std::uint64_t differing_ = 0;  // one bit per option whose value was another here than on rank 0
    std::uint64_t host_key_ = 0;
    bool single_host_ = true, crowded_ = false, shares_cores_ = true;
    std::uint32_t ranks_of_host_ = 1;
    std::uint32_t threads_per_rank_ = 1;
    std::string table_;
    std::atomic<bool> left_{false};
    Settings settings_;  // as agreed at MPI_Init
    mutable std::mutex steering_mutex_;
    Settings steered_;  // with the changes made since
    Steering steering_;
    std::array<std::atomic<Wanted>, collective_count> wanted_{};  // of steering_
    std::atomic<std::uint64_t> bcast_min_bytes_{0};
    std::atomic<int> windows_wanted_{-1};  // a place in over_windows
    std::array<std::uint64_t, collective_count>
        one_host_below_{};  // from there on tuning tables speak for it
    // They do of these.
    std::array<bool, collective_count> overlapped_on_one_host_{}, planned_on_one_host_{};
    bool neighbours_on_one_host_ = false;
    // No smaller one is taken unasked: of blocking ones, of overlapped ones.
    std::array<std::uint64_t, collective_count> lowest_{}, overlapped_lowest_{};
    std::array<bool, collective_count> handed_on_{};
    bool handing_on_ = false;  // the bypass is not held by us, and open for
    Bypass::Limits unseen_below_{};
    bool handing_on_exchanges_ = false;  // nor is that of exchanges
    std::atomic<std::uint32_t> generation_{0};
    mutable std::mutex network_mutex_;
    Network network_;
};

}  // namespace thalweg
