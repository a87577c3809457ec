#include "layout/layout.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace thalweg {
namespace {

template <bool packing>
void move_bytes(std::byte* packed, std::byte* element, std::uint64_t bytes) {
    if constexpr (packing)
        std::memcpy(packed, element, bytes);
    else
        std::memcpy(element, packed, bytes);
}

// Whole blocks of a size that the compiler knows: a load and a store each instead of a call.
template <bool packing, std::uint64_t bytes>
void move_small_blocks(std::byte* packed, std::byte* block, std::uint64_t blocks, std::int64_t stride) {
    for (std::uint64_t i = 0; i < blocks; ++i, packed += bytes, block += stride)
        move_bytes<packing>(packed, block, bytes);
}

template <bool packing>
void move_blocks(std::byte* packed, std::byte* block, std::uint64_t blocks, std::uint64_t bytes,
                 std::int64_t stride) {
    switch (bytes) {
        case 1:
            return move_small_blocks<packing, 1>(packed, block, blocks, stride);
        case 2:
            return move_small_blocks<packing, 2>(packed, block, blocks, stride);
        case 4:
            return move_small_blocks<packing, 4>(packed, block, blocks, stride);
        case 8:
            return move_small_blocks<packing, 8>(packed, block, blocks, stride);
        case 16:
            return move_small_blocks<packing, 16>(packed, block, blocks, stride);
        case 24:
            return move_small_blocks<packing, 24>(packed, block, blocks, stride);
        case 32:
            return move_small_blocks<packing, 32>(packed, block, blocks, stride);
        default:
            for (std::uint64_t i = 0; i < blocks; ++i, packed += bytes, block += stride)
                move_bytes<packing>(packed, block, bytes);
    }
}

}  // namespace

Layout Layout::contiguous(std::uint64_t bytes) {
    return strided(1, bytes, 0, static_cast<std::int64_t>(bytes));
}

Layout Layout::strided(std::uint64_t blocks, std::uint64_t block_bytes, std::int64_t stride,
                       std::int64_t extent, std::int64_t offset) {
    Layout layout;
    layout.extent_ = extent;
    if (blocks == 0 || block_bytes == 0) return layout;
    if (blocks > 1 && stride == static_cast<std::int64_t>(block_bytes)) {
        block_bytes *= blocks;
        blocks = 1;
    }
    layout.form_ = blocks == 1 ? Form::contiguous : Form::strided;
    layout.blocks_ = blocks;
    layout.block_bytes_ = block_bytes;
    layout.first_ = offset;
    layout.stride_ = blocks == 1 ? 0 : stride;
    layout.size_ = blocks * block_bytes;
    layout.measure();
    return layout;
}

std::optional<Layout> Layout::repeated(const Layout& element, std::uint64_t copies, std::int64_t distance,
                                       std::int64_t extent, std::int64_t offset) {
    if (copies == 0 || element.size_ == 0) return strided(0, 0, 0, extent);
    if (copies > 1 && element.form_ == Form::list) return std::nullopt;
    if (element.form_ == Form::contiguous)
        return strided(copies, element.block_bytes_, distance, extent, element.first_ + offset);
    Layout layout = element;
    layout.extent_ = extent;
    layout.first_ += offset;
    for (ByteRun& run : layout.list_) run.offset += offset;
    if (copies > 1) {
        // Copies that lie as their own parts do are more of these.
        const bool nested = element.form_ == Form::nested;
        const std::int64_t stride = nested ? element.levels_.front().stride : element.stride_;
        const std::uint64_t parts = nested ? element.levels_.front().count : element.blocks_;
        const bool goes_on = distance == stride * static_cast<std::int64_t>(parts);
        if (goes_on && nested) {
            layout.levels_.front().count *= copies;
        } else if (!goes_on) {
            if (layout.levels_.size() == deepest) return std::nullopt;
            if (!nested) layout.row_blocks_ = element.blocks_;
            layout.form_ = Form::nested;
            layout.levels_.insert(layout.levels_.begin(), {copies, distance});
        }
        layout.blocks_ *= copies;
        layout.size_ *= copies;
    }
    layout.measure();
    return layout;
}

