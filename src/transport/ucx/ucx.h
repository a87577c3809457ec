// Messages and puts over libucp: a transport that progresses without the MPI library, at any thread level,
// and whose waits can sleep on a descriptor.
//
// A process has one UcxPort: an own context and worker of libucp per rail, and one endpoint per peer and
// rail, made when the peer is first used. All channels share it. The first messages to a peer leave when it
// polls, later ones at once (greeting.cpp). Nothing of the MPI library's own use of libucp is touched.
//
// Threads. Every call here and on the channels may come from any thread: one lock per port is taken by
// whoever posts or polls, for the time of one post or one poll. So at any time at most one thread drives
// libucp; it moves everybody's messages and leaves the completions with their channels. A poll lets waiting
// posters go first. One channel is still used by one thread at a time (transport.h). A thread that sleeps on
// the descriptor is woken (ucp_worker_signal) by a post of another thread, and by a bell of the port when
// another thread's poll completed something of its channels.
//
// After fork() the child has no port: calls say transport_failed, destructors do nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "transport/channel_name.h"
#include "transport/transport.h"

namespace thalweg {

class PeerAccounts;

using UcxChannelName = ChannelName;

struct UcxOptions {
    std::uint32_t process = 0;    // this process among all that have a port: dense, agreed
    std::uint32_t processes = 1;  // how many there are; at most 2^23
    // Equal on two processes exactly when they share a host: large messages between hosts are cut up over the
    // rails.
    std::uint64_t host_key = 0;
    // One rail per network device ("eth0", "mlx5_0:1"), the same number on all processes. Empty: one rail
    // over whatever libucp finds, but for bridges.
    std::vector<std::string> devices;
    // libucp's list of transports (UCX_TLS); empty: shared memory inside a host, InfiniBand and the like
    // where the host has them, and TCP. THALWEG_UCX_TLS in the environment goes before both.
    std::string transports;
    // "eager", "get", "put": the only way to move large messages, as THALWEG_BETWEEN says. Empty: as libucp
    // chooses by size. Goes before UCX_… in the environment, and behind THALWEG_UCX_….
    std::string protocol = {};
};

inline constexpr std::size_t ucx_most_rails = 8;

// Addresses of processes, as address() gave them, one behind the other: that of processes[i] is bytes
// offsets[i] to offsets[i + 1] of `bytes`. Memory that may be shared by the processes of a host.
struct UcxDirectory {
    std::span<const std::byte> bytes;
    std::span<const std::uint64_t> offsets;       // one more than there are processes
    std::span<const std::uint32_t> processes{};   // ascending; empty: all, from 0
    std::shared_ptr<const void> owner = nullptr;  // of that memory; null: it outlives the port
};

struct UcxGroup {
    UcxChannelName name;
    OperationSpace space = OperationSpace::calls;
    int rank = 0;
    int size = 1;
    // The process of each rank; null: rank r is process r. Lives as long as the channel.
    const std::uint32_t* processes = nullptr;
    Slot slots = 64;
    // What Transport::drive_host() calls, because nothing here drives the host MPI; null: nothing.
    void (*drive_host)(void* context) = nullptr;
    void* host = nullptr;
    // Where the messages of each rank are counted; outlives the channel. Null: nowhere.
    PeerAccounts* accounts = nullptr;
    // The rail of what each rank and this one exchange in one piece, equal at both ends; lives as long as the
    // channel. Null: by the sum of their processes, so that strides of a ring are on different rails.
    const std::uint8_t* rails = nullptr;
    // A number above all of `processes`, by whoever has looked at them; 0: make_channel() does.
    std::uint32_t processes_end = 0;
};

class UcxPort {
  public:
    // Loads libucp if the process has none, and starts our part of it. Communicates nothing; some
    // milliseconds. Errors, with one sentence in `why` and `port` unchanged: unsupported (no libucp that will
    // do, no such device, this build has no ucx), invalid_argument (options), out_of_memory.
    static Status open(const UcxOptions& options, std::unique_ptr<UcxPort>& port, std::string& why);
    // Delivers what was sent, and closes; at most about 2 s where peers do not answer. Pre: no channel is
    // left.
    ~UcxPort();
    UcxPort(const UcxPort&) = delete;
    UcxPort& operator=(const UcxPort&) = delete;

