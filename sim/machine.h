// A machine that does not exist here: what sim/machines/*.json say, in SI units. Every number of such a file
// carries its source.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "model/machine.h"

namespace thalweg::sim {

// How hosts are joined. star: one switch that never blocks. fat_tree: leaf switches of `sizes[0]` hosts with
// `sizes[1]` links up to a second level. dragonfly: groups x chassis x routers x hosts per router.
enum class Fabric : std::uint8_t { star, fat_tree, dragonfly };

// Copies and reductions of at most so many bytes take their time alone: they share no memory worth
// mentioning.
inline constexpr std::uint64_t small_copy_bytes = 4096;

// As machines' files call it.
const char* name_of(Fabric fabric);

struct SimMachine {
    std::string name, text;
    int hosts = 0;           // the whole machine; a run may use fewer
    int cores_per_host = 0;  // ranks of a host that is full

    Fabric fabric = Fabric::star;
    std::vector<unsigned> sizes;  // fat_tree: hosts per leaf, links up per leaf; dragonfly: groups, chassis,
                                  // routers per chassis, hosts per router
    std::vector<unsigned> links;  // dragonfly: parallel links between groups, chassis, routers

    unsigned rails = 1;           // links of a host, each with a fabric of its own
    double link_rate = 0;         // payload bytes per second of one link, one direction
    double flow_rate = 0;         // that one message alone reaches; 0: link_rate
    double message_gap = 0;       // seconds between two messages that a link takes from its host
    unsigned flows_per_link = 0;  // messages that leave a host over one link at a time; 0: any number
    double burst_bytes = 0;       // that a shaped link lets through at once after it was idle
    double inter_latency = 0;     // seconds, one way, between two ranks of two hosts
    // Bytes of a message that the hosts' kernels handle after the link did, at most, and at what rate; 0:
    // none. What a shaper let through at once has not queued in them.
    double kernel_bytes = 0, kernel_rate = 0;
    double socket_bytes = 0;  // of one connection that the kernel takes before they leave
    // What a link's frames carry at most, and their headers: link_rate is that of such frames. A message of
    // less still fills a frame with its headers, a shaper lets whole frames through, and what came is
    // acknowledged. Where kernels send; 0: bytes are all there is.
    double frame_bytes = 0, frame_headers = 0;
    std::uint64_t inter_eager = 0;        // bytes up to which a message does not wait for its receive
    std::uint64_t inter_eager_mpich = 0;  // the same under MPICH and Intel MPI
    bool network_moves_bytes = true;      // a transfer in flight needs no processor

    double intra_latency = 0;       // the same inside a host
    std::uint64_t intra_eager = 0;  // bytes up to which a message inside a host is copied twice, by both ends

    // Cores that all hosts together run on, as an emulated cluster's do; 0: every rank has one of its own.
    unsigned shared_cores = 0;
    // Where there are more ranks than those, which then begin out of a sleep, take turns and give their core
    // up while they wait.
    bool ranks_share_cores(std::size_t ranks) const { return shared_cores > 0 && ranks > shared_cores; }
    // From the instant until which measured ranks sleep to where the first of them runs: a measured call's
    // time has it.
    double begin_seconds = 0;
    double poll_seconds = 0;    // that a rank keeps a shared core with nothing to do
    double switch_seconds = 0;  // until the next one has it
    // Of a shared core, for falling asleep and waking up again: of a rank that has nothing to do for longer.
    double sleep_seconds = 0;
    // A rank that gave its core up hears of nothing: it naps as Thalweg's engine does over an MPI library
    // (engine/waiters/timed.cpp), and looks, for so long, after each nap.
    bool naps = false;
    double look_seconds = 0;

