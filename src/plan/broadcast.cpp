#include "plan/broadcast.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "base/clock.h"
#include "base/log.h"
#include "plan/communicator.h"
#include "plan/datatype.h"
#include "plan/last_call.h"
#include "transport/mpi/host.h"

namespace thalweg {

thread_local constinit LastCall last_call [[gnu::tls_model("initial-exec")]]{};

namespace {

// Pieces of one message: `count` of `bytes` each, the last one shorter. Depends on the message's size only.
struct Pieces {
    std::uint64_t bytes, count;
};
Pieces pieces_of(std::uint64_t message_bytes) {
    if (message_bytes <= piece_bytes) return {message_bytes, 1};
    const std::uint64_t count = (message_bytes + piece_bytes - 1) / piece_bytes;
    const std::uint64_t even = (message_bytes + count - 1) / count;
    const std::uint64_t bytes = (even + 4095) / 4096 * 4096;
    return {bytes, (message_bytes + bytes - 1) / bytes};
}

// The packed form of data that only MPI can pack.
class Packed {
  public:
    ~Packed() {
        if (data_ != nullptr) munmap(data_, bytes_);
    }
    bool reserve(std::uint64_t bytes) {
        void* const data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (data == MAP_FAILED) return false;
        data_ = data;
        bytes_ = bytes;
        return true;
    }
    std::byte* data() { return static_cast<std::byte*>(data_); }

