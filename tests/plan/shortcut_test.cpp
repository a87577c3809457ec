// What a wrapper passes on by itself of that which a trial leaves to the native library.
#include "plan/shortcut.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "plan/bypass.h"

namespace thalweg {
namespace {

int function;
void* const native = &function;
// As the MPICH family has them: numbers in the lower half of a register.
constexpr std::intptr_t comm = 0x44000000, doubles = 0x4c00080b, other_half = std::intptr_t{5} << 32;
constexpr std::int64_t count = 1000;
constexpr int ranks = 3;

ThalwegUnasked unasked(std::uint64_t left) { return {native, comm, 0xffffffff, left, nullptr}; }
ThalwegBroadcastShortcut broadcasts(std::uint64_t left) {
    return {unasked(left), doubles, count, static_cast<std::uint32_t>(ranks)};
}

TEST(unasked_broadcasts, are_passed_on_as_long_as_some_are_left) {
    ThalwegBroadcastShortcut shortcut = broadcasts(2);
    const int data = 0;
    EXPECT_EQ(thalweg_native_of_broadcast(&shortcut, &data, count, doubles, 0, comm), native);
    EXPECT_EQ(shortcut.unasked.left, 1u);
    EXPECT_EQ(thalweg_native_of_broadcast(&shortcut, &data, count, doubles, ranks - 1, comm), native);
    EXPECT_EQ(thalweg_native_of_broadcast(&shortcut, &data, count, doubles, 0, comm), nullptr);
    EXPECT_EQ(shortcut.unasked.left, 0u);
}

TEST(unasked_broadcasts, are_described_alike) {
    ThalwegBroadcastShortcut shortcut = broadcasts(9);
    const int data = 0;
    for (const std::int64_t other : {std::int64_t{0}, count - 1, count + 1, -count, count + other_half})
        EXPECT_EQ(thalweg_native_of_broadcast(&shortcut, &data, other, doubles, 0, comm), nullptr) << other;
    EXPECT_EQ(thalweg_native_of_broadcast(&shortcut, &data, count, doubles + 1, 0, comm), nullptr);
    EXPECT_EQ(thalweg_native_of_broadcast(&shortcut, &data, count, doubles, 0, comm + 1), nullptr);
    EXPECT_EQ(shortcut.unasked.left, 9u);
}

// Which the library reports, and nobody counts.
TEST(unasked_broadcasts, have_no_wrong_arguments) {
    ThalwegBroadcastShortcut shortcut = broadcasts(9);
    const int data = 0;
    for (const int root : {-1, -5, ranks, ranks + 1})
        EXPECT_EQ(thalweg_native_of_broadcast(&shortcut, &data, count, doubles, root, comm), nullptr) << root;
    for (const std::intptr_t place : {-1, 0, 1})
        EXPECT_EQ(thalweg_native_of_broadcast(&shortcut, reinterpret_cast<const void*>(place), count, doubles,
                                              0, comm),
                  nullptr)
            << place;
    EXPECT_EQ(shortcut.unasked.left, 9u);
}

TEST(unasked_broadcasts, are_known_by_the_half_of_a_register_that_is_a_handle) {
    ThalwegBroadcastShortcut shortcut = broadcasts(9);
    const int data = 0;
    EXPECT_EQ(
        thalweg_native_of_broadcast(&shortcut, &data, count, doubles + other_half, 0, comm - other_half),
        native);
    shortcut.unasked.handle_bits = ~std::intptr_t{0};
    EXPECT_EQ(thalweg_native_of_broadcast(&shortcut, &data, count, doubles + other_half, 0, comm), nullptr);
    EXPECT_EQ(thalweg_native_of_broadcast(&shortcut, &data, count, doubles, 0, comm + other_half), nullptr);
    EXPECT_EQ(shortcut.unasked.left, 8u);
}

TEST(unasked_broadcasts, are_none_at_first_and_where_somebody_wants_to_see_them) {
    ThalwegBroadcastShortcut shortcut{};
    const int data = 0;
    EXPECT_EQ(thalweg_native_of_broadcast(&shortcut, &data, 0, 0, 0, 0), nullptr);
    shortcut = broadcasts(9);
    shortcut.unasked.native = nullptr;
    EXPECT_EQ(thalweg_native_of_broadcast(&shortcut, &data, count, doubles, 0, comm), nullptr);
    EXPECT_EQ(shortcut.unasked.left, 9u);
}

TEST(unasked_exchanges, are_those_of_one_communicator_as_long_as_some_are_left) {
    ThalwegExchangeShortcut shortcut{};
    void* holder = nullptr;
    EXPECT_EQ(thalweg_native_of_unasked(&shortcut, comm, &holder), nullptr);
    int owner = 0;
    shortcut.unasked = unasked(1);
    shortcut.unasked.holder = &owner;
    EXPECT_EQ(thalweg_native_of_exchange(&shortcut), nullptr);
    EXPECT_EQ(thalweg_native_of_unasked(&shortcut, comm + 1, &holder), nullptr);
    EXPECT_EQ(thalweg_native_of_unasked(&shortcut, comm, &holder), native);
    EXPECT_EQ(holder, &owner);
    EXPECT_EQ(thalweg_native_of_unasked(&shortcut, comm, &holder), nullptr);
    int every = 0;
    shortcut.native = &every;
    EXPECT_EQ(thalweg_native_of_exchange(&shortcut), &every);
}

// Of a table of sizes and of sizes in handles; of neither nothing is known.
TEST(unasked_broadcasts, are_of_types_that_are_known_to_be_predefined) {
    EXPECT_FALSE(Bypass::is_predefined(doubles));
    EXPECT_FALSE(Bypass::is_predefined(0));
    Bypass::Limits below{};
    below[0] = 1000;
    Bypass::set_limits(below, "test", 0xff000000, 0x4c000000, nullptr);
    EXPECT_TRUE(Bypass::is_predefined(doubles));
    EXPECT_FALSE(Bypass::is_predefined(0x0c000000));                 // MPI_DATATYPE_NULL
    EXPECT_FALSE(Bypass::is_predefined(std::intptr_t{0x8c000000}));  // a type that was made
    static ThalwegTypeSizes sizes{};
    const std::intptr_t ints = reinterpret_cast<std::intptr_t>(&function);
    sizes.byte = ints + 1;
    sizes.real = ints + 2;
    sizes.of[thalweg_place_of(0, ints)] = {ints, 4};
    Bypass::set_limits(below, "test", 0, 1, &sizes);
    for (const std::intptr_t known : {ints, ints + 1, ints + 2}) EXPECT_TRUE(Bypass::is_predefined(known));
    EXPECT_FALSE(Bypass::is_predefined(ints + 3));
    EXPECT_FALSE(Bypass::is_predefined(doubles));
}

}  // namespace
}  // namespace thalweg