Layout Layout::list(std::span<const ByteRun> runs, std::int64_t extent) {
    Layout layout;
    layout.extent_ = extent;
    for (const ByteRun& run : runs) {
        if (run.bytes == 0) continue;
        if (!layout.list_.empty()) {
            ByteRun& last = layout.list_.back();
            if (last.offset + static_cast<std::int64_t>(last.bytes) == run.offset) {
                last.bytes += run.bytes;
                continue;
            }
        }
        layout.list_.push_back(run);
    }
    if (layout.list_.empty()) return layout;

    const ByteRun first = layout.list_.front();
    const std::size_t blocks = layout.list_.size();
    const std::int64_t stride = blocks == 1 ? 0 : layout.list_[1].offset - first.offset;
    bool regular = true;
    for (std::size_t i = 0; i < blocks; ++i)
        regular &=
            layout.list_[i] == ByteRun{first.offset + static_cast<std::int64_t>(i) * stride, first.bytes};
    if (regular) return strided(blocks, first.bytes, stride, extent, first.offset);

    layout.form_ = Form::list;
    layout.list_.shrink_to_fit();
    layout.packed_at_.reserve(blocks);
    for (const ByteRun& run : layout.list_) {
        layout.packed_at_.push_back(layout.size_);
        layout.size_ += run.bytes;
    }
    layout.blocks_ = blocks;
    layout.measure();
    return layout;
}

// Finds the lowest and highest byte.
void Layout::measure() {
    if (form_ == Form::list) {
        true_lb_ = list_.front().offset;
        true_ub_ = true_lb_;
        for (const ByteRun& run : list_) {
            true_lb_ = std::min(true_lb_, run.offset);
            true_ub_ = std::max(true_ub_, run.offset + static_cast<std::int64_t>(run.bytes));
        }
        return;
    }
    true_lb_ = true_ub_ = first_;
    const auto reach = [this](std::uint64_t count, std::int64_t stride) {
        const std::int64_t last = static_cast<std::int64_t>(count - 1) * stride;
        (last < 0 ? true_lb_ : true_ub_) += last;
    };
    reach(form_ == Form::nested ? row_blocks_ : blocks_, stride_);
    for (const Level& level : levels_) reach(level.count, level.stride);
    true_ub_ += static_cast<std::int64_t>(block_bytes_);
}

std::uint64_t Layout::rows() const {
    if (blocks_ == 0) return 0;
    if (form_ == Form::list) return blocks_;
    return form_ == Form::nested ? blocks_ / row_blocks_ : 1;
}

std::int64_t Layout::lower(std::uint64_t count) const {
    if (count == 0 || size_ == 0) return 0;
    return true_lb_ + std::min<std::int64_t>(0, static_cast<std::int64_t>(count - 1) * extent_);
}

std::int64_t Layout::upper(std::uint64_t count) const {
    if (count == 0 || size_ == 0) return 0;
    return true_ub_ + std::max<std::int64_t>(0, static_cast<std::int64_t>(count - 1) * extent_);
}

// Visits what is left, from byte `within` of a row of `blocks` runs on whose first is at `base`. True:
// nothing is left, or the visit has seen enough.
template <class Visit>
bool Layout::walk_row(std::int64_t base, std::uint64_t within, std::uint64_t blocks, std::int64_t stride,
                      std::uint64_t& left, Visit& visit) const {
    std::uint64_t block = within / block_bytes_;
    if (const std::uint64_t skip = within % block_bytes_) {
        const std::uint64_t bytes = std::min(block_bytes_ - skip, left);
        if (!visit(base + static_cast<std::int64_t>(block) * stride + static_cast<std::int64_t>(skip), bytes,
                   1, 0) ||
            (left -= bytes) == 0)
            return true;
        ++block;
    }
    if (const std::uint64_t whole = std::min(blocks - block, left / block_bytes_)) {
        if (!visit(base + static_cast<std::int64_t>(block) * stride, block_bytes_, whole, stride) ||
            (left -= whole * block_bytes_) == 0)
            return true;
        block += whole;
    }
    if (block == blocks) return false;
    visit(base + static_cast<std::int64_t>(block) * stride, left, 1, 0);  // ends inside this block
    return true;
}

