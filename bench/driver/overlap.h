// How much of a nonblocking collective hides behind computation, and what that costs the computation.
//
// All columns of a point take turns, sample by sample. One sample of a column is three kinds of call:
//
//   pure    start, wait
//   own     start, compute for as long as this rank's pure time, wait     OSU's and IMB's overlap
//   equal   start, the same work for all columns, wait                    dilation, compute + communication
//
// "Equal" work takes, alone, as long as the reference (driver/sockets.h) needs for the same bytes: so the
// wire is busy during all of it. Every byte of every call is checked.
#pragma once

#include <mpi.h>

#include <array>
#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "driver/compute.h"
#include "driver/config.h"
#include "driver/nonblocking.h"
#include "driver/overlap_series.h"
#include "driver/session.h"
#include "driver/sockets.h"
#include "driver/threads.h"

namespace thalweg::bench {

class OverlapDriver {
  public:
    OverlapDriver(const Config& config, Session& session, std::ostream& out);  // collective
    ~OverlapDriver();
    OverlapDriver(const OverlapDriver&) = delete;
    OverlapDriver& operator=(const OverlapDriver&) = delete;

    // Measures all points and writes a line for each column of each. The process's exit status.
    int run();

  private:
    // What each way of measuring calls; `amount` of work, 0 for none.
    OverlapCall call(std::size_t column, Compute* compute, double amount);
    void begin(std::size_t column, MPI_Request& request);
    void end(std::size_t column, MPI_Request& request);
    std::vector<OverlapCall> gather(const OverlapCall& mine) const;

    void set_up(std::size_t column);
    void calibrate();
    void measure_point(const Point& point);
    double measure_pure(std::size_t column, OverlapSeries* series);
    void measure_own(std::size_t column, OverlapSeries& series);
    void measure_equal(std::size_t column, ComputeKind kind, double seconds, OverlapSeries& series);
    void write(const Point& point, const Column& column, const OverlapSeries& series,
               double equal_seconds) const;

    const Config& config_;
    const NonblockingCase& case_;
    Session& session_;
    std::ostream& out_;
    std::vector<MPI_Comm> comms_;  // by column: its own, because some libraries choose when one is made
    std::vector<std::unique_ptr<Compute>> computes_;
    std::unique_ptr<SocketMover> sockets_;  // where a column needs it
    Exchange exchange_;
    std::uint64_t seed_ = 1;
    std::uint64_t wrong_total_ = 0;
    std::vector<std::uint64_t> untold_;  // by column: wrong words of calls without a sample, for its next row
};

}  // namespace thalweg::bench
