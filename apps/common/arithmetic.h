// What overlap can win and what it won: the arithmetic behind the tables. No MPI here.
#pragma once

#include <string>
#include <vector>

namespace thalweg::apps {

// One run of a program. Seconds; total: of the last rank, from a barrier to its end; all others are means
// over ranks. A *stage* is one allgather and the work that may go beside it, added up over the run.
struct Sample {
    double total = 0;
    double communication = 0;     // inside MPI calls
    double compute = 0;           // the program's own work, sleeps included
    double visible = 0;           // of communication: inside the calls of the allgathers that could be hidden
    std::vector<double> gathers;  // by stage, of `visible`
    std::vector<double> windows;  // by stage, of `compute`: the work that may go beside
};

// The runs of one version of the program.
struct Series {
    std::string version;  // Version::name()
    std::vector<Sample> samples;
    std::string wrong;  // what the check of a run found, in one sentence; empty: every run was right

    double median_of(double Sample::*member) const;
    double median_gather(std::size_t stage) const;
    double median_window(std::size_t stage) const;
};

// The communication that can be hidden: stage by stage the lesser of the allgather and the work beside it.
// An allgather that was made in one piece where the work is in several is taken in equal parts.
double hideable_seconds(const std::vector<double>& gathers, const std::vector<double>& windows);

// A version held against the blocking one and against its own allgather.
struct Comparison {
    bool possible = false;         // there is a blocking version to compare with
    double saved = 0;              // blocking total - total, seconds; negative: slower
    double ceiling = 0;            // what overlap alone could save of the blocking version, seconds
    double blocking_total = 0;     // seconds
    bool measured_hiding = false;  // there is a waited version, and something could be hidden
    double hidden = 0;             // waited total - total, seconds
    double hideable = 0;           // what of the nonblocking allgather could be hidden, seconds
};

// `series` is one of `all`, which ran in turns.
Comparison compare(const Series& series, const std::vector<Series>& all);

double median(std::vector<double> values);

}  // namespace thalweg::apps
