#include "transport/shm/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>

namespace thalweg::shm {
namespace {

constexpr std::size_t page_bytes = 4096;
#ifndef SYS_pidfd_open  // by headers before Linux 5.3
#define SYS_pidfd_open 434
#endif

std::size_t up_to_pages(std::size_t bytes) { return (bytes + page_bytes - 1) / page_bytes * page_bytes; }

std::size_t rings_begin() { return up_to_pages(sizeof(Header)); }

std::size_t whole_ring(std::size_t ring_bytes) { return sizeof(RingControl) + ring_bytes; }

std::size_t ring_begin(std::uint32_t number, std::size_t ring_bytes) {
    return rings_begin() + number * whole_ring(ring_bytes);
}

std::size_t segment_bytes(std::uint32_t rings, std::size_t ring_bytes, std::size_t arena_bytes) {
    return up_to_pages(ring_begin(rings, ring_bytes)) + arena_bytes;
}

Ring ring_of(const Mapping& mapping, std::uint32_t number, std::size_t ring_bytes) {
    std::byte* const begin = mapping.base() + ring_begin(number, ring_bytes);
    return {reinterpret_cast<RingControl*>(begin), begin + sizeof(RingControl), ring_bytes};
}

// All but the rings' data: what others touch before they have claimed one.
bool give_common_memory(int file, std::uint32_t rings, std::size_t ring_bytes, std::size_t arena_bytes) {
    bool given = give_memory(file, 0, rings_begin());
    for (std::uint32_t ring = 0; given && ring < rings; ++ring)
        given = give_memory(file, ring_begin(ring, ring_bytes), sizeof(RingControl));
    return given && give_memory(file, segment_bytes(rings, ring_bytes, 0), arena_bytes);
}

// A core file has no use for them, and reading rings that nobody has touched would give these their memory.
void keep_out_of_core_files(void* base, std::size_t bytes) { madvise(base, bytes, MADV_DONTDUMP); }

std::string refused(const char* what) { return std::string(what) + ": " + std::strerror(errno); }

void ring(int descriptor) {
    const char one = 1;
    // A pipe that is full has been heard.
    [[maybe_unused]] const ssize_t written = write(descriptor, &one, 1);
}

}  // namespace

Status OwnSegment::create(std::uint32_t process, std::uint32_t rings, std::size_t ring_bytes,
                          std::size_t arena_bytes, std::string& why, bool takes_memory) {
    const auto refuse = [&](const char* what) {
        why = refused(what);
        return errno == ENOMEM || errno == ENOSPC ? Status::out_of_memory : Status::unsupported;
    };
    address_.machine = machine_key();
    if (address_.machine == 0) return refuse("/proc does not say which machine this is");
    memory_ = anonymous_file();
    if (!memory_) return refuse("memfd_create");
    arena_bytes_ = up_to_pages(arena_bytes);
    const std::size_t bytes = segment_bytes(rings, ring_bytes, arena_bytes_);
    if (!files_may_have(bytes)) {
        errno = EFBIG;
        return refuse("the limit on the size of files");
    }
    if (ftruncate(memory_.get(), static_cast<off_t>(bytes)) != 0) return refuse("ftruncate");
    if (takes_memory && !give_common_memory(memory_.get(), rings, ring_bytes, arena_bytes_))
        return refuse("fallocate");
    if (!seal_length(memory_.get())) return refuse("sealing shared memory");
    void* const base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory_.get(), 0);
    if (base == MAP_FAILED) return refuse("mmap");
    mapping_ = Mapping(base, bytes);
    keep_out_of_core_files(base, bytes);
    rings_ = rings;
    ring_bytes_ = ring_bytes;
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return refuse("pipe2");
    bell_out_ = Descriptor(ends[0]);
    bell_in_ = Descriptor(ends[1]);
    if (getrandom(&address_.nonce, sizeof address_.nonce, 0) != sizeof address_.nonce)
        return refuse("getrandom");
    address_.magic = magic;
    address_.header = reinterpret_cast<std::uintptr_t>(base);
    address_.process = process;
    address_.pid = getpid();
    address_.memory = memory_.get();
    address_.bell = bell_out_.get();
    Header* const header = new (base) Header;
    header->nonce = address_.nonce;
    header->process = process;
    header->rings = rings;
    header->ring_bytes = ring_bytes;
    header->arena_bytes = arena_bytes_;
    header->magic = magic;
    return Status::ok;
}

// New memory of the kernel's is zero, which is how a ring begins.
Ring OwnSegment::ring(std::uint32_t number) const { return ring_of(mapping_, number, ring_bytes_); }

void OwnSegment::ring_bell() const { shm::ring(bell_in_.get()); }

void OwnSegment::silence() const {
    char heard[256];
    while (read(bell_out_.get(), heard, sizeof heard) == static_cast<ssize_t>(sizeof heard)) {
    }
}

