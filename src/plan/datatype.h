// How the bytes of an MPI datatype lie in memory, found once per type and kept as an attribute of it.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>

#include "layout/layout.h"

namespace thalweg {

struct TypeShape {
    bool uncommitted = false;  // the native library refuses it, and nothing else here is known but the size
    bool opaque = false;       // only MPI can tell where the bytes are: PMPI_Pack and PMPI_Unpack
    Layout layout;             // when not opaque
    std::uint64_t size = 0;    // bytes of data in one element
    std::int64_t extent = 0;   // distance of two elements, in bytes
    // Of a type that was made, while it lives: no other's in this process, unlike its handle, which a later
    // type may get. `predefined`: the handle says it; 0: nothing does.
    std::uint64_t identity = 0;
    static constexpr std::uint64_t predefined = 1;
};

// Types with more runs than this in one element are opaque where only a list can name them: it would cost
// more memory than it is worth. Loops in one another (vectors, subarrays) have any number.
inline constexpr std::uint64_t most_runs = 1u << 17;

// Bytes of data in one element, or a negative number for a handle that the native library will refuse.
std::int64_t type_size(MPI_Datatype type);

// The shape of `type`: in `storage` for predefined types, else in an attribute of the type, made at the first
// call. Valid until the type is freed. Where there is no memory to find it, the type is opaque for this call.
const TypeShape& shape_of(MPI_Datatype type, TypeShape& storage);

// What the attribute of a type points to, which goes with the type.
using KeptShape = std::shared_ptr<const TypeShape>;

// `twin` has the same bytes as `type`, one element for one, and is nobody's but ours: what is known of `type`
// goes for it, too, and is not found out again. Without memory, or where nothing is known, it is.
void share_shape(MPI_Datatype type, MPI_Datatype twin);

}  // namespace thalweg
