#include "plan/nonblocking.h"

#include <algorithm>
#include <new>

#include "plan/attendance.h"
#include "plan/bypass.h"
#include "plan/datatype.h"
#include "plan/failure.h"
#include "plan/last_call.h"
#include "plan/neighbours.h"
#include "plan/pieces.h"
#include "plan/quiet_errors.h"
#include "plan/reductions.h"
#include "plan/set_up.h"
#include "transport/mpi/host.h"

namespace thalweg {

namespace {

// What a call was left to the native library for; null.
class Declining {
  public:
    explicit Declining(CallKind kind) : kind_(kind) {}

    std::nullptr_t anywhere(Reason reason) const {
        note_declined(reason, 0);
        declined_calls[static_cast<std::size_t>(kind_)][static_cast<std::size_t>(reason)].fetch_add(
            1, std::memory_order_relaxed);
        return nullptr;
    }
    std::nullptr_t on(Communicator& communicator, Reason reason, std::uint64_t bytes) const {
        note_declined(reason, bytes);
        Tally& tally = communicator.record().declined(reason, size_class(bytes), kind_);
        ++tally.calls;
        tally.bytes += bytes;
        return nullptr;
    }

  private:
    CallKind kind_;
};

// A call as far as all ranks see it alike.
struct Shape {
    std::uint64_t bytes = 0;  // of the message, the vector, or a rank's block (their mean, where they differ)
    std::uint64_t total = 0;  // what this rank sends or receives in all, for the report
    std::vector<Segment> segments;    // of an allgather whose blocks differ
    Letters letters;                  // of an alltoall whose pairs differ
    std::uint64_t decided_bytes = 0;  // what the algorithm is chosen by: equal on all ranks
    Reducer reducer;
    bool in_place = false;
};

bool multiply(MPI_Count count, std::int64_t size, std::uint64_t& bytes) {
    return count >= 0 && size >= 0 &&
           !__builtin_mul_overflow(static_cast<std::uint64_t>(count), static_cast<std::uint64_t>(size),
                                   &bytes);
}

// Where each rank's block goes. False: counts that the native library judges.
bool look_at_blocks(const CollectiveCall& call, int size, Shape& shape) {
    TypeShape named;
    const TypeShape& type = shape_of(call.receive_type, named);
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
bool look_at_pairs(const CollectiveCall& call, int size, Shape& shape) {
    std::uint64_t sent = 0;
    if (!multiply(call.receive_count, type_size(call.receive_type), shape.bytes)) return false;
    if (!shape.in_place &&
        (!multiply(call.send_count, type_size(call.send_type), sent) || sent != shape.bytes))
        return false;
    return !__builtin_mul_overflow(shape.bytes, static_cast<unsigned>(size), &shape.total);
}

// Nothing here is equal on all ranks, that there are no bytes neither.
bool look_at_letters(const CollectiveCall& call, int size, Shape& shape) {
    if (!read_letters(call.received, size, shape.letters.incoming)) return false;
    if (!shape.in_place && !read_letters(call.sent, size, shape.letters.outgoing)) return false;
    if (shape.in_place) shape.letters.outgoing = shape.letters.incoming;
    shape.total = shape.letters.sent_bytes();
    shape.bytes = (shape.total + static_cast<unsigned>(size) - 1) / static_cast<unsigned>(size);
    return true;
}

// The same where the communicator's topology says who is meant.
bool look_at_neighbours(const CollectiveCall& call, Communicator& communicator, Shape& shape) {
    std::shared_ptr<const Neighbourhood>& known = communicator.self_driven.neighbourhood;
    if (known == nullptr) {
        const QuietErrors quiet(call.comm);
        std::optional<Neighbourhood> found = find_neighbourhood(call.comm);
        if (!found) return false;
        known = std::make_shared<const Neighbourhood>(std::move(*found));
    }
    const NeighbourSide sent{call.sent, call.send_count, call.send_type, call.gathers};
    const NeighbourSide received{call.received, call.receive_count, call.receive_type, false};
    if (call.send == MPI_IN_PLACE || !read_neighbours(*known, sent, received, shape.letters)) return false;
    const std::size_t messages = std::max<std::size_t>(shape.letters.outgoing.size(), 1);
    shape.total = shape.letters.sent_bytes();
    shape.bytes = (shape.total + messages - 1) / messages;
    return true;
}

// ok, or why the call is the native library's.
std::optional<Reason> look_at(const CollectiveCall& call, int rank, int size, Shape& shape) {
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

// The program's memory as what the schedules work on; `key` says where what lies there.
Status attach(const CollectiveCall& call, const Shape& shape, int size, Ongoing& ongoing, RunKey& key) {
    const auto count = static_cast<std::uint64_t>(call.receive_count);
    const std::uint64_t all = count * static_cast<unsigned>(size);
    Status status = Status::ok;
    if (call.has_letters())
        return thalweg::attach(shape.letters, const_cast<void*>(call.send), call.receive, shape.in_place,
                               ongoing.input(), ongoing.buffer(), *key.exchange);
    switch (call.collective) {
        case Collective::bcast:
            return ongoing.buffer().attach(call.receive, shape.bytes, count, call.receive_type);
        case Collective::allgather:
            if (call.is_vector())
                status = ongoing.buffer().attach(call.receive, shape.segments, key.blocks);
            else
                status = ongoing.buffer().attach(call.receive, shape.total, all, call.receive_type);
            break;
        case Collective::alltoallv:
            status = ongoing.buffer().attach(call.receive, shape.total, all, call.receive_type);
            if (failed(status)) return status;
            if (shape.in_place)
                return ongoing.input().attach(call.receive, shape.total, all, call.receive_type, true);
            return ongoing.input().attach(
                const_cast<void*>(call.send), shape.total,
                static_cast<std::uint64_t>(call.send_count) * static_cast<unsigned>(size), call.send_type);
        case Collective::allreduce:
            status = ongoing.buffer().attach(call.receive, shape.bytes, count, call.receive_type);
            break;
        case Collective::barrier:
            return Status::ok;
    }
    if (failed(status) || shape.in_place) return status;
    const bool reduces = call.collective == Collective::allreduce;
    const MPI_Datatype type = reduces ? call.receive_type : call.send_type;
    const auto sent = static_cast<std::uint64_t>(reduces ? call.receive_count : call.send_count);
    return ongoing.input().attach(const_cast<void*>(call.send),
                                  sent * static_cast<std::uint64_t>(type_size(type)), sent, type);
}

// What of the buffer that is also written has to be there at the start.
void choose_loads(const CollectiveCall& call, const Shape& shape, int rank, const std::vector<Block>& blocks,
                  Ongoing::Options& options) {
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

// The operation with its parts, on `lane`. Errors of this rank alone go to `status`: the others run it.
std::unique_ptr<Ongoing> assemble(NonblockingState& state, Communicator& communicator,
                                  const CollectiveCall& call, const Shape& shape, const Decision& decision,
                                  std::optional<Exchange> exchange, const std::shared_ptr<Lane>& lane,
                                  const std::vector<std::uint32_t>& numbers, Status& status) try {
    Ongoing::Options options;
    options.lane = lane;
    options.record = communicator.shared_record();
    options.tally =
        &communicator.record().accelerated(to_text(*decision.choice), size_class(shape.bytes), call.kind);
    options.policy = state.policy();
    options.bytes = shape.total;
    options.persistent = call.persistent;
    options.reducer = shape.reducer;
    RunKey key;
    key.exchange = std::move(exchange);
    auto ongoing = std::make_unique<Ongoing>(std::move(options));
    status = attach(call, shape, state.size(), *ongoing, key);
    if (failed(status)) {
        ongoing->release();
        return nullptr;
    }
    choose_loads(call, shape, state.rank(), key.blocks, ongoing->options());
    key.collective = call.collective;
    key.root = call.root;
    key.generation = state.generation();
    key.element_bytes = shape.reducer.element_bytes;
    key.in_place = shape.in_place;
    const Pieces pieces = call.pieces_of(shape.decided_bytes);
    key.decided_bytes = pieces.bytes;
    ongoing->parts().reserve(pieces.count);
    for (std::uint64_t part = 0; part < pieces.count; ++part) {
        const std::uint64_t begin = part * pieces.bytes;
        key.bytes = std::min(pieces.bytes, shape.decided_bytes - begin);
        const std::uint32_t number = numbers.empty() ? 0 : numbers[part];
        ongoing->parts().push_back({state.borrow(*lane, decision, key), begin, number});
    }
    return ongoing;
} catch (const std::bad_alloc&) {
    status = Status::out_of_memory;
    return nullptr;
}

std::nullptr_t declined_by(const Decision& decision, Communicator& communicator, const Declining& decline,
                           std::uint64_t bytes) {
    const bool asked = decision.reason.substr(0, 9) == "asked for";
    return decline.on(communicator, asked ? Reason::cannot : Reason::native_best, bytes);
}

void want_set_up(Communicator::SelfDriven& self_driven) {
    if (self_driven.wanted) return;
    self_driven.wanted = true;
    set_ups_wanted.fetch_add(1, std::memory_order_relaxed);
    Bypass::hold();  // a broadcast may be where it is met
}

// Collective over `comm`.
void set_up(MPI_Comm comm, Communicator& communicator) {
    Communicator::SelfDriven& self_driven = communicator.self_driven;
    if (self_driven.state != nullptr || self_driven.refused) return;
    want_no_set_up(self_driven);
    release_detached();
    Reason why = Reason::setup_failed;
    self_driven.state = NonblockingState::set_up(comm, communicator, *World::get(), why);
    if (self_driven.state == nullptr) self_driven.refused = why;
}

// What an alltoall is decided by where no argument is equal on all ranks: with nothing agreed, messages that
// are worth taking.
constexpr std::uint64_t assumed_pair_bytes = 64 << 10;
// Fewer messages per pair of ranks than this gain nothing from travelling together.
constexpr std::uint64_t dense_share = 2;

// How an exchange whose pairs differ runs. Collective where it is persistent: what all messages are like is
// agreed on, and leaders are told what travels together.
Decision decide_exchange(NonblockingState& state, const CollectiveCall& call, Shape& shape,
                         std::optional<Exchange>& exchange) {
    exchange.emplace();
    const auto ranks = static_cast<std::uint64_t>(state.size());
    Traits traits{assumed_pair_bytes, 0};
    if (call.persistent && !agree_on_traits(call.comm, shape.letters, state.rank(), state.size(), traits))
        traits = {assumed_pair_bytes, 0};
    shape.decided_bytes = traits.mean_bytes;
    Decision decision = state.decide(call.collective, shape.decided_bytes);
    if (!decision.choice || decision.choice->algorithm->name != "node_leader") return decision;
    const bool sparse = decision.reason != "asked for" && traits.messages * dense_share < ranks * (ranks - 1);
    if (call.persistent && !sparse &&
        inform_leaders(call.comm, shape.letters, state.rank(), state.topology(), *exchange))
        return decision;
    decision.choice = standard_choice(*find_algorithm(call.collective, "spread"));
    return decision;
}

// Neighbours are few, and what they exchange is known at the two ends of each message only: every message
// goes straight to its rank.
Decision decide_neighbours(NonblockingState& state, Shape& shape, std::optional<Exchange>& exchange) {
    exchange.emplace();
    shape.decided_bytes = assumed_pair_bytes;
    Decision decision = state.decide(Collective::alltoallv, shape.decided_bytes);
    if (decision.choice) decision.choice = standard_choice(*find_algorithm(Collective::alltoallv, "spread"));
    return decision;
}

// The settings that may change while the program runs: why the call is the native library's.
std::optional<Reason> steered_away(const World& world, Collective collective, std::uint64_t bytes) {
    const Wanted wanted = world.wanted(collective);
    if (wanted == Wanted::native) return Reason::native_setting;
    if (collective == Collective::bcast && bytes < world.bcast_min_bytes()) return Reason::small;
    return std::nullopt;
}

}  // namespace

constinit std::atomic<int> set_ups_wanted{0};

void want_no_set_up(Communicator::SelfDriven& self_driven) noexcept {
    if (!self_driven.wanted) return;
    self_driven.wanted = false;
    set_ups_wanted.fetch_sub(1, std::memory_order_relaxed);
    Bypass::let_go();
}

Pieces CollectiveCall::pieces_of(std::uint64_t bytes) const {
    return collective == Collective::bcast ? thalweg::pieces_of(bytes) : Pieces{bytes, 1};
}

std::unique_ptr<Ongoing> offer(const CollectiveCall& call, int& error) {
    const Declining decline(call.kind);
    error = MPI_SUCCESS;
    if (!Attendance::present()) return decline.anywhere(Attendance::refusal());
    World& world = *World::get();
    if (call.comm == host()->comm_null) return decline.anywhere(Reason::invalid);
    // A blocking one has nothing to overlap with; how large its messages are no rank knows of all.
    if (call.blocking && world.wanted(call.collective) != Wanted::algorithm)
        return decline.anywhere(Reason::native_best);
    // One host: nothing need be known of the communicator.
    if (world.wanted(call.collective) == Wanted::automatic && world.leaves_all_native(call.collective))
        return decline.anywhere(Reason::native_best);
    Communicator* const found = Communicator::of(call.comm, world);
    if (found == nullptr) return decline.anywhere(Reason::invalid);
    Communicator& communicator = *found;
    if (communicator.phase() == Communicator::Phase::native)
        return decline.on(communicator, communicator.reason(), 0);
    Communicator::SelfDriven& self_driven = communicator.self_driven;
    if (self_driven.refused) return decline.on(communicator, *self_driven.refused, 0);
    Shape shape;
    if (call.neighbours) {
        if (!look_at_neighbours(call, communicator, shape))
            return decline.on(communicator, Reason::invalid, 0);
    } else if (const auto why = look_at(call, communicator.rank(), communicator.size(), shape)) {
        return decline.on(communicator, *why, shape.bytes);
    }
    if (const auto why = steered_away(world, call.collective, shape.bytes))
        return decline.on(communicator, *why, shape.bytes);

    if (call.persistent || call.blocking) {
        set_up(call.comm, communicator);
        if (self_driven.refused) return decline.on(communicator, *self_driven.refused, shape.bytes);
    } else if (self_driven.state == nullptr) {
        want_set_up(self_driven);
        return decline.on(communicator, Reason::not_set_up, shape.bytes);
    }
    NonblockingState& state = *self_driven.state;
    std::shared_ptr<Lane> lane = state.lane();
    if (lane->broken()) {
        error = raise(call.comm, "a nonblocking collective", Status::transport_failed, lane->native_error());
        return nullptr;
    }
    const Pieces pieces = call.pieces_of(shape.decided_bytes);
    std::optional<Exchange> exchange;
    const Decision decision = call.neighbours      ? decide_neighbours(state, shape, exchange)
                              : call.has_letters() ? decide_exchange(state, call, shape, exchange)
                                                   : state.decide(call.collective, pieces.bytes);
    if (!decision.choice) return declined_by(decision, communicator, decline, shape.bytes);
    std::vector<std::uint32_t> numbers;
    if (call.persistent) {
        Reason why = Reason::setup_failed;
        lane = state.make_plan_lane(call.comm, pieces.count, numbers, why);
        if (lane == nullptr) return decline.on(communicator, why, shape.bytes);
    }
    Status status = Status::ok;
    std::unique_ptr<Ongoing> ongoing =
        assemble(state, communicator, call, shape, decision, std::move(exchange), lane, numbers, status);
    if (status == Status::invalid_argument) return decline.on(communicator, Reason::invalid, shape.bytes);
    if (ongoing == nullptr) {
        lane->fail();
        error = raise(call.comm, "a nonblocking collective", status, MPI_SUCCESS);
        return nullptr;
    }
    note_accelerated(to_text(*decision.choice), decision.reason, shape.bytes);
    if (!call.persistent) ongoing->start();
    return ongoing;
}

void meet(MPI_Comm comm) {
    if (!Attendance::present() || comm == host()->comm_null) return;
    Communicator* const communicator = Communicator::existing(comm);
    if (communicator != nullptr && communicator->self_driven.wanted) set_up(comm, *communicator);
}

void set_up_early(MPI_Comm comm) {
    World* const world = World::get();
    if (world == nullptr || !Attendance::present() || comm == host()->comm_null) return;
    Communicator* const communicator = Communicator::of(comm, *world);
    if (communicator == nullptr || communicator->phase() == Communicator::Phase::native) return;
    set_up(comm, *communicator);
}

}  // namespace thalweg
