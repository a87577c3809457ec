// How a program treats the allgather that it could hide. No MPI here.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace thalweg::apps {

enum class Style {
    blocking,  // MPI_Allgather, then the work
    waited,    // MPI_Iallgather and MPI_Wait at once, then the work: what the nonblocking call itself takes
    nonblocking,  // MPI_Iallgather, the work, MPI_Wait
    manual,       // the same, with an MPI_Test after each of `pieces` pieces of the work
};

struct Version {
    Style style = Style::blocking;
    int pieces = 1;  // of a stretch of work; 1 unless manual

    std::string name() const;  // "blocking", "manual/64"
};

// One version for each of the names ("blocking", "waited", "nonblocking", "manual"), in their order; a manual
// one for each number of pieces. False with one sentence in `why`.
bool parse_versions(const std::vector<std::string>& names, const std::vector<int>& pieces,
                    std::vector<Version>& versions, std::string& why);

}  // namespace thalweg::apps
