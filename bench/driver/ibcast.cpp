#include "driver/nonblocking.h"
#include "driver/pattern.h"

namespace thalweg::bench {
namespace {

void prepare(Exchange& exchange, std::uint64_t seed) {
    exchange.out.assign(exchange.bytes, 0xa5);
    if (exchange.rank == exchange.root) fill_pattern(exchange.out.data(), exchange.bytes, seed);
}

int start(Exchange& exchange, MPI_Comm comm, MPI_Request* request, bool native) {
    const int count = static_cast<int>(exchange.bytes);
    return native ? PMPI_Ibcast(exchange.out.data(), count, MPI_BYTE, exchange.root, comm, request)
                  : MPI_Ibcast(exchange.out.data(), count, MPI_BYTE, exchange.root, comm, request);
}

int block(Exchange& exchange, MPI_Comm comm) {
    return PMPI_Bcast(exchange.out.data(), static_cast<int>(exchange.bytes), MPI_BYTE, exchange.root, comm);
}

std::uint64_t check(const Exchange& exchange, std::uint64_t seed) {
    return count_wrong(exchange.out.data(), exchange.bytes, seed);
}

// Along the chain that starts at the root.
StreamBytes stream(const Exchange& exchange) {
    const int place = (exchange.rank - exchange.root + exchange.size) % exchange.size;
    return {place + 1 < exchange.size ? exchange.bytes : 0, place > 0 ? exchange.bytes : 0};
}

}  // namespace

extern const NonblockingCase ibcast_case;
const NonblockingCase ibcast_case{"ibcast", "bcast", prepare, start, block, check, stream};

}  // namespace thalweg::bench
