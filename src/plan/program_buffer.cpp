#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <new>

#include "plan/datatype.h"
#include "plan/device.h"
#include "plan/ongoing.h"
#include "transport/mpi/host.h"

namespace thalweg {

ProgramBuffer::~ProgramBuffer() { give_stage_back(); }

void ProgramBuffer::give_stage_back() {
    if (staged_ != nullptr && borrowed_ == nullptr) munmap(staged_, bytes_);
    borrowed_.reset();
    staged_ = data_ = nullptr;
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
    share_shape(type, own);
    type = own;
    return mpi.Type_commit(&held_.back().own) == MPI_SUCCESS ? Status::ok : Status::transport_failed;
}

Status ProgramBuffer::stage() {
    void* const memory =
        mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory != MAP_FAILED) {
        staged_ = data_ = static_cast<std::byte*>(memory);
        return Status::ok;
    }
    if (!may_borrow_) return Status::out_of_memory;
    try {
        borrowed_ = std::make_unique<std::byte[]>(bytes_);
    } catch (const std::bad_alloc&) {
        return Status::out_of_memory;
    }
    staged_ = data_ = borrowed_.get();
    return Status::ok;
}

// MPI packs by way of a communicator, which only says how: the world will do.
Status ProgramBuffer::attach(void* buffer, std::uint64_t bytes, std::uint64_t count, MPI_Datatype type,
                             bool lasting, bool copied) {
    const MPI_Comm world = host()->comm_world;
    bytes_ = bytes;
    if (bytes == 0) return Status::ok;
    payload_.emplace(buffer, count, type, world);
    if (payload_->refused_by_native()) return Status::invalid_argument;
    if (const Status status = payload_->prepare(no_staging_); failed(status)) return status;
    data_ = payload_->direct();
    if (data_ != nullptr && !copied) return Status::ok;
    if (!lasting) return stage();
    if (const Status status = hold(type); failed(status)) return status;
    payload_.emplace(buffer, count, type, world);
    if (const Status status = payload_->prepare(no_staging_); failed(status)) return status;
    return stage();
}

// In place where every segment is one run of host memory: data() is then the lowest of them.
Status ProgramBuffer::attach(void* buffer, std::vector<Segment> segments, std::vector<Block>& blocks,
                             bool copied) {
    buffer_ = buffer;
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
        if (shape.opaque || blocks[i].bytes == 0) continue;
        const auto begin = reinterpret_cast<std::uintptr_t>(elements_of(segment) + shape.layout.true_lb());
        if (begin == 0) return Status::invalid_argument;
        if (!in_place) continue;
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
    segments_ = std::move(segments);
    blocks_ = blocks;
    layouts_.resize(segments_.size());
    bool host_memory = false;
    asked = false;
    for (std::size_t i = 0; i < segments_.size(); ++i) {
        Segment& segment = segments_[i];
        if (blocks_[i].bytes == 0) continue;  // it may lie anywhere
        named = {};
        const TypeShape& shape = shape_of(segment.type, named);
        if (!shape.opaque && (!asked || buffer == nullptr)) {
            asked_at_ = elements_of(segment) + shape.layout.lower(segment.count);
            host_memory = memory_of(asked_at_) == Memory::host;
            asked = true;
        }
        if (!shape.opaque && host_memory) {
            const bool same = i > 0 && layouts_[i - 1] != nullptr && segments_[i - 1].type == segment.type;
            layouts_[i] = same ? layouts_[i - 1] : std::make_shared<const Layout>(shape.layout);
        } else if (const Status status = hold(segment.type); failed(status)) {
            return status;
        }
    }
    return stage();
}

std::byte* ProgramBuffer::elements_of(const Segment& segment) const {
    return reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(buffer_) +
                                        static_cast<std::uintptr_t>(segment.displacement));
}