    double start_seconds = 0;                       // of a core for an operation, besides its messages
    double post_seconds = 0;                        // of a core for posting a send or a receive
    std::optional<double> post_recv_seconds;        // for posting a receive, where that is less
    std::optional<double> post_inside_seconds;      // for posting a send to a rank of its own host, likewise
    double complete_seconds = 0;                    // of a core for noticing that one is complete
    std::optional<double> complete_inside_seconds;  // that one of its own host is, where that is another time
    double copy_rate = 0;                           // bytes per second that one core copies
    std::optional<double> socket_rate;      // that a core hands to its kernel with a message; none: at once
    std::optional<double> small_copy_rate;  // the same of at most small_copy_bytes, where caches hold them
    double host_copy_rate = 0;              // and all cores of a host together
    double reduce_rate = 0;                 // bytes per second that one core combines

    // What making memory known to the adapter takes, once and by its bytes, and the reverse again; 0: nothing
    // is.
    double register_seconds = 0, register_rate = 0;

    double agent_wake_seconds = 0;  // from an event to the first instruction of an agent that slept

    // Kernels send here: in segments of kernel_bytes, by turns of the connections that have some.
    bool kernel_sends() const { return fabric == Fabric::star && kernel_bytes > 0; }

    // Synchronous messages are overtaken: Thalweg adds receipts to its schedules (schedule/receipts.h).
    bool receipts = false;
    // Of a run in which the engine's credits count.
    bool adds_receipts(bool credits) const { return receipts && credits && kernel_sends(); }

    // A synchronous message asks its receiver before it goes; else it goes at once, and is answered when it
    // has been received: taken to be so of Intel MPI, under which nothing is overtaken.
    bool synchronous_asks = true;

    // Direct messages (schedule/step.h) are put: written into the receiver's memory, flushed, and told of.
    // Where kernels carry them, the receiver's library writes. What that takes of a core besides messages, of
    // who puts and of who is put to.
    bool puts = false;
    double put_seconds = 0, take_put_seconds = 0;

    // What differs where Thalweg's engine sends over libucp, which kernels carry. Nothing is announced
    // between hosts (src/transport/ucx/start.cpp).
    struct Libucp {
        double start_seconds = 0, post_seconds = 0, post_recv_seconds = 0, complete_seconds = 0,
               sleep_seconds = 0, put_seconds = 0, take_put_seconds = 0;
        std::optional<double> post_inside_seconds, complete_inside_seconds;
    };
    std::optional<Libucp> libucp;

    // As it is under this MPI library: "mpich", "openmpi", "impi" or "mvapich".
    SimMachine under(std::string_view mpi) const;
    // As Thalweg's engine finds it over libucp; where nothing is known of that, the same, but that adapters
    // put.
    SimMachine over_libucp() const;
    // As that engine finds it over the MPI library: nothing wakes a rank.
    SimMachine over_library() const;

    // Of a core, for posting a send to a rank of its own host or of another one, and for noticing an end.
    double post_of(bool inside) const {
        return inside ? post_inside_seconds.value_or(post_seconds) : post_seconds;
    }
    double complete_of(bool inside) const {
        return inside ? complete_inside_seconds.value_or(complete_seconds) : complete_seconds;
    }

    double copy_rate_of(std::uint64_t bytes) const {
        return bytes <= small_copy_bytes ? small_copy_rate.value_or(copy_rate) : copy_rate;
    }

    // What production would have measured or been told of this machine.
    Machine model() const;
    // The same, with all that several messages reach of a link, whatever one alone does: for limits.
    Machine wire() const;
};

// invalid_argument: `why` is one sentence that names the field; `machine` is unchanged.
Status parse_machine(std::string_view json, SimMachine& machine, std::string& why);

// Name and JSON text of the machines that are compiled in, in the order of their files' names.
std::span<const std::pair<std::string_view, std::string_view>> built_in_machines();

// A built-in machine's name, or the path of a file (it has a '/' or ends in .json).
Status find_machine(const std::string& name, SimMachine& machine, std::string& why);

}  // namespace thalweg::sim
