#include "plan/collective_call.h"

#include <algorithm>
#include <new>
#include <string_view>

#include "plan/datatype.h"
#include "plan/reductions.h"
#include "plan/refusals.h"
#include "transport/mpi/host.h"

namespace thalweg {

namespace {

bool multiply(MPI_Count count, std::int64_t size, std::uint64_t& bytes) {
    return count >= 0 && size >= 0 &&
           !__builtin_mul_overflow(static_cast<std::uint64_t>(count), static_cast<std::uint64_t>(size),
                                   &bytes);
}

// Where each rank's block goes. False: counts that the native library judges.
bool look_at_blocks(const CollectiveCall& call, int size, CallShape& shape) {
    TypeShape named;
    const TypeShape& type = shape_of(call.receive_type, named);
    shape.element_size = type.size;
    shape.segments.resize(static_cast<std::size_t>(size));
    for (int rank = 0; rank < size; ++rank) {
        const MPI_Count count = call.counts != nullptr ? call.counts[rank] : call.large_counts[rank];
        const std::int64_t place =
            call.counts != nullptr ? call.displacements[rank] : call.large_displacements[rank];
        std::uint64_t bytes = 0;
        if (!multiply(count, static_cast<std::int64_t>(type.size), bytes)) return false;
        shape.segments[static_cast<std::size_t>(rank)] = {static_cast<std::uint64_t>(count),
                                                          place * type.extent, call.receive_type};
        shape.total += bytes;
    }
    shape.bytes = (shape.total + static_cast<unsigned>(size) - 1) / static_cast<unsigned>(size);
    return true;
}

// Where pairs are alike: each sends and receives so many elements.
bool look_at_pairs(const CollectiveCall& call, int size, CallShape& shape) {
    std::uint64_t sent = 0;
    if (!multiply(call.receive_count, type_size(call.receive_type), shape.bytes)) return false;
    if (!shape.in_place &&
        (!multiply(call.send_count, type_size(call.send_type), sent) || sent != shape.bytes))
        return false;
    return !__builtin_mul_overflow(shape.bytes, static_cast<unsigned>(size), &shape.total);
}

// Nothing here is equal on all ranks, that there are no bytes neither.
bool look_at_letters(const CollectiveCall& call, int size, CallShape& shape) {
    if (!read_letters(call.received, size, shape.letters.incoming)) return false;
    if (!shape.in_place && !read_letters(call.sent, size, shape.letters.outgoing)) return false;
    if (shape.in_place) shape.letters.outgoing = shape.letters.incoming;
    shape.total = shape.letters.sent_bytes();
    shape.bytes = (shape.total + static_cast<unsigned>(size) - 1) / static_cast<unsigned>(size);
    return true;
}

std::optional<Reason> look_at_arguments(const CollectiveCall& call, int rank, int size, CallShape& shape) {
    if (call.collective == Collective::barrier) return std::nullopt;
    shape.in_place = call.send == MPI_IN_PLACE;
    if (call.receive == MPI_IN_PLACE) return Reason::invalid;
    if (call.received.given()) {
        if (look_at_letters(call, size, shape)) return std::nullopt;
        return Reason::invalid;
    }
    const std::int64_t receive_size = type_size(call.receive_type);
    std::uint64_t sent = 0;
    switch (call.collective) {
        case Collective::bcast:
            if (call.root < 0 || call.root >= size) return Reason::invalid;
            if (!multiply(call.receive_count, receive_size, shape.bytes)) return Reason::invalid;
            shape.total = shape.bytes;
            break;
        case Collective::allgather:
            if (!call.is_vector()) {
                if (!multiply(call.receive_count, receive_size, shape.bytes)) return Reason::invalid;
                shape.total = shape.bytes * static_cast<unsigned>(size);
            } else if (receive_size < 0 || !look_at_blocks(call, size, shape)) {
                return Reason::invalid;
            }
            // A rank that sends less than the others receive of it is in error, and for MPI to judge.
            if (!shape.in_place) {
                const std::uint64_t own = call.is_vector()
                                              ? shape.segments[static_cast<std::size_t>(rank)].count *
                                                    static_cast<std::uint64_t>(receive_size)
                                              : shape.bytes;
                if (!multiply(call.send_count, type_size(call.send_type), sent) || sent != own)
                    return Reason::invalid;
            }
            break;
        case Collective::allreduce:
            if (!multiply(call.receive_count, receive_size, shape.bytes)) return Reason::invalid;
            shape.total = shape.bytes;
            if (!find_reducer(call.operation, call.receive_type, shape.reducer)) return Reason::reduction;
            break;
        case Collective::alltoallv:
            if (!look_at_pairs(call, size, shape)) return Reason::invalid;
            break;
        case Collective::barrier:
            return std::nullopt;
    }
    shape.decided_bytes = shape.bytes;
    if (shape.total == 0) return Reason::empty;
    return std::nullopt;
}

// What of the buffer that is also written has to be there at the start.
void choose_loads(const CollectiveCall& call, const CallShape& shape, int rank,
                  const std::vector<Block>& blocks, Ongoing::Options& options) {
    options.stores = call.collective != Collective::bcast || rank != call.root;
    if (call.collective == Collective::bcast && rank == call.root) options.loads_to = shape.bytes;
    if (!shape.in_place || call.collective == Collective::barrier || call.collective == Collective::alltoallv)
        return;
    if (call.collective == Collective::allreduce) {
        options.loads_to = shape.bytes;
    } else if (call.is_vector()) {
        const Block& own = blocks[static_cast<std::size_t>(rank)];
        options.loads_from = own.offset;
        options.loads_to = own.offset + own.bytes;
    } else {
        options.loads_from = static_cast<unsigned>(rank) * shape.bytes;
        options.loads_to = options.loads_from + shape.bytes;
    }
}

// Of an alltoall: every message is one parcel, from its place in `in` to that in `out`.
bool sends_parcels_as_they_are(std::string_view algorithm) {
    return algorithm == "spread" || algorithm == "pairwise";
}

// An algorithm that serves everything.
std::string_view simplest_of(Collective collective) {
    switch (collective) {
        case Collective::bcast:
            return "linear";
        case Collective::allgather:
            return "spread";
        case Collective::allreduce:
            return "recursive_doubling";
        case Collective::alltoallv:
            return "spread";
        case Collective::barrier:
            break;
    }
    return "dissemination";
}

// One part of an operation: a piece of the message that `decision` was made for.
std::unique_ptr<Run> borrow(const Communicator& communicator, const Carriage& carriage, const RunKey& key) {
    return carriage.lane->borrow(key, [&] {
        Problem problem;
        problem.rank = communicator.rank();
        problem.size = communicator.size();
        problem.root = key.root;
        problem.bytes = key.bytes;
        problem.element_bytes = key.element_bytes;
        problem.in_place = key.in_place;
        problem.blocks = key.blocks;
        if (key.exchange) problem.exchange = &*key.exchange;
        const Choice* choice = &*carriage.decision.choice;
        // A last piece too small for the algorithm of the others, or blocks that differ too much.
        Choice simplest;
        if (!refuse(*choice, problem, carriage.topology).empty()) {
            simplest = standard_choice(*find_algorithm(key.collective, simplest_of(key.collective)));
            choice = &simplest;
        }
        return build(*choice, problem, carriage.topology);
    });
}

}  // namespace

Status bind(const CollectiveCall& call, const CallShape& shape, int size, Ongoing& ongoing, RunKey& key) {
    const auto count = static_cast<std::uint64_t>(call.receive_count);
    const std::uint64_t all = count * static_cast<unsigned>(size);
    Status status = Status::ok;
    const bool lasting = !call.blocking;
    if (call.has_letters())
        return attach(shape.letters, const_cast<void*>(call.send), call.receive, shape.in_place,
                      ongoing.input(), ongoing.buffer(), *key.exchange);
    switch (call.collective) {
        case Collective::bcast:
            return ongoing.buffer().attach(call.receive, shape.bytes, count, call.receive_type, lasting);
        case Collective::allgather:
            if (call.is_vector())
                status = ongoing.buffer().attach(call.receive, shape.segments, key.blocks);
            else
                status = ongoing.buffer().attach(call.receive, shape.total, all, call.receive_type, lasting);
            break;
        case Collective::alltoallv:
            status = ongoing.buffer().attach(call.receive, shape.total, all, call.receive_type, lasting);
            if (failed(status)) return status;
            if (shape.in_place)
                return ongoing.input().attach(call.receive, shape.total, all, call.receive_type, lasting,
                                              true);
            return ongoing.input().attach(
                const_cast<void*>(call.send), shape.total,
                static_cast<std::uint64_t>(call.send_count) * static_cast<unsigned>(size), call.send_type,
                lasting);
        case Collective::allreduce:
            status = ongoing.buffer().attach(call.receive, shape.bytes, count, call.receive_type, lasting);
            break;
        case Collective::barrier:
            return Status::ok;
    }
    if (failed(status) || shape.in_place) return status;
    const bool reduces = call.collective == Collective::allreduce;
    const MPI_Datatype type = reduces ? call.receive_type : call.send_type;
    const auto sent = static_cast<std::uint64_t>(reduces ? call.receive_count : call.send_count);
    return ongoing.input().attach(const_cast<void*>(call.send),
                                  sent * static_cast<std::uint64_t>(type_size(type)), sent, type, lasting);
}

Pieces CollectiveCall::pieces_of(std::uint64_t bytes) const {
    return collective == Collective::bcast ? thalweg::pieces_of(bytes) : Pieces{bytes, 1};
}

std::optional<Reason> look_at(const CollectiveCall& call, int rank, int size, CallShape& shape) {
    const std::optional<Reason> declined = look_at_arguments(call, rank, size, shape);
    if (declined) return declined;
    if (refused_on_sight(call, rank, shape)) return Reason::invalid;
    return std::nullopt;
}

bool stays_stable(const Settings& settings, const CallShape& shape, Wanted wanted) {
    return shape.reducer.rounds && settings.float_order == FloatOrder::stable && wanted != Wanted::algorithm;
}

Bound::~Bound() {
    if (ongoing != nullptr) ongoing->release();
}

void bind(Communicator& communicator, const CollectiveCall& call, const CallShape& shape, Bound& bound) try {
    Ongoing::Options options;
    options.record = communicator.shared_record();
    options.bytes = shape.total;
    options.persistent = call.persistent;
    options.reducer = shape.reducer;
    auto ongoing = std::make_unique<Ongoing>(std::move(options));
    // On plans the ranks agree when each has what it needs.
    if (!call.persistent) {
        ongoing->input().may_borrow();
        ongoing->buffer().may_borrow();
    }
    bound.status = bind(call, shape, communicator.size(), *ongoing, bound.key);
    if (failed(bound.status)) return ongoing->release();
    choose_loads(call, shape, communicator.rank(), bound.key.blocks, ongoing->options());
    bound.ongoing = std::move(ongoing);
} catch (const std::bad_alloc&) {
    bound.status = Status::out_of_memory;
}

std::unique_ptr<Ongoing> assemble(Communicator& communicator, const CollectiveCall& call,
                                  const CallShape& shape, Carriage carriage, Bound& bound) try {
    if (bound.ongoing == nullptr && !failed(bound.status)) bind(communicator, call, shape, bound);
    if (bound.ongoing == nullptr) return nullptr;
    Ongoing* const ongoing = bound.ongoing.get();
    Ongoing::Options& options = ongoing->options();
    options.lane = carriage.lane;
    options.tally = &communicator.record().accelerated(to_text(*carriage.decision.choice),
                                                       size_class(shape.bytes), call.kind);
    options.policy = carriage.policy;
    options.numbered = !carriage.numbers.empty();
    if (call.has_letters() && sends_parcels_as_they_are(carriage.decision.choice->algorithm->name))
        send_in_place(shape.letters, communicator.rank(), shape.in_place, *ongoing);
    RunKey& key = bound.key;
    key.collective = call.collective;
    key.choice = *carriage.decision.choice;
    key.root = call.root;
    key.generation = carriage.generation;
    key.element_bytes = shape.reducer.element_bytes;
    key.in_place = shape.in_place;
    const Pieces pieces = call.pieces_of(shape.decided_bytes);
    key.decided_bytes = pieces.bytes;
    ongoing->parts().reserve(pieces.count);
    for (std::uint64_t part = 0; part < pieces.count; ++part) {
        const std::uint64_t begin = part * pieces.bytes;
        key.bytes = std::min(pieces.bytes, shape.decided_bytes - begin);
        const std::uint32_t number = ongoing->options().numbered ? carriage.numbers[part] : 0;
        ongoing->parts().push_back({borrow(communicator, carriage, key), begin, number});
    }
    return std::move(bound.ongoing);
} catch (const std::bad_alloc&) {
    bound.status = Status::out_of_memory;
    return nullptr;
}

}  // namespace thalweg
