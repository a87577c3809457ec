#include "plan/native_plan.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <climits>
#include <deque>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "base/log.h"
#include "plan/attendance.h"
#include "plan/communicator.h"
#include "plan/datatype.h"
#include "plan/nonblocking.h"
#include "plan/plan_request.h"
#include "plan/quiet_errors.h"
#include "plan/reductions.h"
#include "plan/set_up.h"
#include "schedule/builder.h"
#include "transport/mpi/error_handler.h"
#include "transport/mpi/host.h"

namespace thalweg {

namespace {

// A datatype that the program may free while the plan lives.
class HeldType {
  public:
    explicit HeldType(MPI_Datatype type) : type_(type) {
        TypeShape named;
        predefined_ = shape_of(type, named).identity == TypeShape::predefined;
        held_ = !predefined_ && host()->Type_contiguous(1, type, &type_) == MPI_SUCCESS;
        good_ = predefined_ || (held_ && host()->Type_commit(&type_) == MPI_SUCCESS);
    }
    HeldType(const HeldType&) = delete;
    HeldType& operator=(const HeldType&) = delete;
    ~HeldType() {
        if (held_) host()->Type_free(&type_);
    }
    MPI_Datatype get() const { return type_; }
    bool predefined() const { return predefined_; }
    bool good() const { return good_; }  // else MPI refused

  private:
    MPI_Datatype type_;
    bool predefined_ = false, held_ = false, good_ = false;
};

bool as_int(MPI_Aint value, int& narrow) {
    narrow = static_cast<int>(value);
    return value >= INT_MIN && value <= INT_MAX;
}

// One side of a call with arrays, of its own.
struct Side {
    std::vector<int> counts, displacements;
    std::deque<HeldType> held;
    std::vector<MPI_Datatype> types;
    bool good = true;  // all of it fits ints, and is held

    // Of one that has none neither its type nor its places need be any.
    bool has_elements() const {
        return std::any_of(counts.begin(), counts.end(), [](int count) { return count != 0; });
    }

    void take(std::size_t size, const int* small_counts, const int* small_displacements,
              const MPI_Count* large_counts, const MPI_Aint* large_displacements,
              const MPI_Datatype* own_types) {
        counts.resize(size);
        displacements.resize(size);
        const bool placed = small_displacements != nullptr || large_displacements != nullptr;
        for (std::size_t i = 0; i < size; ++i) {
            good &= as_int(small_counts != nullptr ? small_counts[i] : MPI_Aint(large_counts[i]), counts[i]);
            if (!placed) continue;
            good &= as_int(small_displacements != nullptr ? small_displacements[i] : large_displacements[i],
                           displacements[i]);
        }
        if (own_types == nullptr) return;
        types.reserve(size);
        // The type of no elements may be anything, MPI_DATATYPE_NULL too.
        for (std::size_t i = 0; i < size; ++i) {
            types.push_back(counts[i] == 0 ? host()->byte : held.emplace_back(own_types[i]).get());
            good &= counts[i] == 0 || held.back().good();
        }
    }
    void take(std::size_t size, const LetterArrays& arrays) {
        take(size, arrays.counts, arrays.displacements, arrays.large_counts, arrays.large_displacements,
             arrays.types);
    }
};

// The call with what it needs of the program's arguments, made on `comm`.
class NativeCall {
  public:
    NativeCall(const CollectiveCall& call, int size)
        : kind_(call.kind),
          send_(call.send),
          receive_(call.receive),
          root_(call.root),
          operation_(call.operation) {
        const bool in_place = call.send == MPI_IN_PLACE;
        const auto ranks = static_cast<std::size_t>(size);
        good_ = as_int(call.send_count, send_count_) && as_int(call.receive_count, receive_count_);
        switch (kind_) {
            case CallKind::barrier_init:
                break;
            case CallKind::allreduce_init:
                // The program's own may be gone before a start; ours know no copies of types.
                hold(receive_type_, call.receive_type);
                good_ &= !of_the_program(call.operation) && receive_type_->predefined();
                break;
            case CallKind::allgather_init:
            case CallKind::alltoall_init:
                if (!in_place) hold(send_type_, call.send_type);
                hold(receive_type_, call.receive_type);
                break;
            case CallKind::allgatherv_init:
                if (!in_place) hold(send_type_, call.send_type);
                hold(receive_type_, call.receive_type);
                received_.take(ranks, call.counts, call.displacements, call.large_counts,
                               call.large_displacements, nullptr);
                break;
            case CallKind::alltoallv_init:
            case CallKind::alltoallw_init:
                if (!in_place) sent_.take(ranks, call.sent);
                received_.take(ranks, call.received);
                if (kind_ == CallKind::alltoallw_init) break;
                if (sent_.has_elements()) hold(send_type_, call.send_type);
                if (received_.has_elements()) hold(receive_type_, call.receive_type);
                break;
            case CallKind::bcast_init:
                hold(receive_type_, call.receive_type);
                break;
            default:
                good_ = false;
        }
        good_ &= sent_.good && received_.good && function_is_here();
    }
    bool good() const { return good_; }

