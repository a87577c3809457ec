// Makes the native MPI use an algorithm of its own choice list, through its tool interface (MPI_T), within
// one launch, so that all of them can be interleaved with ours.
#pragma once

#include <mpi.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace thalweg::bench {

// One control variable of the MPI library and the value to write, e.g. {"coll_tuned_bcast_algorithm", 7}.
struct Control {
    std::string variable;
    long value = 0;
};

class NativeControls {
  public:
    NativeControls();
    ~NativeControls();

    // Whether this library has the variable, and takes a value for it now: tried with the one that it has.
    // Else `why` is one sentence.
    bool takes(const std::string& variable, std::string& why);
    // Writes all of `wanted` and puts every variable written before, but not wanted now, back to its first
    // value. False with one sentence in `why` when a variable does not exist or cannot be written.
    bool apply(const std::vector<Control>& wanted, std::string& why);

  private:
    bool knows(const std::string& variable) const;
    // No `wanted`: what it has.
    bool write(const std::string& variable, std::optional<long> wanted, bool remember, std::string& why);
    std::map<std::string, long> first_values_;
    bool ready_ = false;
};

}  // namespace thalweg::bench
