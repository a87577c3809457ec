// `thalweg bench apps --app amr`: the exchange of the refined mesh (apps/amr), each of its versions native
// and with Thalweg, against the fastest that sends and receives, and against what its stages need one after
// the other.
#pragma once

#include <string>
#include <vector>

#include "bench/apps.h"
#include "bench/results.h"
#include "bench/statistics.h"

namespace thalweg::bench {

inline constexpr const char* amr_app = "amr";
inline constexpr const char* amr_phase = "amr";

// Two meshes, with faces of 4 and of 16 KiB: messages of some KiB, and most of 64 KiB and more.
std::vector<AppCase> amr_cases();

// The rows of a launch, from the lines that the program wrote: a row per version, whose seconds are the
// communication of its runs, whose bytes those of the largest message between hosts, and whose context holds
// the library alone. False with one sentence in `why`.
bool amr_rows(const std::string& text, const std::string& side, int round, std::vector<Row>& rows,
              std::string& why);

// Seconds of all exchanges of a run, stage by stage: what leaves or enters the host with the most of it at
// the link's rate, and a latency for each stage in which something crosses. The shaper's bucket, which is
// full again after the work of a step, is taken off once in each exchange. 0 without a lab.
double amr_limit_seconds(const Row& row);

// One way of the program on one mesh. Seconds of communication, by run.
struct AmrVersion {
    std::string name;
    std::vector<double> native, again, ours;
    std::vector<double> native_made, ours_made;  // of that: communicators, requests and plans
};

// One mesh on one shape under one MPI: the rounds with the newest parameters.
struct AmrLine {
    std::string mpi, shape, rate;
    nlohmann::json parameters;
    std::vector<AmrVersion> versions;  // in the order of their rows
    int rounds = 0;
    std::uint64_t wrong = 0;        // versions with a wrong result
    int exchanges = 0, meshes = 0;  // of a run
    double link_bytes = 0;          // of an exchange, over the busiest link, on average
    double messages = 0;            // between hosts, of an exchange, on average
    double message_bytes = 0;       // of one of these, on average
    double largest_bytes = 0;       // of any
    double limit_seconds = 0;       // of a run, the median over the launches; 0: without a lab
    double per_exchange(double run_seconds) const { return exchanges > 0 ? run_seconds / exchanges : 0; }
    std::uint64_t face_bytes() const;  // between two blocks of one level
};
std::vector<AmrLine> summarize_amr(const std::vector<Row>& rows);

// The version whose sends and receives took the least natively; null where none was measured. Of `line`.
const AmrVersion* fastest_sends(const AmrLine& line);
// The fastest neighbourhood collective with Thalweg; null where none was measured. Of `line`.
const AmrVersion* fastest_of_ours(const AmrLine& line);

// A version with Thalweg against the fastest that sends and receives natively.
struct AmrOutcome {
    double seconds = 0;   // of a run, the median
    Ratio of_sends;       // its time over theirs
    double saved = 0;     // of theirs
    double most = 0;      // of theirs, that could be saved: 1 - limit / theirs
    double of_limit = 0;  // 0: there is none

    static constexpr double saved_target = 0.28;  // the paper's, of miniAMR
    static constexpr double limit_target = 1.10;  // or so near to the limit, where that leaves less room
    bool meets() const { return saved >= saved_target || (of_limit > 0 && of_limit <= limit_target); }
};
AmrOutcome outcome(const AmrLine& line, const AmrVersion& version);

// "4 KiB".
std::string amr_faces_text(const AmrLine& line);
// A row per mesh with the verdict; and every version on both sides. Empty where there are no rows.
std::string format_amr_figures(const std::vector<AmrLine>& lines, bool markdown);
std::string format_amr_versions(const std::vector<AmrLine>& lines, bool markdown);

// The section of docs/measurements.md; empty where there are no rows. provenance: where these rows come from.
std::string amr_section(const std::vector<Row>& rows, const std::string& provenance);

}  // namespace thalweg::bench
