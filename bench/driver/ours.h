// What the driver's files share: the clock, Thalweg's own functions, how to give up, and how to write a
// result.
#pragma once

#include <dlfcn.h>
#include <mpi.h>
#include <time.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ostream>
#include <string>

#include "thalweg/thalweg.h"

namespace thalweg::bench {

// Nanoseconds of a clock that all processes of this machine share.
inline std::int64_t now_ns() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<std::int64_t>(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

// What became of a column's last call; of native ones nothing is known, and all is empty.
struct Ran {
    std::string algorithm, reason;   // what ran, empty where the call was left to the MPI; why
    std::string transport, waiting;  // what carried it, and how its threads waited (thalweg.h)
};

// Our functions, when the preload object is here.
struct Ours {
    decltype(&thalweg_set_option) set_option = nullptr;
    decltype(&thalweg_get_last_call) last_call = nullptr;
    Ours() {
        set_option = reinterpret_cast<decltype(set_option)>(dlsym(RTLD_DEFAULT, "thalweg_set_option"));
        last_call = reinterpret_cast<decltype(last_call)>(dlsym(RTLD_DEFAULT, "thalweg_get_last_call"));
    }
    // What became of the calling thread's last call, if one has been looked at since this was asked last;
    // unchanged where nothing is known of it.
    void tell(Ran& ran) {
        thalweg_last_call last{};
        if (last_call == nullptr) return;
        const int code = last_call(&last, sizeof last);
        if (code == THALWEG_NOT_FOUND) return;
        if (code == THALWEG_OK && last.number == looked_at_) {
            ran = {{}, unseen, {}, {}};
            return;
        }
        looked_at_ = last.number;
        ran = {last.algorithm, last.reason, last.transport, last.waits};
    }
    // As the reasons of calls that nobody looks at end, or go on.
    static constexpr const char* unseen = "handed on unseen";

  private:
    std::uint64_t looked_at_ = 0;
};

// Ends the whole job.
[[noreturn]] inline void die(const std::string& why) {
    std::fprintf(stderr, "thalweg bench: %s\n", why.c_str());
    MPI_Abort(MPI_COMM_WORLD, 2);
    std::abort();
}

// A row of the results, of rank 0. Where it cannot be written whatever follows would be measured in vain.
inline void write_row(std::ostream& out, const std::string& row) {
    if (!(out << row << std::endl))
        die("a result could not be written: is there room in the folder for temporary files (TMPDIR)?");
}

}  // namespace thalweg::bench
