#include "base/text.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace thalweg {
namespace {

TEST(text, bytes_are_powers_of_1024_and_kb_is_refused) {
    EXPECT_EQ(parse_bytes("65536"), 65536u);
    EXPECT_EQ(parse_bytes("64K"), 65536u);
    EXPECT_EQ(parse_bytes("64k"), 65536u);
    EXPECT_EQ(parse_bytes("64KiB"), 65536u);
    EXPECT_EQ(parse_bytes("4M"), 4u << 20);
    EXPECT_EQ(parse_bytes("1G"), 1u << 30);
    EXPECT_EQ(parse_bytes("2T"), std::uint64_t{2} << 40);
    EXPECT_EQ(parse_bytes("0"), 0u);
    for (const char* text : {"", "K", "64KB", "-1", "1.5K", "64 K", "64Kx", "0x10", "1P", "+1"})
        EXPECT_FALSE(parse_bytes(text)) << text;
}

TEST(text, bytes_that_do_not_fit_64_bits_are_refused) {
    EXPECT_EQ(parse_bytes("18446744073709551615"), ~std::uint64_t{0});
    EXPECT_FALSE(parse_bytes("18446744073709551616"));
    EXPECT_FALSE(parse_bytes("16777216T"));
    EXPECT_EQ(parse_bytes("16777215T"), std::uint64_t{16777215} << 40);
}

TEST(text, printed_bytes_read_back_exactly) {
    for (std::uint64_t value : {0ull, 1ull, 1000ull, 1023ull, 1024ull, 65536ull, 65537ull, 1ull << 20,
                                3ull << 30, 1ull << 40, 1ull << 50, ~0ull})
        EXPECT_EQ(parse_bytes(bytes_text(value)), value) << bytes_text(value);
    EXPECT_EQ(bytes_text(65536), "64K");
    EXPECT_EQ(bytes_text(1536), "1536");
}

// Else they would be infinite, or no number at all, which no comparison refuses.
TEST(text, numbers_of_more_digits_than_doubles_have_room_for_are_refused) {
    const std::string nines(400, '9'), zeros(400, '0');
    for (const std::string& text : {nines, "2." + zeros, nines + "." + nines}) {
        EXPECT_FALSE(parse_number(text)) << text;
        EXPECT_FALSE(parse_rate(text + "mbit")) << text;
    }
    EXPECT_FALSE(parse_rate(std::string(305, '9') + "TB/s"));
    EXPECT_EQ(parse_number(zeros + "2.5"), 2.5);
    EXPECT_EQ(parse_rate(zeros + "8mbit"), 1e6);
}

TEST(text, rates_count_bits_in_thousands_and_need_a_unit) {
    EXPECT_DOUBLE_EQ(parse_rate("100mbit").value(), 12.5e6);
    EXPECT_DOUBLE_EQ(parse_rate("100Mbit/s").value(), 12.5e6);
    EXPECT_DOUBLE_EQ(parse_rate("12GB/s").value(), 12e9);
    EXPECT_DOUBLE_EQ(parse_rate("1GiB/s").value(), 1073741824.0);
    EXPECT_DOUBLE_EQ(parse_rate("2.5gbit").value(), 312.5e6);
    EXPECT_DOUBLE_EQ(parse_rate("8bit").value(), 1.0);
    for (const char* text : {"", "100", "mbit", "100m", "100mb", "1..5gbit", "100 mbit", "/s", "1e3bit"})
        EXPECT_FALSE(parse_rate(text)) << text;
}

TEST(text, printed_rates_and_numbers_read_back) {
    for (double rate : {12.5e6, 1.0, 12e9, 312.5e6, 125e9}) {
        ASSERT_TRUE(parse_rate(rate_text(rate))) << rate_text(rate);
        EXPECT_NEAR(parse_rate(rate_text(rate)).value(), rate, rate * 1e-6);
    }
    EXPECT_EQ(number_text(2), "2");
    EXPECT_EQ(number_text(0.75), "0.75");
    EXPECT_EQ(number_text(10.000001), "10.000001");
    EXPECT_EQ(rate_text(12.5e6), "100mbit");
}

TEST(text, nearest_name_forgives_slips_and_nothing_more) {
    static constexpr std::array<std::string_view, 4> names = {"binomial", "chain", "circulant", "linear"};
    EXPECT_EQ(nearest_name("chian", names), "chain");
    EXPECT_EQ(nearest_name("CHAIN", names), "chain");
    EXPECT_EQ(nearest_name("binomal", names), "binomial");
    EXPECT_EQ(nearest_name("circluant", names), "circulant");
    EXPECT_EQ(nearest_name("butterfly", names), "");
    EXPECT_EQ(nearest_name("chain", {}), "");
}

}  // namespace
}  // namespace thalweg