    int start(MPI_Comm comm, MPI_Request* request) const {
        const Host& mpi = *host();
        const MPI_Datatype sent = send_type_ ? send_type_->get() : mpi.byte;
        const MPI_Datatype received = receive_type_ ? receive_type_->get() : mpi.byte;
        switch (kind_) {
            case CallKind::bcast_init:
                return mpi.Ibcast(receive_, receive_count_, received, root_, comm, request);
            case CallKind::allgather_init:
                return mpi.Iallgather(send_, send_count_, sent, receive_, receive_count_, received, comm,
                                      request);
            case CallKind::allgatherv_init:
                return mpi.Iallgatherv(send_, send_count_, sent, receive_, received_.counts.data(),
                                       received_.displacements.data(), received, comm, request);
            case CallKind::allreduce_init:
                return mpi.Iallreduce(send_, receive_, receive_count_, received, operation_, comm, request);
            case CallKind::alltoall_init:
                return mpi.Ialltoall(send_, send_count_, sent, receive_, receive_count_, received, comm,
                                     request);
            case CallKind::alltoallv_init:
                return mpi.Ialltoallv(send_, sent_.counts.data(), sent_.displacements.data(), sent, receive_,
                                      received_.counts.data(), received_.displacements.data(), received, comm,
                                      request);
            case CallKind::alltoallw_init:
                return mpi.Ialltoallw(send_, sent_.counts.data(), sent_.displacements.data(),
                                      sent_.types.data(), receive_, received_.counts.data(),
                                      received_.displacements.data(), received_.types.data(), comm, request);
            default:
                return mpi.Ibarrier(comm, request);
        }
    }

  private:
    void hold(std::optional<HeldType>& held, MPI_Datatype type) { good_ &= held.emplace(type).good(); }
    bool function_is_here() const {
        const Host& mpi = *host();
        switch (kind_) {
            case CallKind::allgather_init:
                return mpi.Iallgather != nullptr;
            case CallKind::allgatherv_init:
                return mpi.Iallgatherv != nullptr;
            case CallKind::alltoall_init:
                return mpi.Ialltoall != nullptr;
            case CallKind::alltoallv_init:
                return mpi.Ialltoallv != nullptr;
            case CallKind::alltoallw_init:
                return mpi.Ialltoallw != nullptr;
            default:
                return true;
        }
    }

