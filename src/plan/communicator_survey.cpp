// Where the ranks of a communicator are.
#include <algorithm>
#include <memory>
#include <new>
#include <span>

#include "plan/attendance.h"
#include "plan/communicator.h"
#include "plan/host_keys.h"
#include "plan/quiet_errors.h"
#include "plan/set_up.h"
#include "transport/mpi/host.h"
#include "transport/ucx/ucx.h"

namespace thalweg {

namespace {

// The hosts of the ranks, from what MPI_Init gathered. Local. Null: no memory, or MPI refused.
std::unique_ptr<std::uint64_t[]> keys_by_world(MPI_Comm comm, const World& world, int size) {
    RankMap places;
    bool all = false;
    if (failed(world.locate(comm, all, &places)) || !all) return nullptr;
    const std::span<const std::uint64_t> of_world = host_keys();
    std::unique_ptr<std::uint64_t[]> keys(new (std::nothrow) std::uint64_t[size]);
    for (int rank = 0; keys != nullptr && rank < size; ++rank)
        keys[rank] = of_world[static_cast<std::size_t>(places[rank])];
    return keys;
}

}  // namespace

bool Communicator::is_of_world(MPI_Comm comm) {
    if (phase_ == Phase::counting && !located_) {
        const QuietErrors quiet(comm);
        bool all = true;
        located_ = !failed(world_.locate(comm, all));
        if (!all) go_native(Reason::foreign);
    }
    return phase_ != Phase::native;
}

// Finds out where the ranks are. Whether some are outside the world all see alike and without a message; what
// one rank alone may lack (memory, MPI's good will) is agreed on.
void Communicator::survey(MPI_Comm comm) {
    const Host& mpi = *host();
    QuietErrors quiet(comm);
    bool all = true;
    bool ready = !failed(world_.locate(comm, all));
    if (!all) return go_native(Reason::foreign);
    if (world_.single_host() || !host_keys().empty()) {
        ready = ready && place_by_world(comm);
    } else {
        const std::uint64_t mine = world_.host_key();
        const std::unique_ptr<std::uint64_t[]> keys(new (std::nothrow) std::uint64_t[size_]);
        std::uint64_t trouble[1] = {keys == nullptr};
        agree_on(comm, mpi.max, trouble);
        if (trouble[0] != 0) return go_native(Reason::setup_failed);
        const bool known =
            mpi.Allgather(&mine, 1, mpi.uint64, keys.get(), 1, mpi.uint64, comm) == MPI_SUCCESS;
        ready = ready && known && place(keys.get());
    }
    const Network known = world_.network();
    const UcxPort* const port = Attendance::ucx();
    // [trouble; what is known of the network: latency, rate, links]
    std::uint64_t most[4] = {!ready, known.latency_ns, known.bytes_per_second,
                             port == nullptr ? 0 : port->rails()};
    agree_on(comm, mpi.max, most);
    if (most[0] != 0) return go_native(Reason::setup_failed);
    // What another communicator has measured decides here, too: where a table has the calls for the native
    // library, or they take turns with it, the channel would be opened too early, or for nothing.
    if (const Network told{most[1], most[2]}; told.known() && topology_.nodes() > 1) {
        network_ = told;
        make_selector();
    }
    told_ports_ = std::max<std::uint64_t>(most[3], 1);
    settle_survey();
}

bool Communicator::survey_alone(MPI_Comm comm, bool& good) {
    bool all = true;
    if (phase_ != Phase::counting || (!world_.single_host() && host_keys().empty())) return false;
    const QuietErrors quiet(comm);
    good = !failed(world_.locate(comm, all));
    if (!all) return false;
    good = good && place_by_world(comm);
    return true;
}

void Communicator::settle_survey() {
    record_->nodes = topology_.nodes();
    phase_ = Phase::surveyed;
}

// By what is known of the world: all on one host, or the keys of their hosts. Local. False: no memory, or MPI
// refused.
bool Communicator::place_by_world(MPI_Comm comm) {
    if (world_.single_host()) return place(nullptr);
    const std::unique_ptr<std::uint64_t[]> keys = keys_by_world(comm, world_, size_);
    return keys != nullptr && place(keys.get());
}

// Where the ranks are, by the keys of their hosts or all on one, and what follows. False: no memory.
bool Communicator::place(const std::uint64_t* keys) try {
    topology_ = world_.topologies().same(keys == nullptr
                                             ? Topology::single_node(size_)
                                             : Topology::from_table({keys, static_cast<std::size_t>(size_)}));
    make_selector();
    return true;
} catch (const std::bad_alloc&) {
    return false;
}

}  // namespace thalweg
