#include <cstring>

#include "driver/cases.h"
#include "driver/pattern.h"

namespace thalweg::bench {
namespace {

std::uint64_t pattern_of(std::uint64_t seed, int rank) {
    return seed * 4099 + static_cast<std::uint64_t>(rank);
}

// This rank's block, then those of all.
std::size_t memory(std::size_t bytes, int size) { return bytes * static_cast<std::size_t>(size + 1); }

void prepare(const Buffers& buffers, int rank, int size, int, std::uint64_t seed) {
    fill_pattern(buffers.data, buffers.bytes, pattern_of(seed, rank));
    std::memset(buffers.data + buffers.bytes, 0xa5, buffers.bytes * static_cast<std::size_t>(size));
}

int call(const Buffers& buffers, int, MPI_Comm comm, bool native) {
    const int count = static_cast<int>(buffers.bytes);
    unsigned char* const all = buffers.data + buffers.bytes;
    return native ? PMPI_Allgather(buffers.data, count, MPI_BYTE, all, count, MPI_BYTE, comm)
                  : MPI_Allgather(buffers.data, count, MPI_BYTE, all, count, MPI_BYTE, comm);
}

std::uint64_t check(const Buffers& buffers, int, int size, int, std::uint64_t seed) {
    std::uint64_t wrong = 0;
    for (int rank = 0; rank < size; ++rank)
        wrong += count_wrong(buffers.data + buffers.bytes * static_cast<std::size_t>(rank + 1), buffers.bytes,
                             pattern_of(seed, rank));
    return wrong;
}

}  // namespace

extern const Case allgather_case;
const Case allgather_case{"allgather", memory, prepare, call, check};

}  // namespace thalweg::bench
