// The nonblocking collectives that the driver can measure. A case is one row of cases.def and a file.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "driver/ours.h"

namespace thalweg::bench {

// One call's memory on this rank, filled and checked by the case. `bytes` is the size of the collective by
// its definition: the message, a rank's block, the vector.
struct Exchange {
    std::size_t bytes = 0;
    int rank = 0, size = 1, root = 0;
    std::vector<unsigned char> in, out;
};

// What a plain stream from each rank to the next moves in its place (driver/sockets.h): as much per link.
struct StreamBytes {
    std::size_t sent = 0, received = 0;
};

struct NonblockingCase {
    std::string_view name;
    std::string_view operation;  // as in THALWEG_<OPERATION>
    // Before the call: what this rank contributes, and poison where it receives. `seed` differs for every
    // call.
    void (*prepare)(Exchange&, std::uint64_t seed);
    // `native` goes past every interposer (PMPI); otherwise the program's own MPI call.
    int (*start)(Exchange&, MPI_Comm comm, MPI_Request* request, bool native);
    // The blocking collective of the same name; native.
    int (*block)(Exchange&, MPI_Comm comm);
    // After the call: the number of wrong words on this rank.
    std::uint64_t (*check)(const Exchange&, std::uint64_t seed);
    StreamBytes (*stream)(const Exchange&);
    std::string_view element = {};  // of a reduction: what its vector is made of, as rows say it
};

// Null where there is none.
const NonblockingCase* find_nonblocking_case(std::string_view name);

}  // namespace thalweg::bench
