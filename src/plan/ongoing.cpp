#include "plan/ongoing.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <mutex>

#include "base/clock.h"
#include "base/log.h"
#include "plan/datatype.h"
#include "plan/device.h"
#include "plan/failure.h"
#include "transport/mpi/host.h"

namespace thalweg {

namespace {

// Rows are shared by the threads that start and those that complete operations of one communicator.
constinit std::mutex tally_mutex;

}  // namespace

ProgramBuffer::~ProgramBuffer() {
    if (staged_ != nullptr) munmap(staged_, bytes_);
}

// A type of one element of the program's type keeps that one alive; a duplicate would run the program's
// attribute callbacks.
Status ProgramBuffer::hold(MPI_Datatype& type) {
    const Host& mpi = *host();
    const auto known =
        std::find_if(held_.rbegin(), held_.rend(), [&](const Held& held) { return held.original == type; });
    if (known != held_.rend()) {
        type = known->own;
        return Status::ok;
    }
    MPI_Datatype own;
    if (mpi.Type_contiguous(1, type, &own) != MPI_SUCCESS) return Status::transport_failed;
    held_.push_back({type, own});
    type = own;
    return mpi.Type_commit(&held_.back().own) == MPI_SUCCESS ? Status::ok : Status::transport_failed;
}

Status ProgramBuffer::stage() {
    void* const memory =
        mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return Status::out_of_memory;
    staged_ = data_ = static_cast<std::byte*>(memory);
    return Status::ok;
}

// MPI packs by way of a communicator, which only says how: the world will do.
Status ProgramBuffer::attach(void* buffer, std::uint64_t bytes, std::uint64_t count, MPI_Datatype type,
                             bool copied) {
    const MPI_Comm world = host()->comm_world;
    bytes_ = bytes;
    if (bytes == 0) return Status::ok;
    payload_.emplace(buffer, count, type, world);
    if (payload_->refused_by_native()) return Status::invalid_argument;
    if (const Status status = payload_->prepare(no_staging_); failed(status)) return status;
    data_ = payload_->direct();
    if (data_ != nullptr && !copied) return Status::ok;
    if (const Status status = hold(type); failed(status)) return status;
    payload_.emplace(buffer, count, type, world);
    if (const Status status = payload_->prepare(no_staging_); failed(status)) return status;
    return stage();
}

namespace {

// Where the elements of a segment that are one run begin, as an address.
std::uintptr_t begin_of(void* buffer, const Segment& segment, const TypeShape& shape) {
    return reinterpret_cast<std::uintptr_t>(buffer) +
           static_cast<std::uintptr_t>(segment.displacement + shape.layout.true_lb());
}

}  // namespace

// In place where every segment is one run of host memory: data() is then the lowest of them.
Status ProgramBuffer::attach(void* buffer, std::vector<Segment> segments, std::vector<Block>& blocks,
                             bool copied) {
    blocks.assign(segments.size(), Block{});
    std::uintptr_t lowest = UINTPTR_MAX;
    TypeShape named;
    const TypeShape* known = nullptr;  // of the segment before: mostly all have one type
    MPI_Datatype known_type{};
    bool in_place = !copied;
    bool asked = false;  // whose memory it is
    for (std::size_t i = 0; i < segments.size(); ++i) {
        const Segment& segment = segments[i];
        if (segment.count == 0) continue;
        if (known == nullptr || segment.type != known_type) {
            named = {};
            known = &shape_of(segment.type, named);
            known_type = segment.type;
        }
        const TypeShape& shape = *known;
        if (shape.uncommitted) return Status::invalid_argument;
        blocks[i].bytes = segment.count * shape.size;
        bytes_ += blocks[i].bytes;
        in_place = in_place && !shape.opaque && shape.layout.is_one_run(segment.count);
        if (!in_place || blocks[i].bytes == 0) continue;
        const std::uintptr_t begin = begin_of(buffer, segment, shape);
        if (begin == 0) return Status::invalid_argument;
        // Addresses behind MPI_BOTTOM may be anybody's each; a buffer is one.
        if (!asked || buffer == nullptr) in_place = memory_of(reinterpret_cast<void*>(begin)) == Memory::host;
        asked = true;
        asked_at_ = reinterpret_cast<void*>(begin);
        lowest = std::min(lowest, begin);
        blocks[i].offset = begin;
    }
    if (bytes_ == 0) return Status::ok;
    if (in_place) {
        data_ = reinterpret_cast<std::byte*>(lowest);
        for (Block& block : blocks) block.offset = block.bytes == 0 ? 0 : block.offset - lowest;
        blocks_ = blocks;
        return Status::ok;
    }
    std::uint64_t at = 0;
    for (Block& block : blocks) {
        block.offset = at;
        at += block.bytes;
    }
    buffer_ = buffer;
    segments_ = std::move(segments);
    blocks_ = blocks;
    for (Segment& segment : segments_) {
        if (segment.count == 0) continue;
        if (const Status status = hold(segment.type); failed(status)) return status;
    }
    return stage();
}

void ProgramBuffer::send_in_place(Lane& lane, const std::vector<bool>& marked, bool lasting) {
    Transport* const transport = lane.own_transport();
    if (transport == nullptr || !transport->capabilities().stand_ins) return;
    if (staged_ == nullptr) {
        // What is one run each is known already; a lasting one may be memory that others have mapped.
        if (!lasting) return;
        in_place_.assign(marked.size(), false);
        for (std::size_t i = 0; i < marked.size() && i < blocks_.size(); ++i) {
            if (!marked[i] || blocks_[i].bytes == 0) continue;
            std::byte* const run = data_ + blocks_[i].offset;
            StandIn same{run, blocks_[i].bytes,
                         std::make_shared<const Layout>(Layout::contiguous(blocks_[i].bytes)), run, true};
            const Status status =
                lane.driven().exclusively([&] { return transport->stand_in(std::move(same)); });
            in_place_[i] = !failed(status);
        }
        return;
    }
    if (segments_.empty()) return;
    in_place_.assign(segments_.size(), false);
    bool asked = false;
    std::uint64_t moved_bytes = 0;
    for (std::size_t i = 0; i < segments_.size(); ++i) {
        const Segment& segment = segments_[i];
        const std::uint64_t bytes = blocks_[i].bytes;
        if (bytes == 0 || !marked[i]) continue;
        TypeShape named;
        const TypeShape& shape = shape_of(segment.type, named);
        if (shape.opaque) continue;
        auto* const elements = reinterpret_cast<std::byte*>(
            reinterpret_cast<std::uintptr_t>(buffer_) + static_cast<std::uintptr_t>(segment.displacement));
        // Addresses behind MPI_BOTTOM may be anybody's each; a buffer is one.
        if ((!asked || buffer_ == nullptr) &&
            memory_of(elements + shape.layout.lower(segment.count)) != Memory::host)
            return;
        asked = true;
        asked_at_ = elements + shape.layout.lower(segment.count);
        StandIn stand_in{data_ + blocks_[i].offset, bytes, std::make_shared<const Layout>(shape.layout),
                         elements, lasting};
        const Status status =
            lane.driven().exclusively([&] { return transport->stand_in(std::move(stand_in)); });
        if (failed(status)) continue;
        in_place_[i] = true;
        moved_bytes += bytes;
    }
    all_in_place_ = moved_bytes == bytes_;
}

void ProgramBuffer::leave(Lane& lane) {
    Transport* const transport = lane.own_transport();
    for (std::size_t i = 0; i < in_place_.size(); ++i) {
        if (!in_place_[i]) continue;
        lane.driven().exclusively([&] { transport->end_stand_in(data_ + blocks_[i].offset); });
    }
    in_place_.clear();
}

template <typename Move>
Status ProgramBuffer::each_segment(std::uint64_t from, std::uint64_t to, Move move) {
    for (std::size_t i = 0; i < segments_.size(); ++i) {
        const Block& block = blocks_[i];
        if (block.bytes == 0 || block.offset + block.bytes <= from || block.offset >= to) continue;
        if (!in_place_.empty() && in_place_[i]) continue;
        void* const begin = reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(buffer_) +
                                                    static_cast<std::uintptr_t>(segments_[i].displacement));
        Payload payload(begin, segments_[i].count, segments_[i].type, host()->comm_world);
        Status status = payload.prepare(no_staging_);
        if (!failed(status)) status = move(payload, block);
        if (failed(status)) return status;
    }
    return Status::ok;
}

