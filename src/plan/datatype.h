// How the bytes of an MPI datatype lie in memory, found once per type and kept as an attribute of it.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>

#include "base/status.h"

namespace thalweg {

struct TypeShape {
    enum class Kind : std::uint8_t {
        run,     // one element is `size` bytes in one run, in the order of the type map
        opaque,  // only MPI can tell: PMPI_Pack and PMPI_Unpack
    };
    Kind kind = Kind::opaque;
    std::uint64_t size = 0;   // bytes of data in one element
    std::int64_t first = 0;   // where the run begins, relative to the buffer address
    std::int64_t extent = 0;  // distance of two elements

    // Whether `count` elements are one run of bytes.
    bool contiguous(std::uint64_t count) const {
        return kind == Kind::run && (count == 1 || extent == static_cast<std::int64_t>(size));
    }
};

// Bytes of data in one element, or a negative number for a handle that the native library will refuse.
std::int64_t type_size(MPI_Datatype type);

// Fills `shape`; a derived type's is looked up in, or added to, its attributes. Never fails: what cannot be
// understood is opaque.
TypeShape shape_of(MPI_Datatype type);

}  // namespace thalweg
