// What all measurements of one launch share: its ranks, their clock, how they start together, and how a
// column is made effective.
#pragma once

#include <mpi.h>

#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "driver/config.h"
#include "driver/link_counters.h"
#include "driver/native_controls.h"
#include "driver/ours.h"

namespace thalweg::bench {

inline double now() { return 1e-9 * static_cast<double>(now_ns()); }

class Session {
  public:
    static constexpr double late_seconds = 5e-4;  // a rank that starts later than this spoils its sample

    Session();  // collective over MPI_COMM_WORLD
    ~Session();
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

    // The first line of the results: the library, the ranks, and the lab's and our settings. On rank 0.
    void describe(std::ostream& out) const;

    // Takes the native columns out whose control variables this library lacks, as an older one
    // may; says so on rank 0.
    void leave_out_unknown(Config& config);

    // A barrier. Where ranks share cores those that came early nap: if they polled, they would keep the core
    // from a rank that is still in the measured call, or learn of an agreed instant after it has passed.
    void meet();
    // Collective: an instant of the shared clock, in seconds, at which all ranks start. Pass it to await().
    double agree_on_start();
    // The latest of those instants, the same on all ranks; 0 before the first.
    double latest_start() const { return latest_start_; }
    // Sleeps until the instant; awake where each rank has a core. Without a shared clock a barrier takes the
    // place of the instant.
    void await(double instant);
    static void sleep_until(double instant);

    // Of one call, equal on all ranks.
    struct Timed {
        double seconds = 0;  // from the agreed instant to the last rank's return
        bool late = false;   // a rank began more than late_seconds after that instant
    };
    // Collective: runs it on all ranks from an agreed instant on, and returns when it has ended on all.
    // Without a shared clock each rank's time counts from its own start. Ends the job where `what` returns an
    // error of MPI.
    Timed time(const std::function<int()>& what);

    // Makes the column's choice effective for the next calls. True when our setting changed: the next call of
    // ours decides and plans anew, which is not its usual cost. `operation` as in THALWEG_<OPERATION>.
    bool select(const Column& column, const std::string& operation);
    // The same where this Thalweg may not know the choice: false, and a sentence in `why`. `changed`: what
    // select() returns.
    bool offer(const Column& column, const std::string& operation, bool& changed, std::string& why);

    // The process's exit status for so many wrong words; says them on rank 0.
    int status_of(std::uint64_t wrong_words) const;

    int rank = 0, size = 1, local_rank = 0, hosts = 1;
    std::vector<int> host_of;  // by rank, counted from 0 in the order of their lowest ranks
    bool shared_clock = false;
    bool spins = false;                // each rank has a core of its own
    MPI_Comm control = MPI_COMM_NULL;  // the driver's own traffic
    Ours ours;
    LinkReader links;

  private:
    bool polls() const;  // for others; without a shared clock a nap would be part of what is measured

    NativeControls controls_;
    double latest_start_ = 0;
    std::optional<std::string> selected_;  // the option of ours in effect
    std::string inside_;                   // THALWEG_INSIDE as a column set it; empty: as the launch has it
};

}  // namespace thalweg::bench
