// What the programs share around their work: options, one sentence for bad input, the loop of runs.
#pragma once

#include <mpi.h>

#include <functional>
#include <stdexcept>
#include <string>

#include "common/hidden_allgather.h"
#include "common/options.h"
#include "common/report.h"

namespace thalweg::apps {

// Bad input: known to all ranks alike, and told by rank 0.
struct BadInput : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct Job {
    MPI_Comm comm = MPI_COMM_NULL;  // the program's own
    int rank = 0, ranks = 1;

    // Collective. Throws BadInput on all ranks where `why` of rank 0 is not empty.
    void agree(const std::string& why) const;
};

// Runs every version `warm_up` + `repeat` times, in turns, and adds the report of it to the file that was
// asked for. one_run(version, books) is timed from a barrier to its end; check() then says what is wrong with
// its result in one sentence, empty if nothing, the same on all ranks. Collective. Returns whether every run,
// those to warm up included, was right.
bool run_versions(const Job& job, const CommonOptions& options, std::size_t stages, Report report,
                  const std::function<void(Version, Books&)>& one_run,
                  const std::function<std::string()>& check);

// The whole of main: MPI_Init, options, work, MPI_Finalize. work returns whether all was right. Exit status:
// 0 right, 1 wrong, 2 bad input.
int run_program(int argc, char** argv, CommandLine& command_line, CommonOptions& options,
                const std::function<bool(const Job&)>& work);

}  // namespace thalweg::apps