Status ProgramBuffer::load(std::uint64_t from, std::uint64_t to) {
    if (staged_ == nullptr || from == to) return Status::ok;
    if (payload_) return payload_->load(staged_ + from, from, to);
    return each_segment(from, to, [&](Payload& payload, const Block& block) {
        return payload.load(staged_ + block.offset, 0, block.bytes);
    });
}

Status ProgramBuffer::store(std::span<const Slice> gaps, std::span<const Slice> more_gaps) {
    if (staged_ == nullptr) return Status::ok;
    if (payload_) return payload_->store(staged_, 0, bytes_);
    return each_segment(0, bytes_, [&](Payload& payload, const Block& block) {
        std::uint64_t end = block.offset + block.bytes;
        for (const auto& some : {gaps, more_gaps})
            for (const Slice& gap : some)
                if (gap.end() == block.offset + block.bytes) end = gap.offset;
        return payload.store(staged_ + block.offset, 0, end - block.offset);
    });
}

void ProgramBuffer::free_types() {
    for (Held& held : held_) host()->Type_free(&held.own);
    held_.clear();
}

bool ProgramBuffer::on_host() const { return bytes_ == 0 || memory_of(asked_at_) == Memory::host; }

void ProgramBuffer::release() {
    payload_.reset();
    free_types();
    if (staged_ != nullptr) munmap(staged_, bytes_);
    staged_ = data_ = nullptr;
}

