#include "driver/nonblocking.h"
#include "driver/pattern.h"

namespace thalweg::bench {
namespace {

std::uint64_t pattern_of(std::uint64_t seed, int rank) {
    return seed * 4099 + static_cast<std::uint64_t>(rank);
}

void prepare(Exchange& exchange, std::uint64_t seed) {
    exchange.in.resize(exchange.bytes);
    fill_pattern(exchange.in.data(), exchange.bytes, pattern_of(seed, exchange.rank));
    exchange.out.assign(exchange.bytes * static_cast<std::size_t>(exchange.size), 0xa5);
}

int start(Exchange& exchange, MPI_Comm comm, MPI_Request* request, bool native) {
    const int count = static_cast<int>(exchange.bytes);
    return native ? PMPI_Iallgather(exchange.in.data(), count, MPI_BYTE, exchange.out.data(), count, MPI_BYTE,
                                    comm, request)
                  : MPI_Iallgather(exchange.in.data(), count, MPI_BYTE, exchange.out.data(), count, MPI_BYTE,
                                   comm, request);
}

int block(Exchange& exchange, MPI_Comm comm) {
    const int count = static_cast<int>(exchange.bytes);
    return PMPI_Allgather(exchange.in.data(), count, MPI_BYTE, exchange.out.data(), count, MPI_BYTE, comm);
}

std::uint64_t check(const Exchange& exchange, std::uint64_t seed) {
    std::uint64_t wrong = 0;
    for (int rank = 0; rank < exchange.size; ++rank)
        wrong += count_wrong(exchange.out.data() + exchange.bytes * static_cast<std::size_t>(rank),
                             exchange.bytes, pattern_of(seed, rank));
    return wrong;
}

// Around the ring.
StreamBytes stream(const Exchange& exchange) {
    const std::size_t bytes = exchange.bytes * static_cast<std::size_t>(exchange.size - 1);
    return {bytes, bytes};
}

}  // namespace

extern const NonblockingCase iallgather_case;
const NonblockingCase iallgather_case{"iallgather", "allgather", prepare, start, block, check, stream};

}  // namespace thalweg::bench
