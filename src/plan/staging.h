// Memory for the packed form of data that does not lie in host memory in one run. Address space for one piece
// is reserved when a communicator is set up, where the ranks can still agree to do without; pages come with
// use. So a rank never has to decline a call because it alone lacks memory.
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

    // Errors: out_of_memory.
    Status reserve(std::size_t bytes);
    void* data() const { return data_; }
    std::size_t bytes() const { return bytes_; }

  private:
    void* data_ = nullptr;
    std::size_t bytes_ = 0;
};

}  // namespace thalweg
