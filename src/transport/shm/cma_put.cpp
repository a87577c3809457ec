// The sender copies all of it into the receiver's memory, once the receiver has told it where that is. For a
// receiver that has other copies to make.
#include <sys/uio.h>

#include "transport/shm/protocol.h"

namespace thalweg::shm {

Status cma_write(const Transfer& transfer, std::uint64_t offset, std::size_t bytes, std::size_t& done) {
    return cma_copy(process_vm_writev, transfer, offset, bytes, done);
}

const Protocol cma_put = {
    "cma_put",
    [](const Reach& reach) { return reach.writes; },
    [](std::uint64_t, const Load&, const Load&) { return std::uint64_t{0}; },
    nullptr,
    &cma_write,
};

}  // namespace thalweg::shm
