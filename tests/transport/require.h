// How a program of several ranks that runs over MPI itself fails: with a sentence, and the whole job.
#pragma once

#include <mpi.h>
#include <time.h>

#include <cstdio>
#include <cstdlib>

namespace thalweg::test {

[[noreturn]] inline void fail(const char* format, auto... arguments) {
    std::fprintf(stderr, format, arguments...);
    std::fprintf(stderr, "\n");
    // Launchers drop what they have not forwarded yet.
    const timespec span{0, 200'000'000};
    nanosleep(&span, nullptr);
    MPI_Abort(MPI_COMM_WORLD, 1);
    std::abort();
}

#define REQUIRE(condition, ...)              \
    do {                                     \
        if (!(condition)) fail(__VA_ARGS__); \
    } while (false)

}  // namespace thalweg::test
