// Messages and puts between the processes of one host: through rings in shared memory, and out of one
// process's memory into the other's where the system allows it. Progresses without the MPI library, at any
// thread level; its waits can sleep on a descriptor.
//
// A process has one ShmPort: a segment of shared memory that has no name (segment.h), and the segments of the
// peers that it has met. All channels share it. How large messages travel is decided one by one (choice.h,
// protocol.h); copies are cut into chunks, one per poll, so that whoever polls can serve other things between
// them.
//
// Threads. Every call here and on the channels may come from any thread: one lock per port is taken by
// whoever posts or polls, for the time of one post or one poll. A thread that sleeps on the descriptor is
// woken by a frame of a peer, by the end of a peer, by a post of another thread that makes work, and where
// another thread's poll completed something of its channel.
//
// A peer that ends, whatever ends it, fails the channels that still want something of it. Numbers that a peer
// writes are checked before they are used: one that writes nonsense is treated as if it had ended.
//
// After fork() the child has no port: calls say transport_failed, destructors do nothing.
#pragma once

#include <array>
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

struct ShmOptions {
    std::uint32_t process = 0;  // this process among all of the job: dense, agreed
    // Processes of this host, at most, that it will meet (itself included); at most 512.
    std::uint32_t peers = 64;
    // Memory that others can copy from without the system: allocate().
    std::size_t arena_bytes = 0;
    // Larger messages wait for their receive, and are copied once. At most 32 KiB.
    std::size_t eager_bytes = 32 * 1024;
    // Copied in one poll, while something is on the wire and while nothing is (set_wire_ns): calls of the
    // system for few pages take longer, page by page.
    std::size_t chunk_bytes = 128 * 1024, longest_chunk_bytes = 512 * 1024;
    // Processes poll while they wait: what makes them wait for each other is no dearer for that.
    bool spins = false;
    // There are more processes than cores: what a message makes others wait for is its work, whatever its own
    // time is.
    bool crowded = false;
    bool cma = true;  // false: as if the system refused to copy between processes
    // What others may touch has its memory when it is mapped, rather than when it is touched.
    bool takes_memory = false;
    // "cma_get", "cma_put", "coop", "direct", "eager": the only protocol for large messages, where it works
    // between two processes. Empty: chosen message by message. Static storage.
    const char* protocol = "";
};

struct ShmGroup {
    ChannelName name;
    OperationSpace space = OperationSpace::calls;
    int rank = 0;
    int size = 1;
    // The process of each rank; null: rank r is process r. Those that the port has not met cannot be sent to.
    // Lives as long as the channel.
    const std::uint32_t* processes = nullptr;
    Slot slots = 64;
    // What Transport::drive_host() calls; null: nothing.
    void (*drive_host)(void* context) = nullptr;
    void* host = nullptr;
    // Where the messages of each rank are counted; outlives the channel. Null: nowhere.
    PeerAccounts* accounts = nullptr;
    // The ranks that the port may have met, this one among them: those of this host. Lives as long as the
    // channel. Empty: any of the group.
    std::span<const int> near = {};
};

// What large messages from one peer took, for reports: by protocol, name_of(0), name_of(1) …
struct ShmAccount {
    static constexpr int protocols = 5;
    static const char* name_of(int protocol);
    static constexpr int reasons = 5;
    static const char* reason_of(int reason);  // one sentence without a full stop
    std::uint32_t process = 0;
    std::array<std::uint64_t, protocols> messages{}, bytes{};
    std::array<std::uint64_t, reasons> messages_because{};  // for which reason; none of a trial
    std::uint64_t switches = 0;                             // of the protocol of one size class
    std::uint64_t copy_ns = 0;                              // of this process's share
    std::uint64_t transfer_ns = 0;  // from the decisions to the last bytes, of what this process received
    const char* protocol = "";      // of the largest size class that was seen
    const char* because = "";       // of its latest message
};

class ShmPort {
  public:
    // Of one host; and what the process keeps open for each.
    static constexpr std::uint32_t most_peers = 512, descriptors_per_peer = 2;
    // Some hundred microseconds; communicates nothing. Errors, with one sentence in `why` and `port`
    // unchanged: unsupported (the system lacks what it takes), invalid_argument (options), out_of_memory.
    static Status open(const ShmOptions& options, std::unique_ptr<ShmPort>& port, std::string& why);
    // Tells peers that it leaves; at most about 2 s where they do not take what was sent. Pre: no channel is
    // left.
    ~ShmPort();
    ShmPort(const ShmPort&) = delete;
    ShmPort& operator=(const ShmPort&) = delete;

    // For the others to reach this process: 48 bytes, valid as long as the port.
    std::span<const std::byte> address() const;
    // Maps the memory of another process (or of this one) and tries what can be done between the two. Local,
    // but for the other's being there. Errors, with a sentence in `why` and nothing changed: unsupported (it
    // is out of reach: another host or namespace), mismatch (another build), out_of_memory, transport_failed
    // (it has ended). Whom it knows it does not look at again.
    Status meet(std::uint32_t process, std::span<const std::byte> address, std::string& why);
    bool knows(std::uint32_t process) const;
    // What this process has mapped for the others, in bytes; each that it meets takes as much of its
    // addresses, if that was opened with the same options.
    std::size_t mapped_bytes() const;

    // Drives everything for one poll. Completions stay with their channels.
    void poll();
    // Everything that was sent is in the hands of its receivers.
    bool has_left();

    // A name that no channel of this process bears or has borne, for a group whose rank 0 is this process;
    // none that ucx gives.
    ChannelName name_channel();

    // Local. The port must outlive the channel, which may be destroyed by any thread. Destroying one with
    // requests in flight withdraws them, and waits for peers that may be reading or writing what they refer
    // to: 1 s at most, so that nobody waits for ever for one that is stopped. Afterwards nobody touches it,
    // but a peer that did not answer by then, if it copies from process to process: that is warned of. What
    // the requests were for fails at the peers too. Errors: invalid_argument (rank, size, a name that is open
    // already), out_of_memory.
    Status make_channel(const ShmGroup& group, std::unique_ptr<Transport>& channel);
    // One without a name or peers, as UcxPort's. Errors: out_of_memory.
    Status make_bare_channel(std::unique_ptr<Transport>& channel);

    // Memory in the arena, aligned to a cache line; null where there is none left. Any thread.
    void* allocate(std::size_t bytes);
    void release(void* memory);

    // From now on the only protocol for large messages that this process receives, where it works, as
    // ShmOptions::protocol. invalid_argument (nothing changed): there is none of that name.
    Status set_protocol(const char* name);

    // How long the network will still need for what this process gave it: what the choice of protocols goes
    // by, here and at the peers.
    void set_wire_ns(std::uint64_t ns);
    // Bytes that this process has still to copy.
    std::uint64_t copies_left() const;

    // Whether peers, or polls of this process, may still get at any of these bytes: they belong to a message
    // under way, or are exposed, or are known to be a file's that others may have mapped. For checks.
    bool holds(const void* memory, std::size_t bytes);

    // Of all peers with large messages.
    std::vector<ShmAccount> accounts();
    // "rings and CMA", "rings only: process_vm_readv is refused": for reports.
    const char* description() const;

    class Impl;

  private:
    explicit ShmPort(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace thalweg
