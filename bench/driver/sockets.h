// The reference for compute dilation: the same bytes, moved by blocking socket calls in sleeping threads.
// What this costs the computation is the kernel's own share, which no library can avoid.
//
// Each rank sends to the next and receives from the one before, over a TCP connection of its own between
// their hosts' first rails: one thread sends, one receives, both asleep in the kernel otherwise.
#pragma once

#include <mpi.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace thalweg::bench {

class SocketMover {
  public:
    explicit SocketMover(MPI_Comm comm);  // collective
    ~SocketMover();
    SocketMover(const SocketMover&) = delete;
    SocketMover& operator=(const SocketMover&) = delete;

    // What the next start() moves: sent to the next rank, received from the one before. `seed` is the same on
    // all ranks and new for every start.
    void prepare(std::size_t send_bytes, std::size_t receive_bytes, std::uint64_t seed);
    void start();
    void wait();
    // Wrong words received, after wait().
    std::uint64_t check() const;

  private:
    void connect_ring(MPI_Comm comm);
    void serve(bool sends);

    int rank_ = 0, size_ = 1;
    int to_next_ = -1, from_previous_ = -1;
    std::vector<unsigned char> outgoing_, incoming_;
    std::uint64_t seed_ = 0;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::uint64_t started_ = 0, sent_ = 0, received_ = 0;  // rounds
    bool ends_ = false;
    std::thread sender_, receiver_;
};

}  // namespace thalweg::bench
