#include "plan/staging.h"

#include <sys/mman.h>

#include <algorithm>

#include "plan/plan_cache.h"

namespace thalweg {

Staging::~Staging() {
    if (data_ != nullptr) munmap(data_, 2 * room_bytes_);
}

Status Staging::reserve(std::size_t bytes) {
    if (room_bytes_ >= bytes) return Status::ok;
    void* const data =
        mmap(nullptr, 2 * bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data == MAP_FAILED) return Status::out_of_memory;
    if (data_ != nullptr) munmap(data_, 2 * room_bytes_);
    data_ = static_cast<std::byte*>(data);
    room_bytes_ = bytes;
    touched_[0] = touched_[1] = 0;
    return Status::ok;
}

std::byte* Staging::use(int which, std::size_t bytes) {
    touched_[which] = std::max(touched_[which], bytes);
    last_use_ = use_clock();
    return data_ + static_cast<std::size_t>(which) * room_bytes_;
}

void Staging::give_up_pages() {
    if (data_ != nullptr) madvise(data_, 2 * room_bytes_, MADV_DONTNEED);
    touched_[0] = touched_[1] = 0;
}

}  // namespace thalweg
