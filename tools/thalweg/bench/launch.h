// Starts the driver once, in the lab or on this host, and brings its rows back.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "bench/columns.h"
#include "bench/results.h"

namespace thalweg::bench {

// Where to measure. hosts = 0: `ppn` ranks on this host, no lab.
struct Shape {
    std::string mpi = "mpich";
    int hosts = 4, ppn = 2, rails = 1;
    std::string rate = "100mbit";

    std::string text() const;  // "4x2"
};

struct PointPlan {
    std::uint64_t bytes = 0;
    int samples = 5, back_to_back = 0;
    bool race = false;                // by bench/race.h
    double best_seconds = 0;          // the best median of other launches, for the race; 0: none
    std::uint64_t warm_up_bytes = 0;  // of the calls that are not timed, at most; 0: as many as are timed
    int small_calls = 0;              // not 0: so many calls per column, timed one by one
    std::string pattern = {};         // of alltoallv: what the matrix is called
    std::vector<std::uint64_t> matrix = {};  // bytes from rank i to rank j at i * ranks + j
    nlohmann::json halo = {};                // of a halo exchange: the grid (bench/halo.h)
    std::set<std::string> columns = {};      // only these of the launch; none: all
};

// Everything one launch needs. All columns of a launch are interleaved.
struct Launch {
    Shape shape;
    std::string collective, phase;
    std::vector<ColumnPlan> columns;  // all with the same environment
    std::vector<PointPlan> points;
    bool force = false;  // measure although the lab says that the rates exceed its capacity
    std::vector<std::string> computes = {};  // of a nonblocking collective: kinds of computation
    double timeout_seconds = 0;              // after which the launch is ended; 0: never
};

// What all rows of a session with this shape carry: commit, date, shape, rate, and what steers Thalweg.
nlohmann::json session_context(const Shape& shape);

// The program `name` of the build, beside this one; `why` is a sentence where it is not there.
std::string program_of_build(const std::string& name, std::string& why);

// A sentence where nothing could be launched on this shape, told before anything is predicted; else empty.
std::string why_not_measurable(const Shape& shape);

// In a child of `parent`, before it becomes its program: it is asked to end when the parent is gone, however
// that came about, so that a bench that was killed leaves no lab behind.
void end_with(pid_t parent);

// `thalweg lab run` on this shape, up to where further options, "--" and the program follow.
std::vector<std::string> lab_run(const Shape& shape);

// Waits for a child of this process that launches something; its exit status as a shell would say it. From
// now on a signal that would end this program ends such a child instead.
int await_launched(pid_t child);
// Whether a signal has ended the latest launch before its time.
bool interrupted();
// If so, ends this program by that signal. To be called where all rows are recorded; the next launch does.
void end_if_interrupted();

// False with one sentence in `why`; rows that were complete before a failure or an interrupt are kept.
bool run_launch(const Launch& launch, std::vector<Row>& rows, std::string& why);

}  // namespace thalweg::bench