  private:
    void* data_ = nullptr;
    std::uint64_t bytes_ = 0;
};

// PMPI_Pack counts in ints: as many elements at a time as stay below 1 GiB.
int elements_at_a_time(std::uint64_t size) {
    return static_cast<int>(
        std::clamp<std::uint64_t>((1u << 30) / std::max<std::uint64_t>(size, 1), 1, 1u << 30));
}

bool pack(const void* buffer, std::uint64_t count, MPI_Datatype type, const TypeShape& shape,
          std::byte* packed, MPI_Comm comm) {
    const std::uint64_t step = static_cast<std::uint64_t>(elements_at_a_time(shape.size));
    for (std::uint64_t done = 0; done < count; done += step) {
        const int now = static_cast<int>(std::min(step, count - done));
        const auto address = reinterpret_cast<std::uintptr_t>(buffer) + done * shape.extent;
        int position = 0;
        if (host()->Pack(reinterpret_cast<const void*>(address), now, type, packed + done * shape.size,
                         static_cast<int>(now * shape.size), &position, comm) != MPI_SUCCESS)
            return false;
    }
    return true;
}

bool unpack(void* buffer, std::uint64_t count, MPI_Datatype type, const TypeShape& shape,
            const std::byte* packed, MPI_Comm comm) {
    const std::uint64_t step = static_cast<std::uint64_t>(elements_at_a_time(shape.size));
    for (std::uint64_t done = 0; done < count; done += step) {
        const int now = static_cast<int>(std::min(step, count - done));
        const auto address = reinterpret_cast<std::uintptr_t>(buffer) + done * shape.extent;
        int position = 0;
        if (host()->Unpack(packed + done * shape.size, static_cast<int>(now * shape.size), &position,
                           reinterpret_cast<void*>(address), now, type, comm) != MPI_SUCCESS)
            return false;
    }
    return true;
}

int mpi_class_of(Status status) {
    switch (status) {
        case Status::mismatch:
            return MPI_ERR_TRUNCATE;
        case Status::out_of_memory:
            return MPI_ERR_NO_MEM;
        default:
            return MPI_ERR_OTHER;
    }
}

// Runs one piece on `data`, packed bytes in host memory.
Status run(Communicator& state, Plan& plan, void* data) {
    const std::uint64_t began = now_ns();
    Bindings bindings;
    bindings.out = data;
    Status status = plan.execution->start(bindings, state.next_operation());
    if (!failed(status)) status = wait(*plan.execution, state.policy(), plan.tally->waited);
    plan.tally->elapsed_ns += now_ns() - began;
    return status;
}

// The user's error handler decides what a failure means, as if the native library had failed.
int raise(Communicator& state, Plan* plan, MPI_Comm comm, Status status) {
    THALWEG_LOG_AT(error, "a broadcast failed: %s", describe(status));
    if (plan != nullptr && plan->tally != nullptr) ++plan->tally->errors;
    state.broken = status != Status::out_of_memory;
    const int code = mpi_class_of(status);
    host()->Comm_call_errhandler(comm, code);
    return code;
}

void note_accelerated(const Plan& plan, std::uint64_t bytes) {
    LastCall& last = last_call;
    last.any = last.accelerated = true;
    last.bytes = bytes;
    const auto copy = [](char(&target)[128], const std::string& text) {
        const std::size_t length = std::min(text.size(), sizeof target - 1);
        std::memcpy(target, text.data(), length);
        target[length] = '\0';
    };
    copy(last.algorithm, plan.algorithm);
    copy(last.chosen_because, plan.reason);
}

}  // namespace

bool broadcast(World& world, void* buffer, std::uint64_t bytes, std::uint64_t count, MPI_Datatype type,
               int root, MPI_Comm comm, int& error) {
    const Host& mpi = *host();
    const auto left_to_native = [bytes](Reason reason) {
        note_declined(reason, bytes);
        return false;
    };
    // Wrong arguments are the native library's to report, and are wrong before anything is counted.
    if (comm == mpi.comm_null || buffer == MPI_IN_PLACE) return left_to_native(Reason::invalid);
    Communicator* const state = Communicator::of(comm, world);
    if (state == nullptr) return left_to_native(Reason::invalid);
    const auto decline = [&](Reason reason) {
        Tally& tally = state->record().declined(reason, size_class(bytes));
        ++tally.calls;
        tally.bytes += bytes;
        return left_to_native(reason);
    };
    if (state->reason() == Reason::intercommunicator) return decline(Reason::intercommunicator);
    if (root < 0 || root >= state->size()) return decline(Reason::invalid);
    const TypeShape shape = shape_of(type);
    const bool contiguous = shape.contiguous(count);
    if (contiguous && buffer == nullptr && shape.first == 0) return decline(Reason::invalid);
    if (bytes == 0) return decline(Reason::empty);
    if (state->broken) {
        error = raise(*state, nullptr, comm, Status::transport_failed);
        return true;
    }

    const Pieces pieces = pieces_of(bytes);
    Reason why = Reason::small;
    if (state->prepare(comm, pieces.bytes, why) == Communicator::Outcome::decline) return decline(why);
    Plan* plan = nullptr;
    Status status = state->plan(comm, pieces.bytes, root, pieces.bytes, plan);
    if (!failed(status) && plan->execution == nullptr) return decline(plan->native_reason);

    Packed packed;
    std::byte* data = reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(buffer) + shape.first);
    if (!failed(status) && !contiguous) {
        if (!packed.reserve(bytes)) status = Status::out_of_memory;
        data = packed.data();
        if (!failed(status) && root == state->rank() && !pack(buffer, count, type, shape, data, comm))
            status = Status::transport_failed;
    }
    if (!failed(status)) {
        note_accelerated(*plan, bytes);
        ++plan->tally->calls;
        plan->tally->bytes += bytes;
        plan->tally->staged_calls += !contiguous;
    }
    for (std::uint64_t piece = 0; !failed(status) && piece < pieces.count; ++piece) {
        const std::uint64_t begin = piece * pieces.bytes;
        const std::uint64_t here = std::min(pieces.bytes, bytes - begin);
        if (here != plan->bytes) {
            status = state->plan(comm, here, root, pieces.bytes, plan);
            if (failed(status)) break;
        }
        status = run(*state, *plan, data + begin);
    }
    if (!failed(status) && !contiguous && root != state->rank() &&
        !unpack(buffer, count, type, shape, data, comm))
        status = Status::transport_failed;
    error = failed(status) ? raise(*state, plan, comm, status) : MPI_SUCCESS;
    return true;
}

}  // namespace thalweg