// A nested layout: its levels count like an odometer, and elements are one more of them.
template <class Visit>
void Layout::walk_rows(std::uint64_t from, std::uint64_t left, Visit& visit) const {
    const std::uint64_t row_bytes = row_blocks_ * block_bytes_;
    std::array<std::uint64_t, deepest> index;
    std::uint64_t row = from / row_bytes, within = from % row_bytes;
    std::int64_t base = first_;
    for (std::size_t i = levels_.size(); i-- > 0; row /= levels_[i].count) {
        index[i] = row % levels_[i].count;
        base += static_cast<std::int64_t>(index[i]) * levels_[i].stride;
    }
    base += static_cast<std::int64_t>(row) * extent_;
    while (!walk_row(base, within, row_blocks_, stride_, left, visit)) {
        within = 0;
        std::size_t i = levels_.size();
        for (; i > 0; --i) {
            const Level& level = levels_[i - 1];
            base += level.stride;
            if (++index[i - 1] < level.count) break;
            index[i - 1] = 0;
            base -= static_cast<std::int64_t>(level.count) * level.stride;
        }
        if (i == 0) base += extent_;
    }
}

// visit(offset, bytes, blocks, stride): `blocks` equal runs, for bytes [from, to) of the packed form, in
// order; false ends the walk.
template <class Visit>
void Layout::walk(std::uint64_t from, std::uint64_t to, Visit visit) const {
    if (from >= to) return;
    std::uint64_t element = from / size_, within = from % size_, left = to - from;
    if (form_ == Form::list) {
        auto run = static_cast<std::size_t>(std::upper_bound(packed_at_.begin(), packed_at_.end(), within) -
                                            packed_at_.begin() - 1);
        std::uint64_t skip = within - packed_at_[run];
        for (;; ++element, run = 0) {
            const std::int64_t base = static_cast<std::int64_t>(element) * extent_;
            for (; run < list_.size(); ++run, skip = 0) {
                const std::uint64_t bytes = std::min(list_[run].bytes - skip, left);
                if (!visit(base + list_[run].offset + static_cast<std::int64_t>(skip), bytes, 1, 0) ||
                    (left -= bytes) == 0)
                    return;
            }
        }
    }
    if (form_ == Form::nested) return walk_rows(from, left, visit);

    // One run per element is a single stride over all elements, and so are several whose stride leads on to
    // the next element.
    const std::int64_t stride = blocks_ == 1 ? extent_ : stride_;
    const bool endless = blocks_ == 1 || stride_ * static_cast<std::int64_t>(blocks_) == extent_;
    const std::uint64_t blocks = endless ? ~std::uint64_t{0} : blocks_;  // that one stride covers
    if (endless) within = from, element = 0;
    if (endless && stride == static_cast<std::int64_t>(block_bytes_)) {
        visit(first_ + static_cast<std::int64_t>(from), left, 1, 0);
        return;
    }
    for (;; ++element, within = 0) {
        const std::int64_t base = first_ + static_cast<std::int64_t>(element) * extent_;
        if (walk_row(base, within, blocks, stride, left, visit)) return;
    }
}

template <bool packing>
void Layout::move(std::byte* packed, std::byte* elements, std::uint64_t from, std::uint64_t to) const {
    walk(from, to, [&](std::int64_t offset, std::uint64_t bytes, std::uint64_t blocks, std::int64_t stride) {
        if (blocks == 1)
            move_bytes<packing>(packed, elements + offset, bytes);
        else
            move_blocks<packing>(packed, elements + offset, blocks, bytes, stride);
        packed += blocks * bytes;
        return true;
    });
}

void Layout::pack(void* packed, const void* elements, std::uint64_t from, std::uint64_t to) const {
    // Only read: one body serves both directions.
    move<true>(static_cast<std::byte*>(packed), static_cast<std::byte*>(const_cast<void*>(elements)), from,
               to);
}

void Layout::unpack(void* elements, const void* packed, std::uint64_t from, std::uint64_t to) const {
    move<false>(static_cast<std::byte*>(const_cast<void*>(packed)), static_cast<std::byte*>(elements), from,
                to);
}

std::size_t Layout::runs_of(std::uint64_t from, std::uint64_t to, std::span<ByteRun> into) const {
    std::size_t count = 0;
    ByteRun open;
    auto close = [&] {
        if (open.bytes == 0) return;
        into[count++] = open;
        open.bytes = 0;
    };
    if (into.empty()) return 0;
    walk(from, to, [&](std::int64_t offset, std::uint64_t bytes, std::uint64_t blocks, std::int64_t stride) {
        for (std::uint64_t i = 0; i < blocks; ++i, offset += stride) {
            if (open.bytes != 0 && open.offset + static_cast<std::int64_t>(open.bytes) == offset) {
                open.bytes += bytes;
                continue;
            }
            close();
            if (count == into.size()) return false;
            open = {offset, bytes};
        }
        return true;
    });
    close();
    return count;
}

}  // namespace thalweg
