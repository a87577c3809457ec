#include <cstring>

#include "driver/nonblocking.h"
#include "driver/pattern.h"

namespace thalweg::bench {
namespace {

// Sums of doubles whose order cannot show: small whole numbers, which add up exactly.
double value_of(std::uint64_t seed, int rank, std::size_t index) {
    const std::uint64_t word = pattern_word(seed * 4099 + static_cast<std::uint64_t>(rank), index);
    return static_cast<double>(word >> 44);
}

int count_of(const Exchange& exchange) { return static_cast<int>(exchange.bytes / sizeof(double)); }

void prepare(Exchange& exchange, std::uint64_t seed) {
    if (exchange.bytes % sizeof(double) != 0) die("an allreduce is measured in multiples of 8 bytes");
    exchange.in.resize(exchange.bytes);
    exchange.out.assign(exchange.bytes, 0xa5);
    for (std::size_t i = 0; i < exchange.bytes / sizeof(double); ++i) {
        const double value = value_of(seed, exchange.rank, i);
        std::memcpy(exchange.in.data() + i * sizeof value, &value, sizeof value);
    }
}

int start(Exchange& exchange, MPI_Comm comm, MPI_Request* request, bool native) {
    return native ? PMPI_Iallreduce(exchange.in.data(), exchange.out.data(), count_of(exchange), MPI_DOUBLE,
                                    MPI_SUM, comm, request)
                  : MPI_Iallreduce(exchange.in.data(), exchange.out.data(), count_of(exchange), MPI_DOUBLE,
                                   MPI_SUM, comm, request);
}

int block(Exchange& exchange, MPI_Comm comm) {
    return PMPI_Allreduce(exchange.in.data(), exchange.out.data(), count_of(exchange), MPI_DOUBLE, MPI_SUM,
                          comm);
}

std::uint64_t check(const Exchange& exchange, std::uint64_t seed) {
    std::uint64_t wrong = 0;
    for (std::size_t i = 0; i < exchange.bytes / sizeof(double); ++i) {
        double value = 0, sum = 0;
        for (int rank = 0; rank < exchange.size; ++rank) sum += value_of(seed, rank, i);
        std::memcpy(&value, exchange.out.data() + i * sizeof value, sizeof value);
        wrong += value != sum;
    }
    return wrong;
}

// Around the ring: reduce-scatter and allgather.
StreamBytes stream(const Exchange& exchange) {
    const auto size = static_cast<std::size_t>(exchange.size);
    const std::size_t bytes = 2 * exchange.bytes * (size - 1) / size;
    return {bytes, bytes};
}

}  // namespace

extern const NonblockingCase iallreduce_case;
const NonblockingCase iallreduce_case{"iallreduce", "allreduce", prepare, start, block, check, stream};

}  // namespace thalweg::bench
