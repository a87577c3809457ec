// Packing and unpacking of any byte range, against a byte-by-byte list made the slow way.
#include "layout/layout.h"

#include <gtest/gtest.h>

#include <random>

using namespace thalweg;

namespace {

// The offset of every byte of `count` elements in packing order.
std::vector<std::int64_t> slow(std::span<const ByteRun> runs, std::int64_t extent, std::uint64_t count) {
    std::vector<std::int64_t> offsets;
    for (std::uint64_t element = 0; element < count; ++element)
        for (const ByteRun& run : runs)
            for (std::uint64_t i = 0; i < run.bytes; ++i)
                offsets.push_back(static_cast<std::int64_t>(element) * extent + run.offset +
                                  static_cast<std::int64_t>(i));
    return offsets;
}

// Compares every operation on [from, to) with the slow list.
void expect_range(const Layout& layout, const std::vector<std::int64_t>& offsets, std::uint64_t count,
                  std::uint64_t from, std::uint64_t to) {
    const std::int64_t lower = layout.lower(count), upper = layout.upper(count);
    const auto span = static_cast<std::size_t>(upper - lower);
    std::vector<unsigned char> memory(span), packed(to - from + 2, 0xee);
    for (std::size_t i = 0; i < span; ++i) memory[i] = static_cast<unsigned char>(i * 37 + i / 251);
    unsigned char* elements = memory.data() - lower;

    layout.pack(packed.data() + 1, elements, from, to);
    EXPECT_EQ(packed.front(), 0xee);
    EXPECT_EQ(packed.back(), 0xee);
    for (std::uint64_t i = from; i < to; ++i)
        ASSERT_EQ(packed[1 + i - from], elements[offsets[i]]) << "byte " << i;

    std::vector<unsigned char> blank(span, 0xdd), expected(span, 0xdd);
    layout.unpack(blank.data() - lower, packed.data() + 1, from, to);
    for (std::uint64_t i = from; i < to; ++i)
        expected[static_cast<std::size_t>(offsets[i] - lower)] = packed[1 + i - from];
    ASSERT_EQ(blank, expected) << "from " << from << " to " << to;

    std::vector<ByteRun> runs(to - from + 1);
    const std::size_t found = layout.runs_of(from, to, runs);
    ASSERT_LE(found, to - from);
    std::uint64_t at = from;
    for (std::size_t i = 0; i < found; ++i) {
        ASSERT_GT(runs[i].bytes, 0u);
        if (i > 0) {
            EXPECT_NE(runs[i - 1].offset + static_cast<std::int64_t>(runs[i - 1].bytes), runs[i].offset)
                << "unmerged";
        }
        for (std::uint64_t k = 0; k < runs[i].bytes; ++k, ++at)
            ASSERT_EQ(runs[i].offset + static_cast<std::int64_t>(k), offsets[at]);
    }
    EXPECT_EQ(at, to);
}

void expect_all(const Layout& layout, std::span<const ByteRun> runs, std::int64_t extent,
                std::uint64_t count) {
    const auto offsets = slow(runs, extent, count);
    ASSERT_EQ(layout.size() * count, offsets.size());
    ASSERT_EQ(layout.extent(), extent);
    if (!offsets.empty()) {
        EXPECT_EQ(layout.lower(count), *std::min_element(offsets.begin(), offsets.end()));
        EXPECT_EQ(layout.upper(count), *std::max_element(offsets.begin(), offsets.end()) + 1);
    }
    for (std::uint64_t from = 0; from <= offsets.size(); from += 1 + offsets.size() / 23)
        for (std::uint64_t to = from; to <= offsets.size(); to += 1 + offsets.size() / 29)
            ASSERT_NO_FATAL_FAILURE(expect_range(layout, offsets, count, from, to));
    ASSERT_NO_FATAL_FAILURE(expect_range(layout, offsets, count, 0, offsets.size()));
}

TEST(layout, contiguous) {
    const Layout layout = Layout::contiguous(24);
    EXPECT_EQ(layout.form(), Layout::Form::contiguous);
    EXPECT_TRUE(layout.is_one_run(5));
    expect_all(layout, std::array{ByteRun{0, 24}}, 24, 5);
}

TEST(layout, nothing) {
    EXPECT_EQ(Layout().size(), 0u);
    EXPECT_EQ(Layout::contiguous(0), Layout());
    const Layout padded = Layout::list(std::array{ByteRun{8, 0}}, 16);
    EXPECT_EQ(padded.size(), 0u);
    EXPECT_EQ(padded.extent(), 16);
    EXPECT_EQ(padded.lower(3), padded.upper(3));
    padded.pack(nullptr, nullptr, 0, 0);
    EXPECT_EQ(padded.runs_of(0, 0, {}), 0u);
}

TEST(layout, one_run_with_a_gap_behind_it) {
    const Layout layout = Layout::list(std::array{ByteRun{4, 8}}, 24);
    EXPECT_EQ(layout.form(), Layout::Form::contiguous);
    EXPECT_TRUE(layout.is_one_run(1));
    EXPECT_FALSE(layout.is_one_run(2));
    EXPECT_EQ(layout.true_lb(), 4);
    EXPECT_EQ(layout.true_ub(), 12);
    expect_all(layout, std::array{ByteRun{4, 8}}, 24, 6);
}

TEST(layout, strided_blocks_of_many_sizes) {
    for (std::uint64_t block : {1, 2, 3, 4, 8, 16, 24, 32, 40})
        for (std::int64_t gap : {1, 5}) {
            const std::int64_t stride = static_cast<std::int64_t>(block) + gap;
            std::vector<ByteRun> runs;
            for (int i = 0; i < 7; ++i) runs.push_back({i * stride, block});
            // A vector type ends with its last block; a column of a matrix goes on with the next.
            const std::int64_t tight = 6 * stride + static_cast<std::int64_t>(block);
            for (std::int64_t extent : {tight, 7 * stride, std::int64_t{1000}, std::int64_t{-1000}}) {
                const Layout layout = Layout::strided(7, block, stride, extent);
                EXPECT_EQ(layout.form(), Layout::Form::strided);
                EXPECT_EQ(layout, Layout::list(runs, extent)) << "the list finds the stride";
                ASSERT_NO_FATAL_FAILURE(expect_all(layout, runs, extent, 4));
            }
        }
}

TEST(layout, negative_strides_and_bounds) {
    std::vector<ByteRun> runs;
    for (int i = 0; i < 5; ++i) runs.push_back({-i * 12, 8});
    const Layout layout = Layout::strided(5, 8, -12, 64);
    EXPECT_EQ(layout.true_lb(), -48);
    EXPECT_EQ(layout.true_ub(), 8);
    expect_all(layout, runs, 64, 3);
    expect_all(Layout::strided(5, 8, -12, -60), runs, -60, 3);
}

TEST(layout, adjacent_runs_are_merged) {
    const Layout dense =
        Layout::list(std::array{ByteRun{0, 4}, ByteRun{4, 4}, ByteRun{8, 0}, ByteRun{8, 8}}, 16);
    EXPECT_EQ(dense, Layout::contiguous(16));
    EXPECT_EQ(Layout::strided(4, 8, 8, 32), Layout::contiguous(32));
    const Layout backwards = Layout::list(std::array{ByteRun{4, 4}, ByteRun{0, 4}}, 8);
    EXPECT_EQ(backwards.runs(), 2u) << "packing order is not address order";
    expect_all(backwards, std::array{ByteRun{4, 4}, ByteRun{0, 4}}, 8, 3);
    // struct {double; int} with its padding, and without
    EXPECT_EQ(Layout::list(std::array{ByteRun{0, 8}, ByteRun{8, 4}}, 16).runs(), 1u);
}

// Loops in one another, the outermost first, around a run of `bytes`.
struct Loop {
    std::uint64_t count;
    std::int64_t stride;
};

std::vector<ByteRun> unrolled(std::span<const Loop> loops, std::uint64_t bytes, std::int64_t at) {
    if (loops.empty()) return {{at, bytes}};
    std::vector<ByteRun> runs;
    for (std::uint64_t i = 0; i < loops[0].count; ++i)
        for (const ByteRun& run :
             unrolled(loops.subspan(1), bytes, at + static_cast<std::int64_t>(i) * loops[0].stride))
            runs.push_back(run);
    return runs;
}

std::optional<Layout> nested(std::span<const Loop> loops, std::uint64_t bytes, std::int64_t extent,
                             std::int64_t at) {
    std::optional<Layout> layout = Layout::contiguous(bytes);
    for (std::size_t i = loops.size(); i-- > 0 && layout;)
        layout =
            Layout::repeated(*layout, loops[i].count, loops[i].stride, i == 0 ? extent : 7, i == 0 ? at : 0);
    return layout;
}

TEST(layout, strides_in_one_another) {
    // The face of single cells of a 5 × 6 × 4 array with a border.
    const std::array<Loop, 2> face{Loop{5, 8 * 6 * 8}, Loop{6, 6 * 8}};
    const std::optional<Layout> cells = nested(face, 8, 7 * 8 * 6 * 8, 16);
    ASSERT_TRUE(cells);
    EXPECT_EQ(cells->form(), Layout::Form::nested);
    EXPECT_EQ(cells->rows() * face.back().count, cells->runs());
    EXPECT_EQ(Layout::strided(30, 8, 48, 2000).rows(), 1u);
    EXPECT_EQ(Layout::contiguous(8).rows(), 1u);
    EXPECT_EQ(Layout().rows(), 0u);
    EXPECT_EQ(cells->runs(), 30u);
    expect_all(*cells, unrolled(face, 8, 16), 7 * 8 * 6 * 8, 3);
    // Rows that follow as their cells do are one row.
    const std::array<Loop, 2> plane{Loop{5, 6 * 48}, Loop{6, 48}};
    EXPECT_EQ(nested(plane, 8, 2000, 0), Layout::strided(30, 8, 48, 2000));
    const std::array<Loop, 3> more{Loop{3, 5 * 300}, Loop{5, 300}, Loop{6, 48}};
    EXPECT_EQ(nested(more, 8, 9000, 0), nested(std::array{Loop{15, 300}, Loop{6, 48}}, 8, 9000, 0));
    EXPECT_EQ(Layout::repeated(*cells, 0, 5, 12)->size(), 0u);
    EXPECT_EQ(Layout::repeated(*cells, 0, 5, 12)->extent(), 12);
}

TEST(layout, random_strides_in_one_another) {
    std::mt19937_64 random(11);
    int nests = 0;
    for (int trial = 0; trial < 150; ++trial) {
        std::vector<Loop> loops(1 + random() % 5);
        for (Loop& loop : loops) loop = {1 + random() % 3, static_cast<std::int64_t>(random() % 90) - 30};
        const std::uint64_t bytes = std::array<std::uint64_t, 5>{1, 3, 4, 8, 11}[random() % 5];
        const auto extent = static_cast<std::int64_t>(random() % 400) - 100;
        const auto at = static_cast<std::int64_t>(random() % 40) - 20;
        const std::optional<Layout> layout = nested(loops, bytes, extent, at);
        ASSERT_TRUE(layout);
        nests += layout->form() == Layout::Form::nested;
        ASSERT_NO_FATAL_FAILURE(expect_all(*layout, unrolled(loops, bytes, at), extent, random() % 4))
            << "trial " << trial;
    }
    EXPECT_GT(nests, 75);
}

TEST(layout, what_only_a_list_can_say) {
    const Layout list = Layout::list(std::array{ByteRun{0, 4}, ByteRun{9, 2}, ByteRun{30, 4}}, 40);
    EXPECT_FALSE(Layout::repeated(list, 2, 50, 100));
    const std::optional<Layout> moved = Layout::repeated(list, 1, 50, 100, -3);
    ASSERT_TRUE(moved);
    expect_all(*moved, std::array{ByteRun{-3, 4}, ByteRun{6, 2}, ByteRun{27, 4}}, 100, 3);
    std::vector<Loop> loops;
    for (int i = 0; i < 6; ++i) loops.insert(loops.begin(), {2, 16 << (2 * i)});
    EXPECT_FALSE(nested(loops, 8, 1 << 20, 0));
    loops.pop_back();
    EXPECT_TRUE(nested(loops, 8, 1 << 20, 0));
}

TEST(layout, random_lists) {
    std::mt19937_64 random(5);
    for (int trial = 0; trial < 60; ++trial) {
        std::vector<ByteRun> runs;
        std::int64_t at = static_cast<std::int64_t>(random() % 40) - 20;
        for (std::uint64_t i = 0, many = random() % 8; i < many; ++i) {
            runs.push_back({at, random() % 12});
            at += static_cast<std::int64_t>(runs.back().bytes + random() % 3 * (random() % 6));
        }
        std::shuffle(runs.begin(), runs.end(), random);
        const std::int64_t extent =
            (random() % 4 == 0 ? -1 : 1) * static_cast<std::int64_t>(120 + random() % 9);
        const std::uint64_t count = random() % 5;
        const Layout layout = Layout::list(runs, extent);
        ASSERT_NO_FATAL_FAILURE(expect_all(layout, runs, extent, count)) << "trial " << trial;
    }
}

TEST(layout, runs_that_do_not_fit_are_left_out) {
    const Layout layout = Layout::strided(10, 4, 8, 80);
    std::array<ByteRun, 2> some;
    EXPECT_EQ(layout.runs_of(2, 40, some), 2u);
    EXPECT_EQ(some[0], (ByteRun{2, 2}));
    EXPECT_EQ(some[1], (ByteRun{8, 4}));
}

// A few at a time: were all that follow looked at each time, it would be 10^11 of them.
TEST(layout, runs_are_told_in_time_that_grows_with_their_number) {
    const std::uint64_t side = 1 << 11, all = side * side;
    const Layout face = *Layout::repeated(Layout::strided(side, 8, 16, 16 * side + 64), side,
                                          static_cast<std::int64_t>(16 * side + 64), 1 << 27);
    for (const Layout& layout : {face, Layout::strided(all, 8, 16, 16 * all)}) {
        std::array<ByteRun, 64> some;
        std::uint64_t runs = 0, at = 0;
        while (at < layout.size()) {
            const std::size_t found = layout.runs_of(at, layout.size(), some);
            ASSERT_NE(found, 0u);
            for (const ByteRun& run : std::span(some).first(found)) at += run.bytes;
            runs += found;
        }
        EXPECT_EQ(runs, all);
    }
}

}  // namespace
