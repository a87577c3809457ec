// What all measurements of one launch share: its ranks, their clock, how they start together, and how a
// column is made effective.
#pragma once

#include <mpi.h>

#include <optional>
#include <ostream>
#include <string>

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

    // Collective: an instant of the shared clock at which all ranks start. Pass it to await().
    double agree_on_start();
    // The same where ranks may have worked unequally long before it, and share cores: those that came early
    // nap meanwhile. Ranks that poll keep the core from the ones that they wait for, and the agreement would
    // arrive after its instant.
    double agree_on_start_asleep();
    // A barrier in which those that came early nap, where ranks share cores: what they wait for may be a
    // measured call that has not ended on the other ranks.
    void meet_asleep();
    // Sleeps until the instant; awake where each rank has a core. Without a shared clock a barrier takes the
    // place of the instant.
    void await(double instant);
    static void sleep_until(double instant);

    // Makes the column's choice effective for the next calls. True when our setting changed: the next call of
    // ours decides and plans anew, which is not its usual cost. `operation` as in THALWEG_<OPERATION>.
    bool select(const Column& column, const std::string& operation);

    int rank = 0, size = 1, local_rank = 0, hosts = 1;
    bool shared_clock = false;
    bool spins = false;                // each rank has a core of its own
    MPI_Comm control = MPI_COMM_NULL;  // the driver's own traffic
    Ours ours;
    LinkReader links;

  private:
    NativeControls controls_;
    std::optional<std::string> selected_;  // the option of ours in effect
};

}  // namespace thalweg::bench
