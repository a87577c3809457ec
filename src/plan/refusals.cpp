#include "plan/refusals.h"

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <vector>

#include "plan/attendance.h"
#include "plan/datatype.h"
#include "plan/payload.h"
#include "transport/mpi/host.h"

namespace thalweg {

namespace {

// What is looked at: all ranks take part in making a persistent operation, and agree on it, whatever their
// memory is, at which not every library looks before it is started.
enum class Look : std::uint8_t { types, memory_too };

bool refuses(const void* buffer, MPI_Count count, MPI_Datatype type, Look look) {
    TypeShape named;
    if (look == Look::types) return shape_of(type, named).uncommitted;
    const Payload data(const_cast<void*>(buffer), static_cast<std::uint64_t>(count), type, {});
    return data.refused_by_native();
}

// The same of blocks that differ.
bool refuses_blocks(const void* buffer, const std::vector<Segment>& blocks, MPI_Datatype type, Look look) {
    TypeShape named;
    const TypeShape& shape = shape_of(type, named);
    if (look == Look::types || shape.uncommitted || shape.opaque || shape.size == 0) return shape.uncommitted;
    const auto lowest =
        reinterpret_cast<std::uintptr_t>(buffer) + static_cast<std::uintptr_t>(shape.layout.true_lb());
    return std::any_of(blocks.begin(), blocks.end(), [lowest](const Segment& block) {
        return block.count != 0 && lowest + static_cast<std::uintptr_t>(block.displacement) == 0;
    });
}

// Of messages that differ. Behind MPI_BOTTOM, which is no memory either, they lie where they say.
bool begin_nowhere(const void* buffer, const std::vector<Letter>& letters) {
    if (buffer != nullptr) return false;
    TypeShape named;
    const TypeShape* shape = nullptr;  // of the letter before
    MPI_Datatype type{};
    for (const Letter& letter : letters) {
        if (letter.bytes == 0) continue;
        if (shape == nullptr || letter.where.type != type) {
            named = {};
            type = letter.where.type;
            shape = &shape_of(type, named);
        }
        if (!shape->opaque && letter.where.displacement + shape->layout.true_lb() == 0) return true;
    }
    return false;
}

// The types of alltoalls whose messages differ are looked at as their messages are read.
bool refuses_buffers(const CollectiveCall& call, const CallShape& shape) {
    if (call.collective == Collective::barrier) return false;
    if (call.has_letters()) return lead_nowhere(call, shape);
    const Look look = call.persistent ? Look::types : Look::memory_too;
    if (call.is_vector() ? refuses_blocks(call.receive, shape.segments, call.receive_type, look)
                         : refuses(call.receive, call.receive_count, call.receive_type, look))
        return true;
    if (shape.in_place || call.collective == Collective::bcast) return false;
    const bool all = call.collective == Collective::allreduce;
    const MPI_Count sent = all ? call.receive_count : call.send_count;
    return sent != 0 && refuses(call.send, sent, all ? call.receive_type : call.send_type, look);
}

// What is sent lies to the buffer that is received as if the program had named the same memory twice.
struct Aliasing {
    bool in_place = false;  // it is what MPI_IN_PLACE means
    bool refused = false;   // by the libraries that look for it: it is that, or looks so to them
};

// Of an allgather. An own block begins as many extents behind the first one as elements lie in front of it.
// The libraries that refuse aliases count in sizes there: where a type has gaps it may be other memory that
// they find, between the bytes that are received, and legal.
Aliasing own_block_aliasing(const CollectiveCall& call, int rank) {
    std::int64_t elements = rank * static_cast<std::int64_t>(call.receive_count);
    if (call.counts != nullptr) elements = call.displacements[rank];
    if (call.large_counts != nullptr) elements = call.large_displacements[rank];
    const auto ahead_bytes = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(call.send) -
                                                       reinterpret_cast<std::uintptr_t>(call.receive));
    if (elements == 0) return {ahead_bytes == 0, ahead_bytes == 0};
    if (ahead_bytes % elements != 0) return {};
    const std::int64_t distance_bytes = ahead_bytes / elements;
    TypeShape named;
    return {distance_bytes == shape_of(call.receive_type, named).extent,
            distance_bytes == type_size(call.receive_type)};
}

// As plainly as the libraries look for it.
Aliasing aliasing_of(const CollectiveCall& call, int rank, const CallShape& shape) {
    if (shape.in_place || call.neighbours || shape.total == 0 || call.send == MPI_BOTTOM) return {};
    const auto where = [](bool same) { return Aliasing{same, same}; };
    if (call.collective == Collective::allreduce) return where(call.send == call.receive);
    if (call.send_type != call.receive_type) return {};
    // Of an alltoallv no library makes sense.
    if (call.has_letters())
        return {false, call.send == call.receive && call.sent.counts == call.received.counts &&
                           call.sent.large_counts == call.received.large_counts &&
                           call.sent.types == nullptr && call.received.types == nullptr};
    if (call.collective == Collective::alltoallv)
        return where(call.send == call.receive && call.send_count == call.receive_count);
    if (call.collective != Collective::allgather) return {};
    if (!call.is_vector())
        return call.send_count == call.receive_count ? own_block_aliasing(call, rank) : Aliasing{};
    // What a rank that gives nothing names is no memory at all, and its library says nothing.
    const std::uint64_t count = shape.segments[static_cast<std::size_t>(rank)].count;
    return count != 0 && static_cast<std::uint64_t>(call.send_count) == count ? own_block_aliasing(call, rank)
                                                                              : Aliasing{};
}

// Libraries differ, versions of them too, and one that is told not to look for errors refuses nothing: so it
// is asked, with a call like that by this process alone. Local.
bool refuses_aliases(const CollectiveCall& call) {
    static constinit std::mutex one_at_a_time;
    const std::lock_guard lock(one_at_a_time);
    const Host& mpi = *host();
    const MPI_Comm self = Attendance::self();
    if (self == mpi.comm_null) return false;
    const MPI_Datatype ints = mpi.int_;
    int data[2] = {0, 0};
    const int one[1] = {1}, none[1] = {0};
    int error = MPI_SUCCESS;
    if (call.collective == Collective::allreduce)  // Open MPI lets one element pass
        error = mpi.Allreduce(data, data, call.receive_count > 1 ? 2 : 1, ints, mpi.bor, self);
    else if (call.collective == Collective::allgather && call.is_vector())
        error = mpi.Allgatherv(data, 1, ints, data, one, none, ints, self);
    else if (call.collective == Collective::allgather)
        error = mpi.Allgather(data, 1, ints, data, 1, ints, self);
    else if (call.has_letters())
        error = mpi.Alltoallv(data, one, none, ints, data, one, none, ints, self);
    else
        error = mpi.Alltoall(data, 1, ints, data, 1, ints, self);
    return error != MPI_SUCCESS;
}

}  // namespace

bool lead_nowhere(const CollectiveCall& call, const CallShape& shape) {
    if (call.persistent) return false;
    return begin_nowhere(call.receive, shape.letters.incoming) ||
           (!shape.in_place && begin_nowhere(call.send, shape.letters.outgoing));
}

bool is_refusal(int error) {
    int error_class = MPI_SUCCESS;
    if (error == MPI_SUCCESS || host()->Error_class(error, &error_class) != MPI_SUCCESS) return false;
    switch (error_class) {
        case MPI_ERR_ARG:
        case MPI_ERR_BUFFER:
        case MPI_ERR_COMM:
        case MPI_ERR_COUNT:
        case MPI_ERR_TOPOLOGY:
        case MPI_ERR_TYPE:
            return true;
        default:
            return false;
    }
}

bool refused_on_sight(const CollectiveCall& call, int rank, CallShape& shape) {
    if (refuses_buffers(call, shape)) return true;
    const Aliasing aliasing = aliasing_of(call, rank, shape);
    if (aliasing.refused && refuses_aliases(call)) return true;
    shape.in_place = shape.in_place || aliasing.in_place;
    return false;
}

}  // namespace thalweg
