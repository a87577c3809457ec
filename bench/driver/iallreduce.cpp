#include "driver/nonblocking.h"
#include "driver/sums.h"

namespace thalweg::bench {
namespace {

int count_of(const Exchange& exchange) { return static_cast<int>(exchange.bytes / sizeof(std::int64_t)); }

void prepare(Exchange& exchange, std::uint64_t seed) {
    exchange.in.resize(exchange.bytes);
    exchange.out.assign(exchange.bytes, 0xa5);
    fill_operands(exchange.in.data(), exchange.bytes, exchange.rank, seed);
}

int start(Exchange& exchange, MPI_Comm comm, MPI_Request* request, bool native) {
    return native ? PMPI_Iallreduce(exchange.in.data(), exchange.out.data(), count_of(exchange), MPI_INT64_T,
                                    MPI_SUM, comm, request)
                  : MPI_Iallreduce(exchange.in.data(), exchange.out.data(), count_of(exchange), MPI_INT64_T,
                                   MPI_SUM, comm, request);
}

int block(Exchange& exchange, MPI_Comm comm) {
    return PMPI_Allreduce(exchange.in.data(), exchange.out.data(), count_of(exchange), MPI_INT64_T, MPI_SUM,
                          comm);
}

std::uint64_t check(const Exchange& exchange, std::uint64_t seed) {
    return count_wrong_sums(exchange.out.data(), exchange.bytes, exchange.size, seed);
}

// Around the ring: reduce-scatter and allgather.
StreamBytes stream(const Exchange& exchange) {
    const auto size = static_cast<std::size_t>(exchange.size);
    const std::size_t bytes = 2 * exchange.bytes * (size - 1) / size;
    return {bytes, bytes};
}

}  // namespace

extern const NonblockingCase iallreduce_case;
const NonblockingCase iallreduce_case{"iallreduce", "allreduce", prepare, start,
                                      block,        check,       stream,  sums_element};

}  // namespace thalweg::bench