    CallKind kind_;
    const void* send_;
    void* receive_;
    int root_, send_count_ = 0, receive_count_ = 0;
    MPI_Op operation_;
    std::optional<HeldType> send_type_, receive_type_;
    Side sent_, received_;
    bool good_ = true;
};

// A channel whose only message stands for the native call (window_plan.cpp does the same for an epoch).
class NativeTransport final : public Transport {
  public:
    explicit NativeTransport(std::unique_ptr<NativeCall> call) : call_(std::move(call)) {
        capabilities_.name = "mpi";
        capabilities_.max_message_bytes = SIZE_MAX;
    }
    // What a call that failed has left there shall meet no later plan.
    ~NativeTransport() override {
        if (ground_ != nullptr && error_.load(std::memory_order_relaxed) == MPI_SUCCESS)
            ground_->give_back(slot_);
    }
    // Pre: the plan is not started.
    void found(std::shared_ptr<NativeGround> ground, std::size_t slot) {
        ground_ = std::move(ground);
        slot_ = slot;
        comm_ = ground_->comm(slot);
    }
    Tally& tally() { return tally_; }
    const std::atomic<int>& error() const { return error_; }

    const Capabilities& capabilities() const override { return capabilities_; }
    // Rank 0 of 2, whoever takes part: the message goes nowhere.
    int rank() const override { return 0; }
    int size() const override { return 2; }
    Slot slots() const override { return 2; }
    Status grow(Slot slots) override { return slots <= 2 ? Status::ok : Status::unsupported; }

    Status post_send(Slot slot, int, MessageId, const void*, std::size_t, SendMode) override {
        posted_ = slot;
        const Status status = note(call_->start(comm_, &request_));
        running_ = !failed(status);
        return status;
    }
    Status post_recv(Slot, int, MessageId, void*, std::size_t) override { return Status::unsupported; }

    Status progress(std::span<Slot> done, std::size_t& count) override {
        count = 0;
        if (!running_ || done.empty()) return Status::ok;
        int over = 0;
        const Status status = note(host()->Test(&request_, &over, MPI_STATUS_IGNORE));
        running_ = !failed(status) && !over;
        if (failed(status) || running_) return status;
        done[count++] = posted_;
        return Status::ok;
    }

  private:
    Status note(int error) {
        if (error == MPI_SUCCESS) return Status::ok;
        error_.store(error, std::memory_order_relaxed);
        THALWEG_LOG_AT(error, "the MPI library failed in the place of a plan: MPI error %d", error);
        return Status::transport_failed;
    }

