// The bytes of a datatype as a value: which bytes of memory one element covers, in the order in which they
// are packed. Knows no MPI; made once per datatype and shared by everything that packs or unpacks it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace thalweg {

// `bytes` bytes at `offset` bytes from the address of an element; offsets may be negative.
struct ByteRun {
    std::int64_t offset = 0;
    std::uint64_t bytes = 0;

    bool operator==(const ByteRun&) const = default;
};

class Layout {
  public:
    enum class Form : std::uint8_t { contiguous, strided, nested, list };

    // No bytes at all.
    Layout() = default;

    // An element of `bytes` bytes, the next one right behind it.
    static Layout contiguous(std::uint64_t bytes);

    // `blocks` runs of `block_bytes`, each `stride` bytes after the one before; the first at `offset`. The
    // next element lies `extent` bytes after this one. Stride and extent may be negative.
    static Layout strided(std::uint64_t blocks, std::uint64_t block_bytes, std::int64_t stride,
                          std::int64_t extent, std::int64_t offset = 0);

    // `copies` times what `element` covers, each `distance` bytes after the one before, the first at
    // `offset`; O(1), whatever the number of runs. The next element lies `extent` bytes after this one.
    // Nothing where only a list can say it: of a list, or of more than `deepest` strides in one another.
    static std::optional<Layout> repeated(const Layout& element, std::uint64_t copies, std::int64_t distance,
                                          std::int64_t extent, std::int64_t offset = 0);

    // Any runs, in packing order. Runs that continue one another are merged, empty ones dropped; where a
    // simpler form covers the same bytes in the same order, it is taken.
    static Layout list(std::span<const ByteRun> runs, std::int64_t extent);

    Form form() const { return form_; }
    std::uint64_t size() const { return size_; }       // bytes of one element when packed
    std::int64_t extent() const { return extent_; }    // from one element to the next
    std::int64_t true_lb() const { return true_lb_; }  // the lowest byte of one element, 0 when there is none
    std::int64_t true_ub() const { return true_ub_; }  // one past the highest
    std::uint64_t runs() const { return blocks_; }     // runs of one element, at most
    // Of one element: sets of runs that one stride joins, at most.
    std::uint64_t rows() const;
    // Of all forms but list: bytes of a run, and where the first begins and, where there is one stride, how
    // far the next lies behind it.
    std::uint64_t run_bytes() const { return block_bytes_; }
    std::int64_t first() const { return first_; }
    std::int64_t stride() const { return stride_; }

    // True when `count` elements are one run of count × size() bytes starting at true_lb(): nothing to pack.
    bool is_one_run(std::uint64_t count) const {
        return form_ == Form::contiguous && (count <= 1 || extent_ == static_cast<std::int64_t>(size_));
    }

    // The bytes that `count` elements touch: [lower(count), upper(count)) from the address of the first.
    std::int64_t lower(std::uint64_t count) const;
    std::int64_t upper(std::uint64_t count) const;

    // Packs bytes [from, to) of the packed form of the elements at `elements` into `packed`, which has room
    // for to - from bytes. Pre: from <= to <= elements × size(); packed and elements do not overlap. No
    // allocation.
    void pack(void* packed, const void* elements, std::uint64_t from, std::uint64_t to) const;

    // The reverse: puts the to - from bytes of `packed` where bytes [from, to) of the packed form belong.
    // Touches no other byte.
    void unpack(void* elements, const void* packed, std::uint64_t from, std::uint64_t to) const;

    // The first runs that hold bytes [from, to) of the packed form, in packing order, as far as they fit into
    // `into`; returns how many these are, in time that grows with it. Runs that continue one another across
    // elements are merged.
    std::size_t runs_of(std::uint64_t from, std::uint64_t to, std::span<ByteRun> into) const;

    bool operator==(const Layout&) const = default;

  private:
    // Rows of a nested layout: `count` times what the levels behind this one cover, each `stride` bytes on.
    struct Level {
        std::uint64_t count = 0;
        std::int64_t stride = 0;

        bool operator==(const Level&) const = default;
    };
    static constexpr std::size_t deepest = 4;  // strides in one another: faces in five dimensions

    template <class Visit>
    bool walk_row(std::int64_t base, std::uint64_t within, std::uint64_t blocks, std::int64_t stride,
                  std::uint64_t& left, Visit& visit) const;
    template <class Visit>
    void walk_rows(std::uint64_t from, std::uint64_t left, Visit& visit) const;
    template <class Visit>
    void walk(std::uint64_t from, std::uint64_t to, Visit visit) const;
    template <bool packing>
    void move(std::byte* packed, std::byte* elements, std::uint64_t from, std::uint64_t to) const;
    void measure();

    Form form_ = Form::contiguous;
    std::uint64_t size_ = 0;
    std::int64_t extent_ = 0;
    std::int64_t true_lb_ = 0, true_ub_ = 0;
    std::uint64_t blocks_ = 0;              // runs of one element
    std::uint64_t block_bytes_ = 0;         // all but list
    std::int64_t first_ = 0;                // all but list: offset of the first run
    std::int64_t stride_ = 0;               // strided, and inside a row of nested
    std::uint64_t row_blocks_ = 0;          // nested: runs of a row
    std::vector<Level> levels_;             // nested: of rows, outermost first
    std::vector<ByteRun> list_;             // list
    std::vector<std::uint64_t> packed_at_;  // list: where each run starts in the packed form
};

}  // namespace thalweg
