#include "plan/staging.h"

#include <sys/mman.h>

namespace thalweg {

Staging::~Staging() {
    if (data_ != nullptr) munmap(data_, bytes_);
}

Status Staging::reserve(std::size_t bytes) {
    if (data_ != nullptr && bytes_ >= bytes) return Status::ok;
    void* const data =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data == MAP_FAILED) return Status::out_of_memory;
    if (data_ != nullptr) munmap(data_, bytes_);
    data_ = data;
    bytes_ = bytes;
    return Status::ok;
}

}  // namespace thalweg
