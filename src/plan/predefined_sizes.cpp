#include "plan/predefined_sizes.h"

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "plan/datatype.h"
#include "transport/mpi/host.h"

namespace thalweg {

namespace {

// Never changes once it is filled.
constinit ThalwegTypeSizes sizes{};

std::intptr_t handle_of(MPI_Datatype type) {
    std::intptr_t handle = 0;
    std::memcpy(&handle, &type, sizeof type);
    return handle;
}

void keep(ThalwegTypeSizes& table, MPI_Datatype type) {
    const std::intptr_t handle = handle_of(type);
    if (handle == 0 || type == host()->datatype_null) return;
    const std::int64_t bytes = type_size(type);
    if (bytes <= 0) return;
    ThalwegTypeSize& place = table.of[thalweg_place_of(table.shift, handle)];
    if (place.bytes == 0) place = {handle, static_cast<std::uint64_t>(bytes)};
}

// With handles that far apart. How many have a place; others share one with a type before them.
int fill(ThalwegTypeSizes& table, unsigned shift) {
    const Host& mpi = *host();
    table = {};
    table.shift = shift;
    table.byte = handle_of(mpi.byte);
    table.real = handle_of(mpi.double_);
    const auto look_at = [&](auto handle) {
        if constexpr (std::is_same_v<decltype(handle), MPI_Datatype>) keep(table, handle);
    };
#define HOST_HANDLE(type, field, constant, symbol) look_at(mpi.field);
#define HOST_TYPE(field, constant, symbol)  // not every library has them
#include "transport/mpi/host_handles.def"
#undef HOST_TYPE
#undef HOST_HANDLE
    int kept = 0;
    for (const ThalwegTypeSize& place : table.of) kept += place.bytes != 0;
    return kept;
}

}  // namespace

const ThalwegTypeSizes* predefined_sizes() {
    if (sizes_in_handles.mask != 0) return nullptr;
    static bool filled = false;
    if (std::exchange(filled, true)) return &sizes;
    unsigned best = 0;
    int most = -1;
    for (unsigned shift = 0; shift < 16; ++shift)
        if (const int kept = fill(sizes, shift); kept > most) most = kept, best = shift;
    fill(sizes, best);
    return &sizes;
}

}  // namespace thalweg