void Ongoing::count_run(std::uint64_t since_ns) {
    const std::uint64_t spent_ns = now_ns() - since_ns;
    run_ns_ += spent_ns;
    const std::lock_guard lock(tally_mutex);
    options_.tally->elapsed_ns += spent_ns;
}

void Ongoing::load() {
    run_ns_ = 0;
    status_ = input_.load();
    if (!failed(status_)) status_ = buffer_.load(options_.loads_from, options_.loads_to);
}

std::uint32_t Ongoing::number_of(const Part& part) {
    return options_.numbered ? part.number : options_.lane->next_operation();
}

Bindings Ongoing::bindings_of(const Part& part) {
    Bindings bindings;
    bindings.in = input_.data();
    bindings.out = buffer_.data() + part.begin;
    bindings.reducer = options_.reducer;
    return bindings;
}

void Ongoing::count_start() {
    const std::lock_guard lock(tally_mutex);
    ++options_.tally->calls;
    options_.tally->bytes += options_.bytes;
    options_.tally->staged_calls += buffer_.staged() || input_.staged();
}

void Ongoing::count_wait(const WaitStatistics& waited) {
    const std::lock_guard lock(tally_mutex);
    options_.tally->waited.polls += waited.polls;
    options_.tally->waited.sleeps += waited.sleeps;
    options_.tally->waited.slept_seconds += waited.slept_seconds;
}

Status Ongoing::start() {
    const std::uint64_t began = now_ns();
    load();
    Lane& lane = *options_.lane;
    for (Part& part : parts_) {
        if (failed(status_)) break;
        status_ = lane.driven().start(part.run->operation, bindings_of(part), number_of(part));
    }
    count_start();
    count_run(began);
    // The others run what we did not start.
    if (breaks(status_)) lane.fail();
    return status_;
}