Status PeerSegment::attach(const Address& address, const Address& own, bool may_cma, std::string& why,
                           bool takes_memory) {
    if (address.magic != magic) {
        why = "its shared memory is of another build";
        return Status::mismatch;
    }
    if (address.machine != own.machine) {
        why = "it is on another host, or in another PID namespace";
        return Status::unsupported;
    }
    pid_ = address.pid;
    // Taken before the files are opened: that they are the right ones shows that it is the right process.
    life_ = Descriptor(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
    if (!life_) {
        why = refused("pidfd_open");
        return errno == ESRCH ? Status::transport_failed : Status::unsupported;
    }
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%d/fd/%d", pid_, address.memory);
    const Descriptor memory(open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK));
    std::snprintf(path, sizeof path, "/proc/%d/fd/%d", pid_, address.bell);
    // For reading too: a pipe that nobody reads any more raises a signal.
    bell_ = Descriptor(open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK));
    struct stat status = {};
    if (!memory || !bell_ || fstat(memory.get(), &status) != 0) {
        why = refused(path);
        return Status::unsupported;
    }
    const auto bytes = static_cast<std::size_t>(status.st_size);
    if (bytes < rings_begin() || !has_sealed_length(memory.get())) {
        why = "its shared memory is none of ours";
        return Status::mismatch;
    }
    void* const base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0);
    if (base == MAP_FAILED) {
        why = refused("mmap");
        return errno == ENOMEM ? Status::out_of_memory : Status::unsupported;
    }
    mapping_ = Mapping(base, bytes);
    keep_out_of_core_files(base, bytes);
    const std::uint64_t rings = header().rings, each = header().ring_bytes, arena = header().arena_bytes;
    if (header().magic != magic || header().nonce != address.nonce || rings > most_rings || arena > bytes ||
        !is_length_of_ring(each) || segment_bytes(static_cast<std::uint32_t>(rings), each, arena) != bytes) {
        why = "its shared memory is none of ours";
        return Status::mismatch;
    }
    rings_ = static_cast<std::uint32_t>(rings);
    ring_bytes_ = each;
    arena_bytes_ = arena;
    remote_header_ = address.header;
    own_nonce_ = own.nonce;
    if (may_cma) probe();
    const Status claimed = claim(own.process);
    if (failed(claimed)) {
        why = "all rings of its shared memory are taken";
    } else if (takes_memory &&
               !give_memory(memory.get(), ring_begin(ring_, ring_bytes_), whole_ring(ring_bytes_))) {
        give_ring_back();
        why = refused("fallocate");
        return Status::out_of_memory;
    }
    return claimed;
}

// Whether the two system calls work between these very processes: namespaces, security modules and filters of
// system calls refuse them one by one.
void PeerSegment::probe() {
    std::uint64_t nonce = 0;
    iovec here{&nonce, sizeof nonce};
    iovec there{reinterpret_cast<void*>(remote_header_ + offsetof(Header, nonce)), sizeof nonce};
    reads_ = process_vm_readv(pid_, &here, 1, &there, 1, 0) == sizeof nonce && nonce == header().nonce;
    nonce = own_nonce_;
    there.iov_base = reinterpret_cast<void*>(remote_header_ + offsetof(Header, probed));
    // Others may be trying at the same time, so what counts is that the kernel says it was written.
    writes_ = process_vm_writev(pid_, &here, 1, &there, 1, 0) == sizeof nonce;
}

void PeerSegment::try_again() {
    probe();
    RingControl& control = *ring().control;
    control.sender_reads.store(reads_, std::memory_order_relaxed);
    control.sender_writes.store(writes_, std::memory_order_relaxed);
}

// From a place of its own on, so that it need not look at those that others have: each ring lies in pages of
// its own, which a process would map, and keep tables of, in the memory of every other one. Processes of a
// host have places of their own where they are numbered host by host, and where one host after another has
// one in turn, too: then they may all leave the same rest.
Status PeerSegment::claim(std::uint32_t process) {
    for (std::uint32_t looks = 0; looks < rings_; ++looks) {
        ring_ = (process % rings_ + process / rings_ % rings_ + looks) % rings_;
        RingControl& control = *ring().control;
        std::uint64_t sender = 0;
        if (!control.sender.compare_exchange_strong(sender, std::uint64_t{process} + 1)) continue;
        control.sender_reads.store(reads_, std::memory_order_relaxed);
        control.sender_writes.store(writes_, std::memory_order_relaxed);
        return Status::ok;
    }
    return Status::out_of_memory;
}

Ring PeerSegment::ring() const { return ring_of(mapping_, ring_, ring_bytes_); }

const std::byte* PeerSegment::arena(std::uint64_t offset, std::uint64_t bytes) const {
    if (bytes > arena_bytes_ || offset > arena_bytes_ - bytes) return nullptr;
    return mapping_.base() + mapping_.bytes() - arena_bytes_ + offset;
}

void PeerSegment::ring_bell() const { shm::ring(bell_.get()); }

}  // namespace thalweg::shm
