// Who sends how many bytes to whom in an alltoallv: a name and a size make a matrix, the same everywhere.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace thalweg::apps {

// For --help: the names, and what they are.
inline constexpr const char* pattern_names =
    "dense, uniform (+-10 %), powerlaw, banded, block, one_to_many, or a Matrix Market file, FILE.mtx";

// Bytes from rank i to rank j at i * ranks + j.
//
//   dense        `bytes` between any two ranks, the own block included
//   uniform      the same, each message 10 % more or less at random
//   powerlaw     a rank's k-th largest message is 1/k of its largest, in random order; `bytes` on average
//   banded       `bytes` to the ranks at most max(1, ranks / 8) away, not round the corner: a halo
//   block        `bytes` between the ranks of each of two to four groups, dealt out like cards, so that
//                they do not fall together with hosts
//   one_to_many  `bytes` from rank 0 to every other
//   FILE.mtx     a product with that sparse matrix, rows and vector cut into even blocks: each element of the
//                vector that a rank's rows need travels once, `bytes` long
//
// False with one sentence in `why`.
bool make_pattern(const std::string& name, int ranks, std::uint64_t bytes, std::vector<std::uint64_t>& matrix,
                  std::string& why);

}  // namespace thalweg::apps
