#include "plan/payload.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "transport/mpi/host.h"

namespace thalweg {

namespace {

std::byte* at(void* buffer, std::int64_t offset) {
    // Through an integer: with MPI_BOTTOM the offset is the address.
    return reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(buffer) +
                                        static_cast<std::uintptr_t>(offset));
}

// PMPI_Pack counts in ints: as many elements at a time as stay below 1 GiB.
std::uint64_t elements_at_a_time(std::uint64_t size) {
    return std::clamp<std::uint64_t>((1u << 30) / std::max<std::uint64_t>(size, 1), 1, 1u << 30);
}

}  // namespace

Payload::Payload(void* buffer, std::uint64_t count, MPI_Datatype type, std::uint64_t bytes, MPI_Comm comm)
    : buffer_(buffer),
      count_(count),
      type_(type),
      bytes_(bytes),
      comm_(comm),
      shape_(shape_of(type, named_)) {
    one_run_ = !shape_.opaque && shape_.layout.is_one_run(count);
    if (one_run_) run_ = at(buffer, shape_.layout.true_lb());
}

Payload::~Payload() {
    if (whole_ != nullptr) munmap(whole_, bytes_);
}

Status Payload::prepare() {
    if (shape_.opaque) {
        void* const whole = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (whole == MAP_FAILED) return Status::out_of_memory;
        whole_ = static_cast<std::byte*>(whole);
        return Status::ok;
    }
    memory_ = memory_of(one_run_ ? run_ : at(buffer_, shape_.layout.lower(count_)));
    if (one_run_ && memory_ == Memory::host) direct_ = run_;
    return Status::ok;
}

template <typename Move>
Status Payload::each_run(std::uint64_t from, std::uint64_t to, Move move) {
    std::array<ByteRun, 64> runs;
    while (from < to) {
        const std::size_t found = std::min(shape_.layout.runs_of(from, to, runs), runs.size());
        if (found == 0) return Status::transport_failed;
        for (std::size_t i = 0; i < found; ++i) {
            if (const Status status = move(at(buffer_, runs[i].offset), runs[i].bytes); failed(status))
                return status;
            from += runs[i].bytes;
        }
    }
    return Status::ok;
}

Status Payload::load(std::byte* packed, std::uint64_t from, std::uint64_t to) {
    if (shape_.opaque) {
        if (!packed_)
            if (const Status status = pack_all(); failed(status)) return status;
        packed_ = true;
        std::memcpy(packed, whole_ + from, to - from);
        return Status::ok;
    }
    if (memory_ == Memory::host) {
        shape_.layout.pack(packed, buffer_, from, to);
        return Status::ok;
    }
    return each_run(from, to, [&](std::byte* data, std::uint64_t bytes) {
        std::byte* const here = packed;
        packed += bytes;
        return copy(memory_, here, data, bytes);
    });
}

Status Payload::store(const std::byte* packed, std::uint64_t from, std::uint64_t to) {
    if (shape_.opaque) {
        std::memcpy(whole_ + from, packed, to - from);
        return to == bytes_ ? unpack_all() : Status::ok;
    }
    if (memory_ == Memory::host) {
        shape_.layout.unpack(buffer_, packed, from, to);
        return Status::ok;
    }
    return each_run(from, to, [&](std::byte* data, std::uint64_t bytes) {
        const std::byte* const here = packed;
        packed += bytes;
        return copy(memory_, data, here, bytes);
    });
}

Status Payload::pack_all() {
    const std::uint64_t step = elements_at_a_time(shape_.size);
    for (std::uint64_t done = 0; done < count_; done += step) {
        const int now = static_cast<int>(std::min(step, count_ - done));
        int position = 0;
        if (host()->Pack(at(buffer_, static_cast<std::int64_t>(done) * shape_.extent), now, type_,
                         whole_ + done * shape_.size, static_cast<int>(now * shape_.size), &position,
                         comm_) != MPI_SUCCESS)
            return Status::transport_failed;
    }
    return Status::ok;
}

Status Payload::unpack_all() {
    const std::uint64_t step = elements_at_a_time(shape_.size);
    for (std::uint64_t done = 0; done < count_; done += step) {
        const int now = static_cast<int>(std::min(step, count_ - done));
        int position = 0;
        if (host()->Unpack(whole_ + done * shape_.size, static_cast<int>(now * shape_.size), &position,
                           at(buffer_, static_cast<std::int64_t>(done) * shape_.extent), now, type_,
                           comm_) != MPI_SUCCESS)
            return Status::transport_failed;
    }
    return Status::ok;
}

}  // namespace thalweg
