#include "plan/payload.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstring>

#include "plan/self_message.h"
#include "transport/mpi/host.h"

namespace thalweg {

namespace {

std::byte* at(void* buffer, std::int64_t offset) {
    // Through an integer: with MPI_BOTTOM the offset is the address.
    return reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(buffer) +
                                        static_cast<std::uintptr_t>(offset));
}

Status mpi_status(int error) { return error == MPI_SUCCESS ? Status::ok : Status::transport_failed; }

// PMPI_Pack counts in ints: as many elements at a time as stay below 1 GiB. One alone may be larger.
std::uint64_t elements_at_a_time(std::uint64_t size) {
    return std::clamp<std::uint64_t>((1u << 30) / std::max<std::uint64_t>(size, 1), 1, 1u << 30);
}

}  // namespace

Payload::Payload(void* buffer, std::uint64_t count, MPI_Datatype type, MPI_Comm comm)
    : buffer_(buffer),
      count_(count),
      type_(type),
      comm_(comm),
      shape_(shape_of(type, named_)),
      loaded_(count) {
    one_run_ = !shape_.opaque && shape_.layout.is_one_run(count);
    std::byte* const lowest = shape_.opaque ? nullptr : at(buffer, shape_.layout.true_lb());
    nowhere_ = !shape_.opaque && lowest == nullptr && count != 0 && shape_.size != 0;
    if (one_run_) run_ = lowest;
}

Payload::~Payload() {
    if (owns_element_) munmap(element_, shape_.size);
}

