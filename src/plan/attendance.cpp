#include "plan/attendance.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <mutex>
#include <new>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "engine/agent.h"
#include "plan/keyvals.h"
#include "plan/neighbours.h"
#include "plan/nonblocking.h"
#include "plan/own_agent.h"
#include "plan/planned_in_memory.h"
#include "plan/ports.h"
#include "plan/private_comm.h"
#include "plan/quiet_errors.h"
#include "plan/remains.h"
#include "plan/requests.h"
#include "plan/set_up.h"
#include "topology/topology.h"
#include "transport/composite/composite.h"
#include "transport/mpi/host.h"
#include "transport/ucx/ucx.h"

namespace thalweg {

namespace {

constinit std::atomic<bool> is_present{false};
Reason why_not = Reason::unattended;
bool completions_intercepted = false;
unsigned planners_here = 0;
bool planners_differ = false;
bool has_self = false;
MPI_Comm self_comm;

// Agreed in MPI_Init, equal on all ranks.
bool any_thread_may_call = false;  // the program got MPI_THREAD_MULTIPLE everywhere
bool tries_ucx = false, tries_shm = false;
// For blocking calls on one host, which nobody need attend.
bool may_use_memory = false, may_plan_in_memory = false;
constinit std::atomic<bool> uses_memory{false};
std::vector<std::string>* rails;  // devices that all ranks found alike, where there are several; else null

// What follows comes with the first communicator that needs it.
constinit std::mutex host_mutex;
bool has_unmatched = false;
MPI_Request unmatched;
// What ranks tell one another while they set up is too much for the reserve of one beyond that
// (address_book.h).
constexpr int most_processes = 1 << 18;
// Whose names rank 0 gives while a carrier is agreed on.
constexpr std::uint64_t ucx_names = 1, shm_names = 2;

// Between hosts only, unless it was asked for: on one host the native library has most calls.
bool wants_ucx(const World& world) {
    const TransportSetting setting = world.settings().transport;
    if (setting == TransportSetting::mpi || world.size() > most_processes) return false;
    return !world.single_host() || setting == TransportSetting::ucx;
}

// Where nobody asked for it, it joins libucp in exchanges between neighbours (decision 89).
bool wants_shm(const World& world, bool beside_ucx) {
    const TransportSetting asked = world.settings().transport;
    return world.size() <= most_processes &&
           (asked == TransportSetting::shm || (asked == TransportSetting::automatic && beside_ucx));
}

// Of the devices that could be rails. No two ranks without memory are alike.
std::uint64_t digest_of(std::vector<std::string>& devices) try {
    devices = ucx_devices();
    std::uint64_t hash = 14695981039346656037u;
    for (const std::string& device : devices)
        for (const char character : device + " ")
            hash = (hash ^ static_cast<unsigned char>(character)) * 1099511628211u;
    return hash;
} catch (const std::bad_alloc&) {
    devices.clear();
    return 0;
}

void match_unmatched() {
    if (!has_unmatched) return;
    const Host& mpi = *host();
    int done = 0;
    if (mpi.Send(nullptr, 0, mpi.byte, 0, Attendance::unmatched_tag, self_comm) != MPI_SUCCESS) return;
    std::uint64_t began_ns = 0;
    while (mpi.Test(&unmatched, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && !done)
        began_ns = pause_between(began_ns);
    has_unmatched = false;
}

// Until all ranks have come here: each of them has then got everything that it waited for, and no process
// closes its endpoints before the others have what it sent.
void meet_for_the_last_time() {
    const Host& mpi = *host();
    const QuietErrors quiet(mpi.comm_world, true);
    MPI_Request request;
    int done = 0;
    if (mpi.Ibarrier(mpi.comm_world, &request) != MPI_SUCCESS) return;
    std::uint64_t began_ns = 0;
    while (mpi.Test(&request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && !done) {
        if (UcxPort* const port = Ports::ucx()) port->poll();
        if (ShmPort* const port = Ports::shm()) port->poll();
        began_ns = pause_between(began_ns);
    }
}

}  // namespace

const char* name_of(Carrier carrier) {
    switch (carrier) {
        case Carrier::none:
            return "none";
        case Carrier::mpi:
            return "mpi";
        case Carrier::ucx:
            return "ucx";
        case Carrier::shm:
            return "shm";
        case Carrier::composite:
            return "shm and ucx";
    }
    return "unknown";
}

void Attendance::set_completions_intercepted(bool intercepted, unsigned planners) {
    completions_intercepted = intercepted;
    planners_here = planners;
}

void Attendance::agree(const World& world) {
    const Host& mpi = *host();
    has_self = make_private(mpi.comm_self, self_comm);
    if (world.settings().agent == AgentSetting::off) {
        why_not = Reason::agent_off;
        return;
    }
    int level = MPI_THREAD_SINGLE;
    mpi.Query_thread(&level);
    const bool wanted = wants_ucx(world);
    std::vector<std::string> devices;
    const std::uint64_t digest = wanted ? digest_of(devices) : 0;
    // [no communicator, completions elsewhere, MPI from one thread only; devices, makers, and the complement
    // of either: no bit is set in both where all ranks have the same]
    const std::uint64_t makers = planners_here;
    std::uint64_t any[7] = {
        !has_self, !completions_intercepted, level != MPI_THREAD_MULTIPLE, digest, ~digest, makers, ~makers};
    agree_on(mpi.comm_world, mpi.bor, any);
    planners_differ = (any[5] & any[6]) != 0;
    if (any[0] != 0) return;
    const TransportSetting over = world.settings().transport;
    may_use_memory = world.size() <= most_processes &&
                     (over == TransportSetting::automatic || over == TransportSetting::shm);
    if (may_use_memory) look_for_tried_rows(world);
    if (any[1] != 0) {
        why_not = Reason::completions;
        return;
    }
    may_plan_in_memory = may_use_memory && any[5] != 0 && !planners_differ && look_for_planned_rows(world);
    any_thread_may_call = any[2] == 0;
    tries_ucx = wanted;
    tries_shm = wants_shm(world, wanted);
    // Exchanges over windows are taken on request though nobody else would advance them.
    if (!any_thread_may_call && !tries_ucx && !tries_shm && world.windows_wanted().empty()) return;
    if ((any[3] & any[4]) == 0 && devices.size() > 1 && devices.size() <= ucx_most_rails)
        rails = new std::vector<std::string>(std::move(devices));
    is_present.store(true, std::memory_order_release);
}

bool Attendance::name_channels(Carrier carrier, std::span<ChannelName> names) {
    for (std::size_t i = 0; i < names.size(); ++i) {
        if (carrier == Carrier::shm) {
            names[i] = shm()->name_channel();
        } else if (failed(ucx()->name_channel(names[i]))) {
            while (i-- > 0) give_back(carrier, names[i]);
            return false;
        }
    }
    return true;
}

// Those of the memory of hosts are as many as a counter of 32 bits has values. Without memory a name is lost,
// or a process that has none left and has seen a failure relies on the others.
void Attendance::give_back(Carrier carrier, ChannelName name) noexcept try {
    if (carrier != Carrier::ucx && carrier != Carrier::composite) return;
    if (UcxPort* const port = ucx()) port->give_back(name);
} catch (const std::bad_alloc&) {
}
void Attendance::refuse(Carrier carrier, ChannelName name) noexcept try {
    if (carrier != Carrier::ucx && carrier != Carrier::composite) return;
    if (UcxPort* const port = ucx()) port->refuse(name);
} catch (const std::bad_alloc&) {
}

Carrier Attendance::agree_on_carrier(MPI_Comm comm, bool leads, const World& world, const RankMap* places,
                                     const Topology& topology, bool in_memory, Told& told) {
    const Host& mpi = *host();
    const int size = topology.size();
    const bool asked = world.settings().transport == TransportSetting::shm || in_memory;
    const bool shares_hosts = !told.is_left && (tries_shm || in_memory) && size > topology.nodes() &&
                              (asked || (topology.nodes() > 1 && has_neighbours(comm)));
    ShmPort* const shm = shares_hosts ? Ports::open_shm(world) : nullptr;
    // What is to run in memory alone does not open libucp besides.
    const bool alone = in_memory && topology.nodes() == 1;
    UcxPort* const port = tries_ucx && !alone && !told.is_left ? Ports::open_ucx(world, rails) : nullptr;
    // [no memory, or nothing is to be carried: 2; no libucp, addresses lacking, no memory of hosts, addresses
    // of that lacking, no way; of rank 0: whose names it gives, the names; whatever]
    std::uint64_t any[7 + 2 * std::size(Told{}.names) + std::size(Told{}.most)] = {
        told.is_left ? 2u : places == nullptr || !OwnAgent::make(world, any_thread_may_call),
        port == nullptr || (places != nullptr && !Ports::has_room_for(*port, *places, size)),
        port != nullptr && places != nullptr && !Ports::knows_all(*port, *places, size), shm == nullptr,
        shm != nullptr && places != nullptr && !Ports::knows_neighbours(comm, *shm, *places, topology)};
    // Whichever carries them in all likelihood.
    const bool by_shm = asked && shm != nullptr && topology.nodes() == 1;
    if (leads && (by_shm || port != nullptr) &&
        name_channels(by_shm ? Carrier::shm : Carrier::ucx, told.names)) {
        any[6] = by_shm ? shm_names : ucx_names;
        for (std::size_t i = 0; i < std::size(told.names); ++i) {
            any[7 + 2 * i] = told.names[i].root;
            any[8 + 2 * i] = told.names[i].counter;
        }
    }
    std::copy(std::begin(told.most), std::end(told.most), std::end(any) - std::size(told.most));
    agree_on(comm, mpi.max, any);
    told.is_left = any[0] == 2;
    // What was named for another carrier than the one there is.
    const auto unname = [&] {
        for (const ChannelName& name : told.names)
            if (leads && any[6] == ucx_names) give_back(Carrier::ucx, name);
    };
    if (any[0] != 0) {
        unname();
        return Carrier::none;
    }
    const bool exchanges = any[1] == 0 && any[2] != 0, meets = any[3] == 0 && any[4] != 0;
    if (exchanges) any[1] = !Ports::exchange_addresses(comm, *port, *places, topology);
    if (exchanges && any[1] == 0)
        any[5] = !Ports::reaches_others(comm, *port, *places, topology, !asked || shm == nullptr);
    if (meets) any[3] = !Ports::meet_neighbours(comm, *shm, *places, topology);
    if (exchanges || meets) agree_on(comm, mpi.max, any);
    if (any[5] != 0) {
        any[1] = 1;
        Ports::forgo_ucx("libucp finds no way to another rank from one of the ranks");
    }
    if (tries_ucx && any[1] != 0)
        THALWEG_LOG_AT(info, "nonblocking operations do not run over libucp: %s",
                       port == nullptr || any[5] != 0 ? Ports::account().why_not_libucp.c_str()
                                                      : "another rank cannot use it");
    if (shares_hosts && any[3] != 0)
        THALWEG_LOG_AT(
            info, "messages inside the host do not go through its memory: %s",
            shm == nullptr ? Ports::account().why_not_shm.c_str() : "it is out of reach for a rank");
    // Where nobody asked for the memory of hosts it joins libucp and never takes its place.
    const Carrier carrier = asked && any[3] == 0 && topology.nodes() == 1 ? Carrier::shm
                            : any[1] != 0 ? (any_thread_may_call ? Carrier::mpi : Carrier::none)
                            : any[3] == 0 ? Carrier::composite
                                          : Carrier::ucx;
    if (in_memory && carrier == Carrier::shm) uses_memory.store(true, std::memory_order_release);
    told.named = carrier != Carrier::none && carrier != Carrier::mpi &&
                 any[6] == (carrier == Carrier::shm ? shm_names : ucx_names);
    if (!told.named) unname();
    for (std::size_t i = 0; i < std::size(told.names); ++i)
        told.names[i] = {static_cast<std::uint32_t>(any[7 + 2 * i]),
                         static_cast<std::uint32_t>(any[8 + 2 * i])};
    std::copy(std::end(any) - std::size(told.most), std::end(any), std::begin(told.most));
    return carrier;
}

bool Attendance::ends_late() {
    if (!present() && !may_plan_in_memory) return false;
    // [operations left, the callback is missing]
    std::uint64_t any[2] = {plans_alive(), !self_watched()};
    agree_on(host()->comm_world, host()->max, any);
    return any[0] != 0 && any[1] == 0;
}

void Attendance::end() {
    // What blocking calls alone have sent, others have got.
    const bool meets = (present() && (tries_ucx || tries_shm)) || may_plan_in_memory;
    may_use_memory = false;  // a session may stay open, and its communicators be used
    if (!carries() && !meets) return;
    is_present.store(false, std::memory_order_release);
    uses_memory.store(false, std::memory_order_release);
    if (meets) meet_for_the_last_time();
    may_plan_in_memory = false;
    if (Agent* const agent = OwnAgent::made()) agent->stop();
    const bool closed = close_lanes();
    match_unmatched();
    if (!closed) return;
    Remains::close();
    Ports::close();
}

UcxPort* Attendance::ucx() { return Ports::ucx(); }
ShmPort* Attendance::shm() { return Ports::shm(); }

// Never destroyed, as what it serves may outlive MPI_Finalize.
Junction& Attendance::junction() {
    static auto* const instance = new Junction;
    return *instance;
}

// By a test of a receive that nothing matches: that makes every library look at all it has to do, which a
// probe need not do (MPICH's, for a communicator of one rank, does not).
void Attendance::drive_host(void*) {
    const std::unique_lock lock(host_mutex, std::try_to_lock);
    if (!lock.owns_lock()) return;  // another thread does
    const Host& mpi = *host();
    if (!has_unmatched) {
        if (mpi.Irecv(nullptr, 0, mpi.byte, 0, unmatched_tag, self_comm, &unmatched) != MPI_SUCCESS) return;
        has_unmatched = true;
    }
    int done = 0;
    mpi.Test(&unmatched, &done, MPI_STATUS_IGNORE);
}

bool Attendance::serves_memory() { return may_use_memory; }
bool Attendance::serves_plans_in_memory() { return may_plan_in_memory; }
bool Attendance::makers_differ() { return planners_differ; }
bool Attendance::carries() { return present() || uses_memory.load(std::memory_order_acquire); }
bool Attendance::present() { return is_present.load(std::memory_order_acquire); }
Reason Attendance::refusal() { return why_not; }
bool Attendance::serves_plans() { return has_self && completions_intercepted; }
bool Attendance::any_thread_may_call_mpi() { return present() && any_thread_may_call; }
Agent* Attendance::agent_that_calls_mpi(const World& world) {
    return any_thread_may_call_mpi() && OwnAgent::make(world, any_thread_may_call) ? &agent() : nullptr;
}
Agent& Attendance::agent() { return *OwnAgent::made(); }
MPI_Comm Attendance::self() { return self_comm; }

Attendance::Account Attendance::account() {
    Account account;
    static_cast<Ports::Account&>(account) = Ports::account();
    account.agent = OwnAgent::tell(account.place, account.why_there);
    account.wire_ns = junction().meter().busy_ns(now_ns());
    return account;
}

}  // namespace thalweg