void Ongoing::run() {
    const std::uint64_t began = now_ns();
    load();
    Lane& lane = *options_.lane;
    WaitStatistics waited;
    for (Part& part : parts_) {
        if (failed(status_)) break;
        status_ = lane.driven().run(part.run->operation, bindings_of(part), number_of(part), options_.policy,
                                    waited);
    }
    count_start();
    count_wait(waited);
    count_run(began);
    if (breaks(status_)) lane.fail();
}

bool Ongoing::pending() const {
    for (const Part& part : parts_)
        if (part.run->operation.pending()) return true;
    return false;
}

void Ongoing::help() { options_.lane->driven().help(); }

bool Ongoing::wait(std::uint64_t until_ns) {
    const std::uint64_t began = now_ns();
    WaitStatistics waited;
    for (Part& part : parts_)
        options_.lane->driven().wait(part.run->operation, options_.policy, waited, until_ns);
    count_wait(waited);
    count_run(began);
    return !pending();
}

// Of several parts none has gaps.
Status Ongoing::store() {
    if (parts_.empty()) return buffer_.store();
    const Run& run = *parts_.front().run;
    return buffer_.store(run.execution.gaps(), run.own.gaps);
}

int Ongoing::finish() {
    const std::uint64_t began = now_ns();
    for (const Part& part : parts_)
        if (!failed(status_)) status_ = part.run->operation.status();
    if (!failed(status_) && !parts_.empty() && parts_.front().run->own.truncated) status_ = Status::truncated;
    if (!breaks(status_) && options_.stores)
        if (const Status stored = store(); failed(stored)) status_ = stored;
    int error = MPI_SUCCESS;
    if (failed(status_)) {
        THALWEG_LOG_AT(error, "a collective failed: %s", why_failed(status_));
        error = mpi_error_of(status_, options_.lane->native_error());
        if (breaks(status_)) options_.lane->fail();
        const std::lock_guard lock(tally_mutex);
        ++options_.tally->errors;
    }
    count_run(began);
    if (options_.account != nullptr && error == MPI_SUCCESS) {
        std::uint64_t puts = 0;
        for (const Part& part : parts_) puts += part.run->execution.puts();
        options_.account->add_run(seconds(run_ns_), puts);
    }
    if (!options_.persistent && !repeatable()) release();
    return error;
}

Ongoing::~Ongoing() {
    if (repeatable()) release();
}

bool Ongoing::repeatable() const {
    return options_.kept_as != nullptr && !failed(status_) && input_.repeatable() && buffer_.repeatable();
}

void Ongoing::retire(std::unique_ptr<Ongoing> ongoing) {
    if (!ongoing->repeatable() || ongoing->options_.lane->broken()) return;
    ongoing->input_.free_types();
    ongoing->buffer_.free_types();
    const std::shared_ptr<Lane> lane = std::move(ongoing->options_.lane);
    lane->keep(std::move(ongoing));
}

bool Ongoing::resume(std::shared_ptr<Lane> lane) {
    options_.lane = std::move(lane);
    return input_.on_host() && buffer_.on_host();
}

void Ongoing::leave(Lane& lane) {
    input_.leave(lane);
    buffer_.leave(lane);
}

void Ongoing::release() {
    options_.kept_as.reset();
    for (Part& part : parts_)
        if (options_.lane != nullptr) options_.lane->give_back(std::move(part.run));
    parts_.clear();
    // What failed may still be under way: its lane keeps what it knows.
    if (options_.lane != nullptr && !options_.lane->broken()) {
        input_.leave(*options_.lane);
        buffer_.leave(*options_.lane);
    }
    // A lane of its own may have exposed the buffer.
    options_.lane.reset();
    input_.release();
    buffer_.release();
    options_.record.reset();
}

}  // namespace thalweg
