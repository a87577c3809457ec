// Memory that the processes of a host share, without a name that could be left behind: each process has an
// anonymous file (memfd) with its rings and its arena, and a pipe as its bell; the others open both through
// /proc/PID/fd, as long as the owner lives. Whatever ends a process, nothing stays.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/shared_memory.h"
#include "base/status.h"
#include "transport/shm/wire.h"

namespace thalweg::shm {

// What a process tells the others, byte by byte.
struct Address {
    std::uint64_t magic = 0;
    std::uint64_t machine = 0;  // of the boot and the PID namespace: where process numbers mean the same
    std::uint64_t nonce = 0;
    std::uint64_t header = 0;  // where the segment lies in its owner
    std::uint32_t process = 0;
    std::int32_t pid = 0;
    std::int32_t memory = -1, bell = -1;  // descriptors of the owner
};

class OwnSegment {
  public:
    // Errors, with a sentence in `why`: unsupported (the system refuses), out_of_memory. `takes_memory`: now,
    // for all but the rings, which have theirs when they are claimed; else as it is touched.
    // Pre: is_length_of_ring(ring_bytes).
    Status create(std::uint32_t process, std::uint32_t rings, std::size_t ring_bytes, std::size_t arena_bytes,
                  std::string& why, bool takes_memory = false);

    Address address() const { return address_; }
    Header& header() const { return *reinterpret_cast<Header*>(mapping_.base()); }
    Ring ring(std::uint32_t number) const;
    std::uint32_t rings() const { return rings_; }
    std::byte* arena() const { return mapping_.base() + mapping_.bytes() - arena_bytes_; }
    std::size_t arena_bytes() const { return arena_bytes_; }
    std::size_t mapped_bytes() const { return mapping_.bytes(); }
    // Readable when somebody rang.
    int bell() const { return bell_out_.get(); }
    // By this process, for itself.
    void ring_bell() const;
    void silence() const;

  private:
    Descriptor memory_, bell_out_, bell_in_;
    Mapping mapping_;
    std::uint32_t rings_ = 0;
    std::size_t ring_bytes_ = 0, arena_bytes_ = 0;
    Address address_;
};

// Another process's segment, or the own one as others see it.
class PeerSegment {
  public:
    // Errors, with a sentence in `why`: unsupported (out of reach: another host, namespace or user; an old
    // kernel), transport_failed (its process is gone), mismatch (its segment is none of ours), out_of_memory
    // (all its rings are taken, or there is none for one more).
    // `may_cma`: whether to try what this process can do in the other's memory. `takes_memory`: of its ring,
    // now.
    Status attach(const Address& address, const Address& own, bool may_cma, std::string& why,
                  bool takes_memory = false);

    Header& header() const { return *reinterpret_cast<Header*>(mapping_.base()); }
    // The one that this process writes to.
    Ring ring() const;
    std::uint32_t ring_number() const { return ring_; }
    // Pre: nothing was written there. Of an attached segment that is not used after all.
    void give_ring_back() const { ring().control->sender.store(0, std::memory_order_release); }
    // `bytes` bytes of the arena's at `offset`; null where they are not all inside.
    const std::byte* arena(std::uint64_t offset, std::uint64_t bytes) const;
    bool reads() const { return reads_; }
    bool writes() const { return writes_; }
    // Tries once more what this process can do there: the system may have become stricter since.
    void try_again();
    pid_t pid() const { return pid_; }
    // Readable when the process has ended.
    int life() const { return life_.get(); }
    void ring_bell() const;

  private:
    Status claim(std::uint32_t process);
    void probe();

    Descriptor life_, bell_;
    Mapping mapping_;
    pid_t pid_ = 0;
    std::uint32_t rings_ = 0, ring_ = 0;
    std::size_t ring_bytes_ = 0, arena_bytes_ = 0;
    bool reads_ = false, writes_ = false;
    std::uint64_t remote_header_ = 0;  // where its owner has it
    std::uint64_t own_nonce_ = 0;
};

}  // namespace thalweg::shm
