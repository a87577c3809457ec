#include "plan/ports.h"

#include <atomic>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>
#include <span>

#include "base/descriptors.h"
#include "base/log.h"
#include "base/shared_memory.h"
#include "plan/address_book.h"
#include "plan/set_up.h"
#include "topology/topology.h"
#include "transport/mpi/host.h"
#include "transport/ucx/ucx.h"

namespace thalweg {

namespace {

// Never destroyed: channels may outlive MPI_Finalize, and a program may leave by exit().
constinit std::mutex mutex;
constinit std::atomic<UcxPort*> the_port{nullptr};
struct Libucp {
    bool tried = false;
    bool forgone = false;  // what is there is for those who use it already
    std::unique_ptr<UcxPort> owner;
    std::string description, why_not;
    std::string addresses;  // of the latest directory
};
Libucp& libucp() {
    static auto* const instance = new Libucp;
    return *instance;
}
constinit std::atomic<ShmPort*> the_shm{nullptr};
struct HostMemory {
    bool tried = false;
    std::unique_ptr<ShmPort> owner;
    std::string description, why_not;
    std::vector<ShmAccount> peers;  // when it was closed
};
HostMemory& host_memory() {
    static auto* const instance = new HostMemory;
    return *instance;
}

// What the program itself may want to open, and its MPI library, and libucp for other hosts. Of the addresses
// that are left they have half.
constexpr std::uint64_t descriptors_of_program = 128;

// The word of an option that is a protocol, or empty.
std::string protocol_of(const World& world, std::size_t option) {
    std::string word = world.option_text(option);
    return word == "auto" ? "" : word;
}

// The ranks on the host of this one, itself included.
std::span<const int> neighbours(MPI_Comm comm, const Topology& topology) {
    int rank = 0;
    host()->Comm_rank(comm, &rank);
    return topology.ranks_on(topology.node_of(rank));
}

}  // namespace

UcxPort* Ports::open_ucx(const World& world, const std::vector<std::string>* rails) try {
    const std::lock_guard lock(mutex);
    if (!libucp().tried) {
        libucp().tried = true;
        UcxOptions options;
        options.process = static_cast<std::uint32_t>(world.rank());
        options.processes = static_cast<std::uint32_t>(world.size());
#if defined(THALWEG_SABOTEUR)
        // As if the job were so large that a process has few names for channels.
        if (const char* const processes = std::getenv("THALWEG_TEST_PROCESSES"))
            options.processes = static_cast<std::uint32_t>(std::atoi(processes));
#endif
        options.host_key = world.host_key();
        if (rails != nullptr) options.devices = *rails;
        options.protocol = protocol_of(world, index_of::between);
        UcxPort::open(options, libucp().owner, libucp().why_not);
        if (libucp().owner != nullptr) libucp().description = libucp().owner->description();
        the_port.store(libucp().owner.get(), std::memory_order_release);
    }
    return libucp().forgone ? nullptr : the_port.load(std::memory_order_relaxed);
} catch (const std::bad_alloc&) {
    libucp().why_not = "out of memory";
    return nullptr;
}

ShmPort* Ports::open_shm(const World& world) try {
    const std::lock_guard lock(mutex);
    if (!host_memory().tried) {
        host_memory().tried = true;
        ShmOptions options;
        options.process = static_cast<std::uint32_t>(world.rank());
        options.peers = world.ranks_of_host();
        options.spins = !world.sleeps();
        options.crowded = world.crowded();
        options.takes_memory = memory_is_counted();
        ShmPort::open(options, host_memory().owner, host_memory().why_not);
        the_shm.store(host_memory().owner.get(), std::memory_order_release);
        if (host_memory().owner != nullptr) obey(world);
    }
    return the_shm.load(std::memory_order_relaxed);
} catch (const std::bad_alloc&) {
    host_memory().why_not = "out of memory";
    return nullptr;
}

bool Ports::knows_neighbours(MPI_Comm comm, const ShmPort& port, const RankMap& places,
                             const Topology& topology) {
    for (const int rank : neighbours(comm, topology))
        if (!port.knows(static_cast<std::uint32_t>(places[rank]))) return false;
    return true;
}

bool Ports::has_room_for_neighbours(MPI_Comm comm, const ShmPort& port, const RankMap& places,
                                    const Topology& topology) {
    std::uint64_t unmet = 0;
    for (const int rank : neighbours(comm, topology))
        unmet += !port.knows(static_cast<std::uint32_t>(places[rank]));
    const char* const why =
        unmet > ShmPort::most_peers ? "more ranks share this host than its memory serves"
        : descriptors_left() < ShmPort::descriptors_per_peer * unmet + descriptors_of_program
            ? "the limit on open files (ulimit -n) leaves too few for the ranks of this host"
        : address_space_left() / 2 < unmet * port.mapped_bytes()
            ? "the limit on address space (ulimit -v) leaves too little for the ranks of this host"
            : nullptr;
    if (why == nullptr) return true;
    THALWEG_LOG_AT(info, "%s", why);
    const std::lock_guard lock(mutex);
    host_memory().why_not = why;
    return false;
}

bool Ports::meet_neighbours(MPI_Comm comm, ShmPort& port, const RankMap& places, const Topology& topology) {
    const Host& mpi = *host();
    const std::span<const std::byte> own = port.address();
    const int bytes = static_cast<int>(own.size());
    // For 262,144 ranks 12 MiB, which a reserve has.
    std::vector<std::byte> all(own.size() * static_cast<std::size_t>(topology.size()));
    if (mpi.Allgather(own.data(), bytes, mpi.byte, all.data(), bytes, mpi.byte, comm) != MPI_SUCCESS)
        return false;
    if (!has_room_for_neighbours(comm, port, places, topology)) return false;
    for (const int rank : neighbours(comm, topology)) {
        const std::span<const std::byte> address(all.data() + own.size() * static_cast<std::size_t>(rank),
                                                 own.size());
        std::string why;
        if (!failed(port.meet(static_cast<std::uint32_t>(places[rank]), address, why))) continue;
        THALWEG_LOG_AT(info, "the memory of rank %d is out of reach: %s", places[rank], why.c_str());
        const std::lock_guard lock(mutex);
        host_memory().why_not = why;
        return false;
    }
    return true;
}

bool Ports::knows_all(const UcxPort& port, const RankMap& places, int size) {
    for (int rank = 0; rank < size; ++rank)
        if (!port.knows(static_cast<std::uint32_t>(places[rank]))) return false;
    return true;
}

bool Ports::has_room_for(const UcxPort& port, const RankMap& places, int size) try {
    std::vector<std::uint32_t> processes;
    processes.reserve(static_cast<std::size_t>(size));
    for (int rank = 0; rank < size; ++rank) processes.push_back(static_cast<std::uint32_t>(places[rank]));
    std::string why;
    if (port.has_room_for(processes, why)) return true;
    THALWEG_LOG_AT(info, "libucp: %s", why.c_str());
    return false;
} catch (const std::bad_alloc&) {
    return false;
}

bool Ports::exchange_addresses(MPI_Comm comm, UcxPort& port, const RankMap& places,
                               const Topology& topology) {
    AddressBook book;
    std::string why;
    bool learned = book.exchange(comm, topology, places, port.address());
    if (learned) learned = !failed(port.learn(book.directory(), why));
    if (why.empty() && !learned) why = book.why_not();
    const std::lock_guard lock(mutex);
    if (!learned) {
        THALWEG_LOG_AT(info, "libucp: %s", why.c_str());
        libucp().why_not = why;
        return false;
    }
    libucp().addresses = book.description();
    return true;
}

bool Ports::reaches_others(MPI_Comm comm, UcxPort& port, const RankMap& places, const Topology& topology,
                           bool inside) {
    int rank = 0;
    host()->Comm_rank(comm, &rank);
    const int size = topology.size();
    bool outside = true;
    for (int step = 1; step < size && (inside || outside); ++step) {
        const int other = (rank + step) % size;
        bool& wanted = topology.node_of(other) == topology.node_of(rank) ? inside : outside;
        if (!wanted) continue;
        wanted = false;
        std::string why;
        if (port.reaches(static_cast<std::uint32_t>(places[other]), why)) continue;
        forgo_ucx(why.c_str());
        return false;
    }
    return true;
}

void Ports::forgo_ucx(const char* why) {
    const std::lock_guard lock(mutex);
    if (libucp().forgone) return;
    libucp().forgone = true;
    libucp().why_not = why;
}

void Ports::obey(const World& world) {
    if (ShmPort* const port = shm()) port->set_protocol(protocol_of(world, index_of::inside).c_str());
}

UcxPort* Ports::ucx() { return the_port.load(std::memory_order_acquire); }
ShmPort* Ports::shm() { return the_shm.load(std::memory_order_acquire); }

void Ports::close() {
    the_port.store(nullptr, std::memory_order_release);
    libucp().owner.reset();
    the_shm.store(nullptr, std::memory_order_release);
    if (host_memory().owner != nullptr) {
        host_memory().description = host_memory().owner->description();
        host_memory().peers = host_memory().owner->accounts();
    }
    host_memory().owner.reset();
}

Ports::Account Ports::account() {
    const std::lock_guard lock(mutex);
    const HostMemory& memory = host_memory();
    return {libucp().description, libucp().addresses,
            libucp().why_not,     memory.owner != nullptr ? memory.owner->description() : memory.description,
            memory.why_not,       memory.owner != nullptr ? memory.owner->accounts() : memory.peers};
}

}  // namespace thalweg