void ProgramBuffer::send_in_place(Lane& lane, const std::vector<int>& peers, bool lasting) {
    Transport* const transport = lane.own_transport();
    if (transport == nullptr || !transport->capabilities().stand_ins) return;
    if (staged_ == nullptr) {
        // What is one run each is known already; a lasting one may be memory that others have mapped.
        if (!lasting) return;
        in_place_.assign(peers.size(), false);
        for (std::size_t i = 0; i < peers.size() && i < blocks_.size(); ++i) {
            if (peers[i] < 0 || blocks_[i].bytes == 0) continue;
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
    untouched_bytes_ = 0;
    std::uint64_t moved_bytes = 0;
    for (std::size_t i = 0; i < segments_.size(); ++i) {
        const std::uint64_t bytes = blocks_[i].bytes;
        if (bytes == 0 || peers[i] < 0 || layouts_[i] == nullptr) continue;
        StandIn stand_in{data_ + blocks_[i].offset, bytes, layouts_[i], elements_of(segments_[i]), lasting};
        const bool one_run = stand_in.run() != nullptr;
        const Status status =
            lane.driven().exclusively([&] { return transport->stand_in(std::move(stand_in)); });
        if (failed(status)) continue;
        in_place_[i] = true;
        moved_bytes += bytes;
        if (one_run || !transport->crosses(peers[i])) untouched_bytes_ += bytes;
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

// Of the segments that are packed or unpacked here.
template <typename Move>
Status ProgramBuffer::each_segment(std::uint64_t from, std::uint64_t to, Move move) {
    for (std::size_t i = 0; i < segments_.size(); ++i) {
        const Block& block = blocks_[i];
        if (block.bytes == 0 || block.offset + block.bytes <= from || block.offset >= to) continue;
        if (!in_place_.empty() && in_place_[i]) continue;
        if (const Status status = move(i, elements_of(segments_[i])); failed(status)) return status;
    }
    return Status::ok;
}

Status ProgramBuffer::load(std::uint64_t from, std::uint64_t to) {
    if (staged_ == nullptr || from == to) return Status::ok;
    if (payload_) return payload_->load(staged_ + from, from, to);
    return each_segment(from, to, [&](std::size_t i, std::byte* elements) {
        std::byte* const packed = staged_ + blocks_[i].offset;
        if (layouts_[i] != nullptr) {
            layouts_[i]->pack(packed, elements, 0, blocks_[i].bytes);
            return Status::ok;
        }
        Payload payload(elements, segments_[i].count, segments_[i].type, host()->comm_world);
        const Status status = payload.prepare(no_staging_);
        return failed(status) ? status : payload.load(packed, 0, blocks_[i].bytes);
    });
}

Status ProgramBuffer::store(std::span<const Slice> gaps, std::span<const Slice> more_gaps) {
    if (staged_ == nullptr) return Status::ok;
    if (payload_) return payload_->store(staged_, 0, bytes_);
    return each_segment(0, bytes_, [&](std::size_t i, std::byte* elements) {
        const Block& block = blocks_[i];
        std::uint64_t end = block.offset + block.bytes;
        for (const auto& some : {gaps, more_gaps})
            for (const Slice& gap : some)
                if (gap.end() == block.offset + block.bytes) end = gap.offset;
        const std::byte* const packed = staged_ + block.offset;
        if (layouts_[i] != nullptr) {
            layouts_[i]->unpack(elements, packed, 0, end - block.offset);
            return Status::ok;
        }
        Payload payload(elements, segments_[i].count, segments_[i].type, host()->comm_world);
        const Status status = payload.prepare(no_staging_);
        return failed(status) ? status : payload.store_first(packed, end - block.offset);
    });
}

bool ProgramBuffer::on_host() const { return bytes_ == 0 || memory_of(asked_at_) == Memory::host; }

void ProgramBuffer::release() {
    payload_.reset();
    for (Held& held : held_) host()->Type_free(&held.own);
    held_.clear();
    give_stage_back();
}

}  // namespace thalweg
