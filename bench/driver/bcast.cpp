#include <cstring>

#include "driver/cases.h"
#include "driver/pattern.h"

namespace thalweg::bench {
namespace {

std::size_t memory(std::size_t bytes, int) { return bytes; }

void prepare(const Buffers& buffers, int rank, int, int root, std::uint64_t seed) {
    if (rank == root) {
        fill_pattern(buffers.data, buffers.bytes, seed);
    } else {
        std::memset(buffers.data, 0xa5, buffers.bytes);
    }
}

int call(const Buffers& buffers, int root, MPI_Comm comm, bool native) {
    const int count = static_cast<int>(buffers.bytes);
    return native ? PMPI_Bcast(buffers.data, count, MPI_BYTE, root, comm)
                  : MPI_Bcast(buffers.data, count, MPI_BYTE, root, comm);
}

std::uint64_t check(const Buffers& buffers, int, int, int, std::uint64_t seed) {
    return count_wrong(buffers.data, buffers.bytes, seed);
}

}  // namespace

extern const Case bcast_case;
const Case bcast_case{"bcast", memory, prepare, call, check};

}  // namespace thalweg::bench
