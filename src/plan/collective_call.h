// A collective as the program calls it, what all ranks see alike of it, and the operation made from that.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "plan/communicator.h"
#include "plan/exchange.h"
#include "plan/lane.h"
#include "plan/ongoing.h"
#include "plan/statistics.h"
#include "plan/world.h"
#include "select/pieces.h"
#include "select/select.h"

namespace thalweg {

// A blocking, nonblocking or persistent collective as the program calls it, or one of a neighbourhood.
struct CollectiveCall {
    CallKind kind = CallKind::ibcast;
    Collective collective = Collective::bcast;
    bool persistent = false;
    const void* send = nullptr;
    MPI_Count send_count = 0;
    MPI_Datatype send_type{};
    void* receive = nullptr;  // a broadcast's buffer
    MPI_Count receive_count = 0;
    MPI_Datatype receive_type{};  // an allreduce's only one
    // Of an allgatherv: ints, or those of its large-count twin; one per rank, not used after the call.
    const int* counts = nullptr;
    const int* displacements = nullptr;
    const MPI_Count* large_counts = nullptr;
    const MPI_Aint* large_displacements = nullptr;
    // Of an alltoallv or alltoallw, and of neighbourhoods where they have arrays.
    LetterArrays sent, received;
    bool neighbours = false;  // the messages are those of the communicator's topology
    bool gathers = false;     // then: every neighbour gets the same
    bool blocking = false;
    // Of a blocking one whose pairs differ: what the ranks have agreed that calls in its place are like.
    const Traits* expected = nullptr;
    // Of a blocking exchange that is tried in the memory of the host: what a tuning table says; else null.
    const Decision* tried = nullptr;
    int root = 0;
    MPI_Op operation{};
    MPI_Comm comm{};

    bool is_vector() const { return counts != nullptr || large_counts != nullptr || has_letters(); }
    // Its messages differ from pair to pair.
    bool has_letters() const { return neighbours || received.given(); }
    Pieces pieces_of(std::uint64_t bytes) const;
};

// A call as far as all ranks see it alike.
struct CallShape {
    std::uint64_t bytes = 0;  // of the message, the vector, or a rank's block (their mean, where they differ)
    std::uint64_t total = 0;  // what this rank sends or receives in all, for the report
    std::vector<Segment> segments;    // of an allgather whose blocks differ
    std::uint64_t element_size = 1;   // bytes of an element of theirs
    Letters letters;                  // of an alltoall whose pairs differ
    std::uint64_t decided_bytes = 0;  // what the algorithm is chosen by: equal on all ranks
    Reducer reducer;                  // of an allreduce
    bool in_place = false;
};

// Fills in `shape`; or why the call is the native library's, which is then so on all ranks, or an error of
// this one. Pre: the communicator is no intercommunicator. Throws std::bad_alloc.
std::optional<Reason> look_at(const CollectiveCall& call, int rank, int size, CallShape& shape);

// Makes the program's memory what schedules work on. `key` says where what lies there; it has an exchange
// where the call has letters. Errors: those of ProgramBuffer::attach. Throws std::bad_alloc.
Status bind(const CollectiveCall& call, const CallShape& shape, int size, Ongoing& ongoing, RunKey& key);

// Whether equal operands have to give equal bits in every call (THALWEG_FLOAT_ORDER=stable): the call is then
// taken or not, and its algorithm chosen, by nothing that a run learns or that its calls before have set up.
// Not where an algorithm was asked for, which is taken as soon as it can be.
bool stays_stable(const Settings& settings, const CallShape& shape, Wanted wanted);

// What carries out an operation: all of it equal on all ranks but the rank.
struct Carriage {
    std::shared_ptr<Lane> lane;
    const Topology& topology;
    const Decision& decision;  // with a choice
    WaitPolicy policy = WaitPolicy::spin;
    std::uint32_t generation = 0;  // of the settings that chose
    // Of the operation's parts, where they have numbers of their own; else the lane counts.
    std::vector<std::uint32_t> numbers = {};
};

// An operation with the program's memory, before anything carries it. Of what it takes this is what may be as
// large as the messages are, and one rank alone be refused.
struct Bound {
    Bound() = default;
    ~Bound();  // gives back what was not assembled; makes MPI calls
    Bound(const Bound&) = delete;
    Bound& operator=(const Bound&) = delete;

    RunKey key;                        // whose exchange, where the call has letters, is there before bind()
    std::unique_ptr<Ongoing> ongoing;  // null before bind(), and where that failed
    Status status = Status::ok;
};
// Local, once. Errors: as above, and out_of_memory, in bound.status.
void bind(Communicator& communicator, const CollectiveCall& call, const CallShape& shape, Bound& bound);

// The operation with its parts, bound here where it has not been. Null where this rank cannot run it,
// bound.status says why: invalid_argument (what MPI judges), else the others run it.
std::unique_ptr<Ongoing> assemble(Communicator& communicator, const CollectiveCall& call,
                                  const CallShape& shape, Carriage carriage, Bound& bound);

}  // namespace thalweg