    std::unique_ptr<NativeCall> call_;
    std::shared_ptr<NativeGround> ground_;  // null until the ranks have agreed
    std::size_t slot_ = 0;
    MPI_Comm comm_{};
    MPI_Request request_{};
    Slot posted_ = 0;
    bool running_ = false;
    std::atomic<int> error_{MPI_SUCCESS};
    Tally tally_;  // not in the report: the call has been counted as declined
    Capabilities capabilities_;
};

// Null: no memory, or what the call asks for cannot be done.
std::unique_ptr<Ongoing> build(const CollectiveCall& call, const World& world, NativeTransport*& transport) {
    const Host& mpi = *host();
    int size = 0;
    if (mpi.Comm_size(call.comm, &size) != MPI_SUCCESS) return nullptr;
    try {
        auto native = std::make_unique<NativeCall>(call, size);
        if (!native->good()) return nullptr;
        auto own = std::make_unique<NativeTransport>(std::move(native));
        transport = own.get();
        Ongoing::Options options;
        options.tally = &transport->tally();
        options.policy = world.policy();
        options.persistent = options.numbered = true;
        auto ongoing = std::make_unique<Ongoing>(std::move(options));
        if (!claim_request(*ongoing)) return nullptr;
        auto lane = std::make_shared<Lane>(world, std::move(own), nullptr);
        lane->take_errors_from(transport->error());
        ongoing->options().lane = lane;
        ongoing->parts().push_back({lane->borrow(RunKey(),
                                                 [] {
                                                     Builder builder(0, 2);
                                                     builder.send(1, {Buffer::in, 0, 0});
                                                     return std::move(builder).finish();
                                                 }),
                                    0, 0});
        return ongoing;
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}

// Ranks of another world may be without us.
bool all_answer(MPI_Comm comm, Communicator& communicator) {
    return communicator.is_of_world(comm) || communicator.reason() != Reason::foreign;
}

// "Alltoall_init".
std::string name_of(CallKind kind) {
    std::string name = text_of(kind);
    name[0] = static_cast<char>(name[0] - 'a' + 'A');
    return name;
}

// By PMPI_*: the other name is ours too. Open MPI 4.1 has its extension's names only.
bool exported(const std::string& name) {
    return find_native(("PMPI_" + name).c_str()) != nullptr ||
           find_native(("MPIX_" + name).c_str()) != nullptr;
}

}  // namespace

bool lacks_natively(CallKind kind) {
    enum : std::uint8_t { unasked, here, lacking };
    static constinit std::array<std::atomic<std::uint8_t>, call_kinds> known{};
    std::atomic<std::uint8_t>& answer = known[static_cast<std::size_t>(kind)];
    if (answer.load(std::memory_order_relaxed) == unasked) {
        const std::string name = name_of(kind);
        const bool has = exported(name);
        if (!has) THALWEG_LOG_AT(info, "the MPI library lacks MPI_%s", name.c_str());
        answer.store(has ? here : lacking, std::memory_order_relaxed);
    }
    return answer.load(std::memory_order_relaxed) == lacking;
}

bool nobody_else_serves(const CollectiveCall& call) {
    return call.persistent && call.neighbours && lacks_natively(call.kind);
}

std::unique_ptr<Ongoing> make_native_plan(const CollectiveCall& call, int& error) {
    const Host& mpi = *host();
    World* const world = World::get();
    std::unique_ptr<Ongoing> ongoing;
    bool wrong = false;
    int inter = 1;
    if (world != nullptr && !call.neighbours && call.comm != mpi.comm_null &&
        mpi.Comm_test_inter(call.comm, &inter) == MPI_SUCCESS && inter == 0) {
        const QuietErrors quiet(call.comm);
        Communicator* const communicator = Communicator::of(call.comm, *world);
        std::shared_ptr<NativeGround> ground;
        NativeTransport* transport = nullptr;
        const bool asked = communicator == nullptr || all_answer(call.comm, *communicator);
        if (communicator != nullptr) try {
                // A library that has plans refuses this rank at once: the others wait for its right
                // arguments.
                wrong = is_judged(call, *communicator);
                ground = communicator->self_driven.native_plans;
                if (ground == nullptr) ground = std::make_shared<NativeGround>();
                if (asked && !wrong && Attendance::serves_plans()) ongoing = build(call, *world, transport);
            } catch (const std::bad_alloc&) {
            }
        NativeGround none;  // a rank that cannot still answers the others
        std::shared_ptr<NativeGround> instead;
        std::size_t slot = 0;
        if (asked && !wrong &&
            (ground != nullptr ? *ground : none)
                .take(call.comm, communicator != nullptr && communicator->rank() == 0, ongoing != nullptr,
                      slot, instead)) {
            if (instead != nullptr) ground = std::move(instead);
            communicator->self_driven.native_plans = ground;
            transport->found(ground, slot);
            ongoing->options().record = communicator->shared_record();
            return ongoing;
        }
    }
    // Right ones have been offered to our schedules, and these cannot serve them.
    if (world != nullptr && call.neighbours && call.comm != mpi.comm_null) try {
            Communicator* const communicator = Communicator::of(call.comm, *world);
            wrong = communicator != nullptr && is_judged(call, *communicator);
        } catch (const std::bad_alloc&) {
        }
    if (ongoing != nullptr) ongoing->release();
    ongoing.reset();
    if (wrong)
        THALWEG_LOG_AT(error, "wrong arguments of MPI_%s", name_of(call.kind).c_str());
    else
        THALWEG_LOG_AT(error, "the MPI library lacks MPI_%s, and Thalweg cannot stand in for it here",
                       name_of(call.kind).c_str());
    error = wrong ? MPI_ERR_ARG : MPI_ERR_UNSUPPORTED_OPERATION;
    call_error_handler(call.comm != mpi.comm_null ? call.comm : mpi.comm_world, error);
    return nullptr;
}

}  // namespace thalweg
