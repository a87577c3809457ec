// Both copy: the receiver the first part, the sender the rest, at the same time. The parts are such that both
// end together, given what each has to copy before.
#include <algorithm>

#include "transport/shm/protocol.h"

namespace thalweg::shm {
namespace {

constexpr std::uint64_t page_bytes = 4096;

std::uint64_t even_share(std::uint64_t bytes, const Load& receiver, const Load& sender) {
    // receiver + share = sender + (bytes - share)
    const std::uint64_t total = bytes + sender.copy_bytes;
    if (total <= receiver.copy_bytes) return 0;
    const std::uint64_t share = (total - receiver.copy_bytes) / 2;
    return std::min(bytes, share / page_bytes * page_bytes);
}

}  // namespace

const Protocol coop = {
    "coop",     [](const Reach& reach) { return reach.reads && reach.writes; }, &even_share, &cma_read,
    &cma_write,
};

}  // namespace thalweg::shm
