#include "plan/reductions.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "plan/datatype.h"
#include "transport/mpi/host.h"

namespace thalweg {

namespace {

using Combine = decltype(Reducer::combine);

// Integers wrap around, as they do in the libraries: signed ones are added and multiplied as unsigned.
struct Sum {
    template <typename T>
    static T of(T left, T right) {
        if constexpr (std::is_integral_v<T>)
            return static_cast<T>(static_cast<std::uint64_t>(left) + static_cast<std::uint64_t>(right));
        else
            return left + right;
    }
};
struct Product {
    template <typename T>
    static T of(T left, T right) {
        if constexpr (std::is_integral_v<T>)
            return static_cast<T>(static_cast<std::uint64_t>(left) * static_cast<std::uint64_t>(right));
        else
            return left * right;
    }
};
struct Smaller {
    template <typename T>
    static T of(T left, T right) {
        return right < left ? right : left;
    }
};
struct Larger {
    template <typename T>
    static T of(T left, T right) {
        return left < right ? right : left;
    }
};
struct LogicalAnd {
    template <typename T>
    static T of(T left, T right) {
        return left && right;
    }
};
struct LogicalOr {
    template <typename T>
    static T of(T left, T right) {
        return left || right;
    }
};
struct LogicalXor {
    template <typename T>
    static T of(T left, T right) {
        return !left != !right;
    }
};
struct BitAnd {
    template <typename T>
    static T of(T left, T right) {
        return static_cast<T>(left & right);
    }
};
struct BitOr {
    template <typename T>
    static T of(T left, T right) {
        return static_cast<T>(left | right);
    }
};
struct BitXor {
    template <typename T>
    static T of(T left, T right) {
        return static_cast<T>(left ^ right);
    }
};

// Elements may lie anywhere: a few at a time go by way of aligned ones, which compilers turn into vectors.
template <typename T, typename Operation>
void combine(const void* left, const void* right, void* target, std::size_t bytes, void*) {
    constexpr std::size_t at_a_time = 64;
    const auto* from_left = static_cast<const std::byte*>(left);
    const auto* from_right = static_cast<const std::byte*>(right);
    auto* to = static_cast<std::byte*>(target);
    for (std::size_t left_over = bytes / sizeof(T); left_over != 0;) {
        const std::size_t count = left_over < at_a_time ? left_over : at_a_time;
        T a[at_a_time], b[at_a_time];
        std::memcpy(a, from_left, count * sizeof(T));
        std::memcpy(b, from_right, count * sizeof(T));
        for (std::size_t i = 0; i < count; ++i) a[i] = Operation::of(a[i], b[i]);
        std::memcpy(to, a, count * sizeof(T));
        from_left += count * sizeof(T);
        from_right += count * sizeof(T);
        to += count * sizeof(T);
        left_over -= count;
    }
}

// In the order of the operations in host_handles.def: sum prod min max land lor lxor band bor bxor.
constexpr std::size_t operations = 10;
using Row = std::array<Combine, operations>;

template <typename T>
constexpr Row row_of() {
    if constexpr (std::is_integral_v<T>)
        return {combine<T, Sum>,        combine<T, Product>,   combine<T, Smaller>,    combine<T, Larger>,
                combine<T, LogicalAnd>, combine<T, LogicalOr>, combine<T, LogicalXor>, combine<T, BitAnd>,
                combine<T, BitOr>,      combine<T, BitXor>};
    else
        return {combine<T, Sum>,
                combine<T, Product>,
                combine<T, Smaller>,
                combine<T, Larger>,
                nullptr,
                nullptr,
                nullptr,
                nullptr,
                nullptr,
                nullptr};
}

// MPI_BYTE has bits only.
constexpr Row row_of_bytes() {
    Row row{};
    row[7] = combine<unsigned char, BitAnd>;
    row[8] = combine<unsigned char, BitOr>;
    row[9] = combine<unsigned char, BitXor>;
    return row;
}

template <typename T>
inline constexpr Row table = row_of<T>();
inline constexpr Row table_of_bytes = row_of_bytes();

// `operations`: it is none of them.
std::size_t place_of(MPI_Op operation) {
    const Host& mpi = *host();
    const std::array<MPI_Op, operations> known = {mpi.sum, mpi.prod, mpi.min,  mpi.max, mpi.land,
                                                  mpi.lor, mpi.lxor, mpi.band, mpi.bor, mpi.bxor};
    return static_cast<std::size_t>(std::find(known.begin(), known.end(), operation) - known.begin());
}

}  // namespace

bool of_the_program(MPI_Op operation) {
    return place_of(operation) == operations && operation != host()->minloc && operation != host()->maxloc;
}

bool find_reducer(MPI_Op operation, MPI_Datatype type, Reducer& reducer, bool& rounds) {
    const Host& mpi = *host();
    const std::size_t which = place_of(operation);
    if (which == operations) return false;
    const Row* row = nullptr;
    std::size_t element_bytes = 0;
    bool is_float = false;
    const auto offer = [&]<typename T>(MPI_Datatype candidate, T) {
        if (row != nullptr || candidate != type) return;
        row = &table<T>;
        element_bytes = sizeof(T);
        is_float = std::is_floating_point_v<T>;
    };
    offer(mpi.signed_char, static_cast<signed char>(0));
    offer(mpi.unsigned_char, static_cast<unsigned char>(0));
    offer(mpi.short_, static_cast<short>(0));
    offer(mpi.unsigned_short, static_cast<unsigned short>(0));
    offer(mpi.int_, 0);
    offer(mpi.unsigned_, 0u);
    offer(mpi.long_, 0l);
    offer(mpi.unsigned_long, 0ul);
    offer(mpi.long_long, 0ll);
    offer(mpi.unsigned_long_long, 0ull);
    offer(mpi.int8, std::int8_t{0});
    offer(mpi.int16, std::int16_t{0});
    offer(mpi.int32, std::int32_t{0});
    offer(mpi.int64, std::int64_t{0});
    offer(mpi.uint8, std::uint8_t{0});
    offer(mpi.uint16, std::uint16_t{0});
    offer(mpi.uint32, std::uint32_t{0});
    offer(mpi.uint64, std::uint64_t{0});
    offer(mpi.float_, 0.0f);
    offer(mpi.double_, 0.0);
    // Compilers are told how large Fortran's default types are, and the library was built for one answer.
    const auto offer_fortran = [&]<typename Four, typename Eight>(MPI_Datatype candidate, Four, Eight) {
        if (row != nullptr || candidate != type) return;
        const std::int64_t size = type_size(type);
        if (size == 4) offer(candidate, Four{});
        if (size == 8) offer(candidate, Eight{});
    };
    offer_fortran(mpi.fortran_integer, std::int32_t{}, std::int64_t{});
    offer_fortran(mpi.fortran_real, float{}, double{});
    offer_fortran(mpi.fortran_double, float{}, double{});
    if (row == nullptr && type == mpi.byte) {
        row = &table_of_bytes;
        element_bytes = 1;
    }
    if (row == nullptr || (*row)[which] == nullptr) return false;
    reducer.combine = (*row)[which];
    reducer.context = nullptr;
    reducer.element_bytes = element_bytes;
    rounds = is_float;
    return true;
}

}  // namespace thalweg
