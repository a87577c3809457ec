// The parts of the ucx transport below its ports: tags, the borrowed environment, addresses.
#if __has_include(<ucp/api/ucp.h>)
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "transport/ucx/environment.h"
#include "transport/ucx/port.h"
#include "transport/ucx/tag.h"
#include "transport/ucx/ucx.h"

namespace thalweg {
namespace {

using ucx::TagLayout;

TagLayout layout_for(std::uint32_t processes) {
    TagLayout layout;
    EXPECT_TRUE(TagLayout::make(processes, layout)) << processes;
    return layout;
}

TEST(ucx_tags, every_bit_has_one_owner) {
    TagLayout layout;
    for (int bits = 0; bits <= 23; ++bits) {
        for (const std::int64_t around : {0, 1}) {
            const auto processes = static_cast<std::uint32_t>((std::int64_t{1} << bits) + around);
            if (!TagLayout::make(processes, layout)) continue;
            EXPECT_GE(std::uint64_t{1} << layout.process_bits, processes);
            EXPECT_GE(layout.operation_bits, 2) << processes;
            EXPECT_GE(layout.counter_bits, 1) << processes;
            EXPECT_LE(1 + 2 * layout.process_bits + layout.counter_bits + layout.operation_bits +
                          TagLayout::message_bits,
                      64);
            // All ones in one field at a time: no two fields overlap.
            const auto last = static_cast<std::uint32_t>((std::uint64_t{1} << layout.process_bits) - 1);
            const auto counter = static_cast<std::uint32_t>(layout.counters() - 1);
            const std::uint64_t fields[] = {layout.channel({0, 0}, OperationSpace::plans),
                                            layout.channel({last, 0}, OperationSpace::calls),
                                            layout.channel({0, counter}, OperationSpace::calls),
                                            layout.tag(0, last, {0, 0}),
                                            layout.tag(0, 0, {layout.live_operations() - 1, 0}),
                                            layout.tag(0, 0, {0, (1u << TagLayout::message_bits) - 1})};
            std::uint64_t used = 0;
            int bits_used = 0;
            for (const std::uint64_t field : fields) {
                EXPECT_EQ(used & field, 0u) << processes;
                used |= field;
                bits_used += std::popcount(field);
            }
            EXPECT_EQ(std::popcount(used), bits_used);
        }
    }
    EXPECT_FALSE(TagLayout::make((1u << 23) + 1, layout));
}

TEST(ucx_tags, distinct_within_the_live_operations_and_equal_beyond) {
    std::mt19937_64 random(1);
    for (const std::uint32_t processes : {2u, 7u, 1000u, 65536u}) {
        const TagLayout layout = layout_for(processes);
        using Identity =
            std::tuple<std::uint32_t, std::uint32_t, int, std::uint32_t, std::uint32_t, std::uint32_t>;
        std::map<std::uint64_t, Identity> seen;
        for (int i = 0; i < 20'000; ++i) {
            const auto pick = [&](std::uint64_t below) {
                return static_cast<std::uint32_t>(random() % std::min<std::uint64_t>(below, 5));
            };
            const UcxChannelName name{pick(processes), pick(layout.counters())};
            const auto space = static_cast<OperationSpace>(pick(2));
            const std::uint32_t sender = pick(processes);
            const MessageId id{pick(layout.live_operations()), pick(1u << 14)};
            const std::uint64_t tag = layout.tag(layout.channel(name, space), sender, id);
            const Identity identity{name.root, name.counter, static_cast<int>(space),
                                    sender,    id.operation, id.message};
            const auto [entry, fresh] = seen.emplace(tag, identity);
            ASSERT_TRUE(fresh || entry->second == identity);
            // Numbers wrap at 2^32, and at the live operations.
            const MessageId later{id.operation + 3 * layout.live_operations(), id.message};
            EXPECT_EQ(layout.tag(layout.channel(name, space), sender, later), tag);
        }
    }
}

// The figures that the decision record states.
TEST(ucx_tags, the_limits_that_are_documented) {
    const struct {
        std::uint32_t processes, live;
        int counter_bits;
    } rows[] = {{2, 32768, 32},  {64, 4096, 25},   {1024, 512, 20},
                {65536, 32, 12}, {1u << 20, 8, 6}, {1u << 23, 4, 1}};
    for (const auto& row : rows) {
        const TagLayout layout = layout_for(row.processes);
        EXPECT_EQ(layout.live_operations(), row.live) << row.processes;
        EXPECT_EQ(layout.counter_bits, row.counter_bits) << row.processes;
    }
}

TEST(ucx_environment, is_borrowed_and_given_back) {
    setenv("THALWEG_TEST_KEPT", "mine", 1);
    setenv("THALWEG_TEST_REPLACED", "before", 1);
    unsetenv("THALWEG_TEST_NEW");
    char** const at = environ;
    {
        const BorrowedEnvironment borrowed({{"THALWEG_TEST_KEPT", "other", true},
                                            {"THALWEG_TEST_REPLACED", "now"},
                                            {"THALWEG_TEST_NEW", "1"}});
        EXPECT_NE(environ, at);
        EXPECT_STREQ(getenv("THALWEG_TEST_KEPT"), "mine");
        EXPECT_STREQ(getenv("THALWEG_TEST_REPLACED"), "now");
        EXPECT_STREQ(getenv("THALWEG_TEST_NEW"), "1");
    }
    EXPECT_EQ(environ, at);
    EXPECT_STREQ(getenv("THALWEG_TEST_REPLACED"), "before");
    EXPECT_EQ(getenv("THALWEG_TEST_NEW"), nullptr);
    // Somebody else's setenv() in between is not lost, and ours do not stay.
    {
        const BorrowedEnvironment borrowed({{"THALWEG_TEST_REPLACED", "now"}, {"THALWEG_TEST_NEW", "1"}});
        setenv("THALWEG_TEST_OTHER", "theirs", 1);
    }
    EXPECT_STREQ(getenv("THALWEG_TEST_OTHER"), "theirs");
    EXPECT_STREQ(getenv("THALWEG_TEST_REPLACED"), "before");
    EXPECT_EQ(getenv("THALWEG_TEST_NEW"), nullptr);
}

TEST(ucx_address, damaged_ones_are_refused) {
    std::vector<std::vector<std::byte>> rails(2);
    rails[0].resize(13, std::byte{1});
    rails[1].resize(200, std::byte{2});
    const std::vector<std::byte> good = ucx::format_address(77, rails);
    ucx::AddressView view;
    ASSERT_TRUE(ucx::parse_address(good, view));
    EXPECT_EQ(view.host_key, 77u);
    ASSERT_EQ(view.rails.size(), 2u);
    EXPECT_EQ(std::vector<std::byte>(view.rails[0].begin(), view.rails[0].end()), rails[0]);
    EXPECT_EQ(std::vector<std::byte>(view.rails[1].begin(), view.rails[1].end()), rails[1]);
    for (std::size_t length = 0; length < good.size(); ++length) {
        EXPECT_FALSE(ucx::parse_address(std::span(good).first(length), view)) << length;
    }
    std::mt19937 random(3);
    for (int i = 0; i < 10'000; ++i) {
        std::vector<std::byte> damaged = good;
        damaged[random() % 40] = static_cast<std::byte>(random());
        if (!ucx::parse_address(damaged, view)) continue;
        for (const auto rail : view.rails) {
            ASSERT_GE(rail.data(), damaged.data());
            ASSERT_LE(rail.data() + rail.size(), damaged.data() + damaged.size());
        }
    }
}

}  // namespace
}  // namespace thalweg
#endif
