// Messages of nothing between peers: "I am ready", "I have it". Persistent requests, so that an epoch makes
// none; a message that comes before its receive was armed again waits in the MPI library.
#pragma once

#include <mpi.h>

#include <span>
#include <vector>

#include "transport/mpi/host.h"

namespace thalweg {

class Signals {
  public:
    explicit Signals(const Host& mpi) : mpi_(mpi) {}
    ~Signals();  // pre: idle
    Signals(const Signals&) = delete;
    Signals& operator=(const Signals&) = delete;

    // Requests to and from these peers, by position. Local. An MPI error code, like all of these.
    int make(MPI_Comm comm, int send_tag, std::span<const int> to, int receive_tag,
             std::span<const int> from);

    // Ready to hear each peer of `from` once. Pre: all were heard, or it is the first time.
    int listen();
    // To `to[i]`. Pre: the one before was sent.
    int send(int i);
    int send_all();

    // Positions in `from` that were heard since the last call; valid until the next one. Empty: none, or all
    // were heard before. blocks: waits for one where any is missing.
    int hear(bool blocks, std::span<const int>& heard);
    bool heard_all() const { return missing_ == 0; }
    // Whether everything that was sent has left; blocks: until it has.
    int flush(bool blocks, bool& done);

  private:
    const Host& mpi_;
    std::vector<MPI_Request> sends_, receives_;
    std::vector<int> heard_;
    std::size_t missing_ = 0;
};

}  // namespace thalweg
