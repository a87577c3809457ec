#include "interpose/inherited.h"

#include <cstdlib>
#include <new>
#include <string>
#include <string_view>

namespace thalweg {

namespace {

constexpr const char* preload = "LD_PRELOAD";
// Written by `thalweg run` (tools/thalweg/launch.cpp): files, separated by colons.
constexpr const char* preloaded_mpi = "THALWEG_PRELOADED_MPI";

// The first part of `rest`, which loses it.
std::string_view next_part(std::string_view& rest, const char* separators) {
    const std::size_t end = rest.find_first_of(separators);
    const std::string_view part = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    return part;
}

bool lists(std::string_view files, std::string_view file) {
    while (!files.empty())
        if (next_part(files, ":") == file) return true;
    return false;
}

}  // namespace

// Without memory they inherit it. Variables are set and not removed: other threads may be reading the others.
void keep_mpi_to_this_program() try {
    const char* const mpi = std::getenv(preloaded_mpi);
    const char* const all = std::getenv(preload);
    if (mpi == nullptr || *mpi == '\0' || all == nullptr) return;
    std::string kept;
    for (std::string_view rest = all; !rest.empty();) {
        const std::string_view file = next_part(rest, ": ");
        if (file.empty() || lists(mpi, file)) continue;
        if (!kept.empty()) kept += ':';
        kept += file;
    }
    setenv(preload, kept.c_str(), 1);
    setenv(preloaded_mpi, "", 1);
} catch (const std::bad_alloc&) {
}

}  // namespace thalweg