    // For the others to reach this process: some 100 to 1000 bytes, valid as long as the port.
    std::span<const std::byte> address() const;
    // Must precede the first message to those who are in there. Further directories may follow, for those who
    // hear of each other by and by; one that names all processes of an earlier one takes its place, and the
    // earlier owner is let go. Errors, one sentence in `why` and nothing learned: mismatch (it makes no
    // sense, or has addresses of another build, or of processes with another number of rails), out_of_memory.
    Status learn(const UcxDirectory& directory, std::string& why);
    bool knows(std::uint32_t process) const;
    // Whether libucp finds a way there, on every rail: makes the endpoints. Not whether anybody answers.
    // False: one sentence in `why`. Pre: it is known. Throws std::bad_alloc.
    bool reaches(std::uint32_t process, std::string& why);
    // Whether this process may still open the descriptors that messages to and from all of these take over
    // TCP, which libucp opens when they are sent. A directory is read: for set-ups. False: one sentence in
    // `why`. Throws std::bad_alloc.
    bool has_room_for(std::span<const std::uint32_t> processes, std::string& why) const;

    // Drives everything for one poll, for a thread that waits with no channel at hand until others have what
    // was sent to them. Completions stay with their channels.
    void poll();

    // Whether libucp, or a peer, may still get at any of these bytes: they belong to a message under way, or
    // are registered or exposed. For checks.
    bool holds(const void* memory, std::size_t bytes);

    std::size_t rails() const;
    // "libucp 1.20.1 of the process, rails eth0 eth1": for reports. Lives as long as the port.
    const char* description() const;

    // A name that no channel of this process bears, for a group whose rank 0 is this process: one that none
    // has borne, or of those that were given back the one that was so first, where 65536 have been or there
    // is no other. unsupported: none is left (their number is 2^counter_bits of tag.h: millions in small
    // jobs, 64 in the largest).
    Status name_channel(UcxChannelName& name);
    // The name may be given to another channel, once no other is left: nothing where another process gave it.
    // Pre: this process has no such channel, and the old one did not fail here. Ranks that still have it, or
    // on which it failed, cannot open the new one (make_channel); so all ranks of that agree, before they use
    // it, that they could.
    void give_back(UcxChannelName name);
    // No channel of this name is opened here any more, whoever gave it. Pre: none is open.
    void refuse(UcxChannelName name);

    // Local; communicates nothing. The port must outlive the channel, which may be destroyed by any thread.
    // Destroying one with requests in flight withdraws its receives; the memory of sends in flight must stay
    // valid until the port is gone. Errors: invalid_argument (rank, size, a process beyond the directory, a
    // name that is open already, or whose channel was destroyed failed or with requests in flight),
    // out_of_memory.
    Status make_channel(const UcxGroup& group, std::unique_ptr<Transport>& channel);
    // One without a name or peers, which sends nothing: whoever polls it moves what channels that are gone
    // have left behind (Transport::has_left), and can sleep on its descriptor meanwhile. Errors:
    // out_of_memory.
    Status make_bare_channel(std::unique_ptr<Transport>& channel);

    class Impl;

  private:
    explicit UcxPort(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

// Network devices of this host that look like rails of one kind: up, with an address, no loopback, bridge or
// tunnel, one of those that share a link (as VLANs do), and as fast as the fastest of them. In the order of
// their names. None where the host has InfiniBand or the like, whose adapters libucp finds by itself, nor
// where the environment names devices (THALWEG_UCX_NET_DEVICES, UCX_NET_DEVICES). What a job may use as rails
// is what all its processes find alike.
std::vector<std::string> ucx_devices();

}  // namespace thalweg