Status Payload::prepare(Staging& staging) {
    if (!shape_.opaque) memory_ = memory_of(one_run_ ? run_ : at(buffer_, shape_.layout.lower(count_)));
    // So many copies of a driver would take far longer than the MPI library, which has kernels.
    by_mpi_ = shape_.opaque || (memory_ != Memory::host && driver_copies() > most_runs);
    if (by_mpi_) {
        if (shape_.size <= staging.room_bytes()) {
            element_ = staging.element(shape_.size);
            return Status::ok;
        }
        void* const own = mmap(nullptr, shape_.size, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (own == MAP_FAILED) return Status::out_of_memory;
        element_ = static_cast<std::byte*>(own);
        owns_element_ = true;
        return Status::ok;
    }
    if (one_run_ && memory_ == Memory::host) direct_ = run_;
    return Status::ok;
}

// Of all elements, at most.
std::uint64_t Payload::driver_copies() const {
    if (one_run_) return 1;
    const Layout& layout = shape_.layout;
    const bool contiguous = layout.form() == Layout::Form::contiguous;
    const std::int64_t stride = contiguous ? layout.extent() : layout.stride();
    const bool at_once = copies_at_once(memory_, layout.run_bytes(), stride);
    const std::uint64_t each = at_once ? layout.rows() : layout.runs();
    // The next element goes on where this one ends.
    if (at_once && each == 1 && layout.extent() == static_cast<std::int64_t>(layout.runs()) * stride)
        return 1;
    return count_ > most_runs ? most_runs + 1 : each * count_;
}

// Runs of the same length at the same distance go together.
template <typename Move>
Status Payload::each_rows(std::uint64_t from, std::uint64_t to, Move move) {
    std::array<ByteRun, 64> runs;
    Rows rows;
    while (from < to) {
        const std::size_t found = shape_.layout.runs_of(from, to, runs);
        if (found == 0) return Status::transport_failed;
        for (std::size_t i = 0; i < found; ++i) {
            std::byte* const data = at(buffer_, runs[i].offset);
            from += runs[i].bytes;
            if (rows.count > 0 && runs[i].bytes == rows.bytes) {
                const std::int64_t distance = data - rows.first;
                if (rows.count == 1) rows.stride = distance;
                if (distance == static_cast<std::int64_t>(rows.count) * rows.stride) {
                    ++rows.count;
                    continue;
                }
            }
            if (rows.count > 0)
                if (const Status status = move(rows); failed(status)) return status;
            rows = {data, runs[i].bytes, 0, 1};
        }
    }
    return rows.count > 0 ? move(rows) : Status::ok;
}

Status Payload::load(std::byte* packed, std::uint64_t from, std::uint64_t to) {
    if (by_mpi_) return load_opaque(packed, from, to);
    if (memory_ == Memory::host) {
        shape_.layout.pack(packed, buffer_, from, to);
        return Status::ok;
    }
    return each_rows(from, to, [&](const Rows& rows) {
        std::byte* const here = packed;
        packed += rows.bytes * rows.count;
        return pack_rows(memory_, here, rows);
    });
}

Status Payload::store(const std::byte* packed, std::uint64_t from, std::uint64_t to) {
    if (by_mpi_) return store_opaque(packed, from, to);
    if (memory_ == Memory::host) {
        shape_.layout.unpack(buffer_, packed, from, to);
        return Status::ok;
    }
    const std::byte* address = nullptr;
    const Status status = each_rows(from, to, [&](const Rows& rows) {
        const std::byte* const here = packed;
        packed += rows.bytes * rows.count;
        address = rows.first;
        return unpack_rows(memory_, rows, here);
    });
    return failed(status) || address == nullptr ? status : settle(memory_, address);
}

// Whole elements go straight to their place; one that a piece cuts goes by way of element_.
Status Payload::load_opaque(std::byte* packed, std::uint64_t from, std::uint64_t to) {
    const std::uint64_t size = shape_.size;
    while (from < to) {
        const std::uint64_t index = from / size, inside = from % size;
        std::uint64_t moved = (to - from) / size * size;
        if (inside == 0 && moved != 0) {
            moved = std::min(moved, elements_at_a_time(size) * size);
            if (const Status status = pack(index, moved / size, packed); failed(status)) return status;
        } else {
            moved = std::min(size - inside, to - from);
            if (loaded_ != index)
                if (const Status status = pack(index, 1, element_); failed(status)) return status;
            loaded_ = index;
            std::memcpy(packed, element_ + inside, moved);
        }
        packed += moved;
        from += moved;
    }
    return Status::ok;
}

Status Payload::store_opaque(const std::byte* packed, std::uint64_t from, std::uint64_t to) {
    const std::uint64_t size = shape_.size;
    while (from < to) {
        const std::uint64_t index = from / size, inside = from % size;
        std::uint64_t moved = (to - from) / size * size;
        Status status = Status::ok;
        if (inside == 0 && moved != 0) {
            moved = std::min(moved, elements_at_a_time(size) * size);
            status = unpack(index, moved / size, packed);
        } else {
            moved = std::min(size - inside, to - from);
            std::memcpy(element_ + inside, packed, moved);
            if (inside + moved == size) status = unpack(index, 1, element_);
        }
        if (failed(status)) return status;
        packed += moved;
        from += moved;
    }
    return Status::ok;
}

// MPI unpacks whole elements only: what nothing came for of the last one is written back as it was.
Status Payload::store_first(const std::byte* packed, std::uint64_t bytes) {
    const std::uint64_t part = by_mpi_ ? bytes % shape_.size : 0, whole = bytes - part;
    if (const Status status = store(packed, 0, whole); failed(status) || part == 0) return status;
    const std::uint64_t index = whole / shape_.size;
    if (const Status status = pack(index, 1, element_); failed(status)) return status;
    std::memcpy(element_, packed + whole, part);
    return unpack(index, 1, element_);
}

Status Payload::pack(std::uint64_t first, std::uint64_t elements, std::byte* packed) {
    void* const data = at(buffer_, static_cast<std::int64_t>(first) * shape_.extent);
    const std::uint64_t bytes = elements * shape_.size;
#if MPI_VERSION >= 4
    if (bytes > INT_MAX && host()->Pack_c != nullptr) {
        MPI_Count position = 0;
        return mpi_status(host()->Pack_c(data, static_cast<MPI_Count>(elements), type_, packed,
                                         static_cast<MPI_Count>(bytes), &position, comm_));
    }
#endif
    // Only one element alone can be that large.
    if (bytes > INT_MAX) return pack_by_message(data, type_, packed, bytes, comm_);
    int position = 0;
    return mpi_status(host()->Pack(data, static_cast<int>(elements), type_, packed, static_cast<int>(bytes),
                                   &position, comm_));
}

Status Payload::unpack(std::uint64_t first, std::uint64_t elements, const std::byte* packed) {
    void* const data = at(buffer_, static_cast<std::int64_t>(first) * shape_.extent);
    const std::uint64_t bytes = elements * shape_.size;
#if MPI_VERSION >= 4
    if (bytes > INT_MAX && host()->Unpack_c != nullptr) {
        MPI_Count position = 0;
        return mpi_status(host()->Unpack_c(packed, static_cast<MPI_Count>(bytes), &position, data,
                                           static_cast<MPI_Count>(elements), type_, comm_));
    }
#endif
    if (bytes > INT_MAX) return unpack_by_message(packed, bytes, data, type_, comm_);
    int position = 0;
    return mpi_status(host()->Unpack(packed, static_cast<int>(bytes), &position, data,
                                     static_cast<int>(elements), type_, comm_));
}

}  // namespace thalweg
