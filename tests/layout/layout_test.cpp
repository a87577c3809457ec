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

TEST(layout, runs_that_do_not_fit_are_counted) {
    const Layout layout = Layout::strided(10, 4, 8, 80);
    std::array<ByteRun, 2> some;
    EXPECT_EQ(layout.runs_of(2, 40, some), 10u);
    EXPECT_EQ(some[0], (ByteRun{2, 2}));
    EXPECT_EQ(some[1], (ByteRun{8, 4}));
}

}  // namespace
