#include "plan/channel_pool.h"

#include <bit>

#include "plan/private_comm.h"
#include "plan/set_up.h"
#include "transport/mpi/host.h"
#include "transport/mpi/mpi_transport.h"

namespace thalweg {

static_assert(MpiTransport::most_channels <= 64, "one bit per channel");

bool ChannelPool::open() {
    if (!make_private(host()->comm_world, comm_)) return false;
    capacity_ = MpiTransport::channels_on(comm_);
    in_use_.store(capacity_ >= 64 ? 0 : ~std::uint64_t{0} << capacity_, std::memory_order_release);
    return true;
}

void ChannelPool::close() {
    if (!is_open()) return;
    const Host& mpi = *host();
    const std::uint64_t kept = kept_.load(std::memory_order_relaxed);
    std::uint64_t any = 1;
    if (combine_words(&kept, &any, 1, mpi.max, comm_) != MPI_SUCCESS) any = 1;
    abandon();
    if (any == 0) mpi.Comm_free(&comm_);
}

// Freeing it is collective.
void ChannelPool::abandon() {
    in_use_.store(~std::uint64_t{0}, std::memory_order_release);
    capacity_ = 0;
}

int ChannelPool::pick(std::uint64_t in_use_anywhere, std::uint64_t seed) {
    std::uint64_t free = ~in_use_anywhere;
    if (free == 0) return -1;
    for (std::uint64_t skip = seed % static_cast<unsigned>(std::popcount(free)); skip != 0; --skip)
        free &= free - 1;
    return std::countr_zero(free);
}

std::uint64_t ChannelPool::next_seed(int world_rank) {
    const std::uint64_t number = set_ups_.fetch_add(1, std::memory_order_relaxed);
    std::uint64_t x = (number << 32 | static_cast<std::uint32_t>(world_rank)) * 0x9e3779b97f4a7c15u;
    x ^= x >> 32;
    return x * 0xd6e8feb86659fd93u >> 16;
}

bool ChannelPool::claim(int number) {
    const std::uint64_t bit = std::uint64_t{1} << number;
    return (in_use_.fetch_or(bit, std::memory_order_acq_rel) & bit) == 0;
}

void ChannelPool::give_back(int number) {
    in_use_.fetch_and(~(std::uint64_t{1} << number), std::memory_order_acq_rel);
}

}  // namespace thalweg
