#include "plan/reductions.h"

#include <algorithm>
#include <array>
#include <complex>
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

// A value and a place, packed: the value that wins, and of equal ones the least place.
template <typename Value, typename Place = Value>
struct [[gnu::packed]] Pair {
    Value value;
    Place place;
};
struct SmallerPair {
    template <typename T>
    static T of(T left, T right) {
        if (left.value == right.value) return left.place < right.place ? left : right;
        return right.value < left.value ? right : left;
    }
};
struct LargerPair {
    template <typename T>
    static T of(T left, T right) {
        if (left.value == right.value) return left.place < right.place ? left : right;
        return left.value < right.value ? right : left;
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

// Fortran's LOGICAL as the library reads and writes it, for its compiler.
template <typename T>
struct Truth {
    T values[2];  // false and true
};
template <typename T, typename Operation>
void combine_logical(const void* left, const void* right, void* target, std::size_t bytes, void* context) {
    const Truth<T>& truth = *static_cast<const Truth<T>*>(context);
    for (std::size_t at = 0; at < bytes; at += sizeof(T)) {
        T a, b;
        std::memcpy(&a, static_cast<const std::byte*>(left) + at, sizeof(T));
        std::memcpy(&b, static_cast<const std::byte*>(right) + at, sizeof(T));
        a = truth.values[Operation::of(a != truth.values[0], b != truth.values[0])];
        std::memcpy(static_cast<std::byte*>(target) + at, &a, sizeof(T));
    }
}

// sum prod min max land lor lxor band bor bxor minloc maxloc
constexpr std::size_t operations = 12;
using Row = std::array<Combine, operations>;
enum : std::size_t { sum, prod, min, max, land, lor, lxor, band, bor, bxor, minloc, maxloc };

template <typename T>
constexpr void compute(Row& row) {
    row[sum] = combine<T, Sum>;
    row[prod] = combine<T, Product>;
}
template <typename T>
constexpr void compare(Row& row) {
    row[min] = combine<T, Smaller>;
    row[max] = combine<T, Larger>;
}
template <typename T>
constexpr void decide(Row& row) {
    row[land] = combine<T, LogicalAnd>;
    row[lor] = combine<T, LogicalOr>;
    row[lxor] = combine<T, LogicalXor>;
}
template <typename T>
constexpr void mask(Row& row) {
    row[band] = combine<T, BitAnd>;
    row[bor] = combine<T, BitOr>;
    row[bxor] = combine<T, BitXor>;
}

// What the groups of types allow (MPI 4.1, section 6.9.2). `integer`: Fortran's, and addresses, which are no
// truth values, as C's are.
enum class Group { c_integer, floating, logical, fortran_logical, integer, complex, bytes, pair };
template <typename T, Group group>
constexpr Row row_of() {
    Row row{};
    if constexpr (group == Group::pair) {
        row[minloc] = combine<T, SmallerPair>;
        row[maxloc] = combine<T, LargerPair>;
    } else if constexpr (group == Group::fortran_logical) {
        row[land] = combine_logical<T, LogicalAnd>;
        row[lor] = combine_logical<T, LogicalOr>;
        row[lxor] = combine_logical<T, LogicalXor>;
    } else {
        if constexpr (group != Group::logical && group != Group::bytes) compute<T>(row);
        if constexpr (group == Group::c_integer || group == Group::floating || group == Group::integer)
            compare<T>(row);
        if constexpr (group == Group::c_integer || group == Group::logical) decide<T>(row);
        if constexpr (group == Group::c_integer || group == Group::integer || group == Group::bytes)
            mask<T>(row);
    }
    return row;
}
template <typename T, Group group>
inline constexpr Row table = row_of<T, group>();

// Whether the order of operands may show in the result.
template <typename T>
inline constexpr bool rounding = std::is_floating_point_v<T>;
template <typename T>
inline constexpr bool rounding<std::complex<T>> = true;
template <typename Value, typename Place>
inline constexpr bool rounding<Pair<Value, Place>> = std::is_floating_point_v<Value>;

// `operations`: it is none of them.
std::size_t place_of(MPI_Op operation) {
    const Host& mpi = *host();
    const std::array<MPI_Op, operations> known = {mpi.sum,  mpi.prod, mpi.min,    mpi.max,
                                                  mpi.land, mpi.lor,  mpi.lxor,   mpi.band,
                                                  mpi.bor,  mpi.bxor, mpi.minloc, mpi.maxloc};
    return static_cast<std::size_t>(std::find(known.begin(), known.end(), operation) - known.begin());
}

// What the library says, asked once; null: it does not tell the two apart. The same on all ranks.
template <typename T>
Truth<T>* truth_of(MPI_Datatype logical) {
    static Truth<T> truth{};
    static const bool known = [logical] {
        const Host& mpi = *host();
        T zero = 0;
        const T one = 1;
        truth.values[1] = 0;
        if (mpi.Reduce_local == nullptr ||
            mpi.Reduce_local(&zero, &truth.values[0], 1, logical, mpi.land) != MPI_SUCCESS ||
            mpi.Reduce_local(&one, &truth.values[1], 1, logical, mpi.lor) != MPI_SUCCESS)
            return false;
        return truth.values[0] != truth.values[1];
    }();
    return known ? &truth : nullptr;
}

}  // namespace

bool of_the_program(MPI_Op operation) { return place_of(operation) == operations; }

bool find_reducer(MPI_Op operation, MPI_Datatype type, Reducer& reducer) {
    const Host& mpi = *host();
    const std::size_t which = place_of(operation);
    if (which == operations) return false;
    const Row* row = nullptr;
    std::size_t element_bytes = 0;
    bool is_float = false;
    const auto offer_as = [&]<typename T, Group group>(MPI_Datatype candidate) {
        if (row != nullptr || candidate != type || candidate == mpi.datatype_null) return;
        row = &table<T, group>;
        element_bytes = sizeof(T);
        is_float = rounding<T>;
    };
    const auto offer = [&]<typename T>(MPI_Datatype candidate, T) {
        offer_as.template operator()<T, std::is_integral_v<T> ? Group::c_integer : Group::floating>(
            candidate);
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
    offer(mpi.long_double, 0.0l);
    // As bytes, any of which but 0 is true: compilers take it for granted that a bool is 0 or 1, and a
    // LOGICAL(C_BOOL) of Fortran may be 255.
    static_assert(sizeof(bool) == 1);
    offer_as.template operator()<unsigned char, Group::logical>(mpi.c_bool);
    offer_as.template operator()<std::complex<float>, Group::complex>(mpi.float_complex);
    offer_as.template operator()<std::complex<double>, Group::complex>(mpi.double_complex);
    offer_as.template operator()<std::complex<long double>, Group::complex>(mpi.long_double_complex);
    offer_as.template operator()<unsigned char, Group::logical>(mpi.cxx_bool);
    offer_as.template operator()<std::complex<float>, Group::complex>(mpi.cxx_float_complex);
    offer_as.template operator()<std::complex<double>, Group::complex>(mpi.cxx_double_complex);
    offer_as.template operator()<std::complex<long double>, Group::complex>(mpi.cxx_long_double_complex);
    offer_as.template operator()<Pair<int>, Group::pair>(mpi.int_pair);
    offer_as.template operator()<Pair<float, int>, Group::pair>(mpi.float_int);
    offer_as.template operator()<Pair<double, int>, Group::pair>(mpi.double_int);
    offer_as.template operator()<Pair<long, int>, Group::pair>(mpi.long_int);
    offer_as.template operator()<Pair<short, int>, Group::pair>(mpi.short_int);
    offer_as.template operator()<Pair<long double, int>, Group::pair>(mpi.long_double_int);
    offer_as.template operator()<std::int8_t, Group::integer>(mpi.fortran_integer1);
    offer_as.template operator()<std::int16_t, Group::integer>(mpi.fortran_integer2);
    offer_as.template operator()<std::int32_t, Group::integer>(mpi.fortran_integer4);
    offer_as.template operator()<std::int64_t, Group::integer>(mpi.fortran_integer8);
    offer(mpi.fortran_real4, 0.0f);
    offer(mpi.fortran_real8, 0.0);
    offer_as.template operator()<std::complex<float>, Group::complex>(mpi.fortran_complex8);
    offer_as.template operator()<std::complex<double>, Group::complex>(mpi.fortran_complex16);
    offer_as.template operator()<unsigned char, Group::bytes>(mpi.byte);
    static_assert(sizeof(MPI_Aint) == 8 && sizeof(MPI_Offset) == 8 && sizeof(MPI_Count) == 8);
    for (const MPI_Datatype address : {mpi.aint, mpi.offset, mpi.count})
        offer_as.template operator()<std::int64_t, Group::integer>(address);
    // Compilers are told how large Fortran's default types are, and the library was built for one answer.
    const auto offer_fortran = [&]<typename Small, typename Large, Group group>(MPI_Datatype candidate) {
        if (row != nullptr || candidate != type) return;
        const std::int64_t size = type_size(type);
        if (size == sizeof(Small)) offer_as.template operator()<Small, group>(candidate);
        if (size == sizeof(Large)) offer_as.template operator()<Large, group>(candidate);
    };
    offer_fortran.template operator()<std::int32_t, std::int64_t, Group::integer>(mpi.fortran_integer);
    offer_fortran.template operator()<float, double, Group::floating>(mpi.fortran_real);
    offer_fortran.template operator()<float, double, Group::floating>(mpi.fortran_double);
    using Complex = std::complex<float>;
    using LargeComplex = std::complex<double>;
    offer_fortran.template operator()<Complex, LargeComplex, Group::complex>(mpi.fortran_complex);
    offer_fortran.template operator()<Complex, LargeComplex, Group::complex>(mpi.fortran_double_complex);
    offer_fortran.template operator()<Pair<std::int32_t>, Pair<std::int64_t>, Group::pair>(
        mpi.fortran_integer_pair);
    offer_fortran.template operator()<Pair<float>, Pair<double>, Group::pair>(mpi.fortran_real_pair);
    offer_fortran.template operator()<Pair<float>, Pair<double>, Group::pair>(mpi.fortran_double_pair);
    offer_fortran.template operator()<std::int32_t, std::int64_t, Group::fortran_logical>(
        mpi.fortran_logical);
    if (row == nullptr || (*row)[which] == nullptr) return false;
    // A library may leave out what its compiler lacks.
    if (type_size(type) != static_cast<std::int64_t>(element_bytes)) return false;
    void* context = nullptr;
    if (type == mpi.fortran_logical) {
        context = element_bytes == sizeof(std::int32_t) ? static_cast<void*>(truth_of<std::int32_t>(type))
                                                        : truth_of<std::int64_t>(type);
        if (context == nullptr) return false;
    }
    reducer.combine = (*row)[which];
    reducer.context = context;
    reducer.element_bytes = element_bytes;
    reducer.rounds = is_float;
    return true;
}

}  // namespace thalweg
