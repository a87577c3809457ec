// The receiver copies all of it out of the sender's memory. One copy, one message back; goes on when the
// receiver comes by, whatever the sender does.
#include <sys/uio.h>

#include "transport/shm/protocol.h"

namespace thalweg::shm {

Status cma_read(const Transfer& transfer, std::uint64_t offset, std::size_t bytes, std::size_t& done) {
    return cma_copy(process_vm_readv, transfer, offset, bytes, done);
}

const Protocol cma_get = {
    "cma_get",
    [](const Reach& reach) { return reach.reads; },
    [](std::uint64_t bytes, const Load&, const Load&) { return bytes; },
    &cma_read,
    nullptr,
};

}  // namespace thalweg::shm
