// What the driver can measure. A case is one row of cases.def: adding a collective adds a row and a file.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace thalweg::bench {

// One call's memory. The driver owns it; a case fills and checks it. `bytes` is the size of the collective by
// its definition: the message, a rank's block, the vector.
struct Buffers {
    unsigned char* data = nullptr;
    std::size_t bytes = 0;
};

struct Case {
    std::string_view name;
    // How much memory a call of `bytes` needs on each rank.
    std::size_t (*memory)(std::size_t bytes, int size);
    // Before the call: what this rank contributes, and poison everywhere else. `seed` differs for every call.
    void (*prepare)(const Buffers&, int rank, int size, int root, std::uint64_t seed);
    // The call. `native` goes past every interposer (PMPI); otherwise the program's own MPI call.
    int (*call)(const Buffers&, int root, MPI_Comm comm, bool native);
    // After the call: the number of wrong words on this rank.
    std::uint64_t (*check)(const Buffers&, int rank, int size, int root, std::uint64_t seed);
    std::string_view element = {};  // of a reduction: what its vector is made of, as rows say it
};

const Case* find_case(std::string_view name);

}  // namespace thalweg::bench
