// A halo exchange by every way there is: seconds of a call, what is made once, and what the copies of this
// machine take, measured in the same run.
//
// All columns of a point take turns, sample by sample, on the same cells. Along the faces the cells are new
// in every call and the halo is poisoned before it; every cell of both is checked after it, and behind the
// timed calls every other cell there is.
//
// By the configuration's phase something else is measured with the same ways and the same checks:
//
//   halo_changing   a run whose mix changes: each sample of a column is all phases of the point, in order
//   halo_overlap    calls with computation between their two parts (driver/overlap.h says how it is counted)
#pragma once

#include <mpi.h>

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "driver/compute.h"
#include "driver/config.h"
#include "driver/halo_ways.h"
#include "driver/series.h"
#include "driver/session.h"

namespace thalweg::bench {

inline constexpr const char* halo_collective = "halo";
inline constexpr std::string_view changing_phase = "halo_changing", overlap_phase = "halo_overlap";

// The grid of a point, as bench/halo.h says. Ends the job where it is none, or not for so many ranks.
HaloGrid grid_of(const nlohmann::json& json, int ranks);

class HaloDriver {
  public:
    HaloDriver(const Config& config, Session& session, std::ostream& out);  // collective

    // Measures all points and writes a line for each column of each. The process's exit status: 1 where a
    // column received wrong cells. Only rows tell of native neighbourhood collectives where a dimension of
    // one or two ranks goes round: libraries have long taken the edges there for each other.
    int run();

  private:
    struct Series : MeasuredSeries {
        std::vector<double> make_seconds;
    };

    double call(const std::function<int()>& what, const Column& column, Series& series, bool counts,
                bool everywhere);
    bool choose(const Column& column, Series& series, bool& changed);
    void remember(const Column& column, Series& series) const;
    double copied_per_second(std::size_t bytes);
    std::unique_ptr<HaloWay> prepare(const Column& column, Series& series);
    void check_elsewhere(std::vector<Series>& series);
    void measure_point(const Point& point);
    void measure_changing(const Point& point);
    void measure_overlap(const Point& point);
    bool slow_down(double times);
    // Calls `sample` with each column's place in the point in turn, in an order that is new in every sample.
    void take_turns(const Point& point, const std::function<void(std::size_t, bool idle)>& sample);
    nlohmann::json line_of(const Point& point, const Column& column, const Series& series) const;

    const Config& config_;
    Session& session_;
    std::ostream& out_;
    HaloMemory* memory_ = nullptr;  // of what is being measured
    HaloBytes bytes_;
    double copied_bytes_per_s_ = 0;  // by all ranks together
    std::uint64_t seed_ = 1;
    std::uint64_t wrong_ = 0;
};

}  // namespace thalweg::bench
