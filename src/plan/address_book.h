// By which addresses libucp reaches the ranks of a communicator: on each host one process has them in memory
// that the others read, so that a host of many ranks in a large job keeps them once.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "transport/mpi/rank_map.h"
#include "transport/ucx/ucx.h"

namespace thalweg {

class Topology;

class AddressBook {
  public:
    // Tells every rank of `comm` the address of every other; `places` are their processes, `topology` is the
    // communicator's, `own` what the others need to reach this rank, some 100 to 1000 bytes. Collective: one
    // small allgather, an agreement more where hosts share a book and one above 4,096 ranks, and an allgather
    // of the addresses of 4,096 ranks at a time. The answer is each rank's own: whether all went well here,
    // memory for the book included. Throws std::bad_alloc, but not where a rank has its reserve: that has
    // room for what ranks say of themselves and for 4,096 addresses on their way.
    bool exchange(MPI_Comm comm, const Topology& topology, const RankMap& places,
                  std::span<const std::byte> own);

    // Those of all ranks; it holds their memory. Pre: exchange() was true.
    UcxDirectory directory() const { return directory_; }
    // Why exchange() was false: a sentence, the book's.
    const char* why_not() const { return why_not_.c_str(); }
    // "40 processes, 5440 bytes, once per host": for reports.
    std::string description() const;

  private:
    UcxDirectory directory_;
    bool once_per_host_ = false;
    std::string why_not_;
};

}  // namespace thalweg
