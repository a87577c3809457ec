// Memory for the packed form of data that does not lie in host memory in one run: one piece of it, and one
// element of a datatype that only MPI can pack. Its address space is reserved when a communicator is set up,
// where the ranks can still agree to do without; pages come with use. So a rank never has to decline a call
// because it alone lacks memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/status.h"

namespace thalweg {

class Staging {
  public:
    Staging() = default;
    ~Staging();
    Staging(const Staging&) = delete;
    Staging& operator=(const Staging&) = delete;

    // Makes room for `bytes` of each. Errors: out_of_memory.
    Status reserve(std::size_t bytes);
    std::size_t room_bytes() const { return room_bytes_; }
    // The memory, of which the caller is going to use the first `bytes`, at most room_bytes().
    std::byte* piece(std::size_t bytes) { return use(0, bytes); }
    std::byte* element(std::size_t bytes) { return use(1, bytes); }

    // Pages that may have been touched since they were last given up, in bytes; when, by use_clock().
    std::size_t resident_bytes() const { return touched_[0] + touched_[1]; }
    std::uint64_t last_use() const { return last_use_; }
    // Their content is lost, the address space stays.
    void give_up_pages();

  private:
    std::byte* use(int which, std::size_t bytes);

    std::byte* data_ = nullptr;  // two times room_bytes_
    std::size_t room_bytes_ = 0;
    std::size_t touched_[2] = {0, 0};
    std::uint64_t last_use_ = 0;
};

}  // namespace thalweg
