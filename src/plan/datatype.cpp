#include "plan/datatype.h"

#include <new>

#include "plan/keyvals.h"
#include "transport/mpi/host.h"

namespace thalweg {

std::int64_t type_size(MPI_Datatype type) {
    const Host& mpi = *host();
    if (type == mpi.datatype_null) return -1;
    MPI_Count size = -1;
    if (mpi.Type_size_x(type, &size) != MPI_SUCCESS) return -1;
    return static_cast<std::int64_t>(size);
}

TypeShape shape_of(MPI_Datatype type) {
    const Host& mpi = *host();
    TypeShape shape;
    MPI_Count size = 0, lower = 0, extent = 0;
    mpi.Type_size_x(type, &size);
    mpi.Type_get_extent_x(type, &lower, &extent);
    shape.size = static_cast<std::uint64_t>(size);
    shape.extent = extent;
    int integers = 0, addresses = 0, types = 0, combiner = -1;
    if (mpi.Type_get_envelope(type, &integers, &addresses, &types, &combiner) == MPI_SUCCESS &&
        combiner == MPI_COMBINER_NAMED && extent == size && lower == 0)
        shape.kind = TypeShape::Kind::run;
    return shape;
}

}  // namespace thalweg
