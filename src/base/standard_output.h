// Whether all that was printed got somewhere.
#pragma once

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

namespace thalweg {

// Flushes standard output. Returns a sentence without a full stop where it did not take everything that was
// printed since the program began (a full disk, a closed descriptor), else an empty text. Once is enough:
// what could not be written stays lost.
inline std::string standard_output_failure() {
    const bool failed_before = std::ferror(stdout) != 0;
    errno = 0;
    if (std::fflush(stdout) == 0 && !failed_before) return {};
    const std::string why = errno != 0 ? std::string(": ") + std::strerror(errno) : std::string();
    return "what it prints could not be written to standard output" + why + "; what is there is incomplete";
}

}  // namespace thalweg
