#include <cstring>

#include "driver/cases.h"
#include "driver/sums.h"

namespace thalweg::bench {
namespace {

// The own vector, then the result.
std::size_t memory(std::size_t bytes, int) { return 2 * bytes; }

void prepare(const Buffers& buffers, int rank, int, int, std::uint64_t seed) {
    fill_operands(buffers.data, buffers.bytes, rank, seed);
    std::memset(buffers.data + buffers.bytes, 0xa5, buffers.bytes);
}

int call(const Buffers& buffers, int, MPI_Comm comm, bool native) {
    const int count = static_cast<int>(buffers.bytes / sizeof(std::int64_t));
    unsigned char* const sum = buffers.data + buffers.bytes;
    return native ? PMPI_Allreduce(buffers.data, sum, count, MPI_INT64_T, MPI_SUM, comm)
                  : MPI_Allreduce(buffers.data, sum, count, MPI_INT64_T, MPI_SUM, comm);
}

std::uint64_t check(const Buffers& buffers, int, int size, int, std::uint64_t seed) {
    return count_wrong_sums(buffers.data + buffers.bytes, buffers.bytes, size, seed);
}

}  // namespace

extern const Case allreduce_case;
const Case allreduce_case{"allreduce", memory, prepare, call, check, sums_element};

}  // namespace thalweg::bench
