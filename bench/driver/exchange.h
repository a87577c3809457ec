// Alltoallv by every way there is: seconds of a call, of making and freeing a plan, and of what a call
// without a plan does that a plan does once.
//
// All columns of a point take turns, sample by sample. A persistent column keeps one plan for all its calls;
// what a plan costs is measured with further ones that are made, called once and freed. Who sends how much to
// whom is a matrix in the configuration. The data are different in every call; receive buffers are poisoned
// before and every byte is checked after it.
#pragma once

#include <mpi.h>

#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "driver/config.h"
#include "driver/exchange_ways.h"
#include "driver/series.h"
#include "driver/session.h"

namespace thalweg::bench {

inline constexpr const char* exchange_collective = "alltoallv";

class ExchangeDriver {
  public:
    ExchangeDriver(const Config& config, Session& session, std::ostream& out);  // collective
    ~ExchangeDriver();
    ExchangeDriver(const ExchangeDriver&) = delete;
    ExchangeDriver& operator=(const ExchangeDriver&) = delete;

    // Measures all points and writes a line for each column of each. The process's exit status.
    int run();

  private:
    struct Series : MeasuredSeries {
        std::vector<double> init_seconds, free_seconds, set_up_seconds;
        int untimed_calls = 0;
        int taken_calls = -1;  // of a repeated column of ours, timed ones that were ours; -1: it is none
    };

    void lay_out(const Point& point);
    void prepare();
    std::uint64_t count_wrong_words() const;
    void call(ExchangeWay& way, Series* series, bool counts);
    void call_timed(const Column& column, ExchangeWay& way, Series& series);
    bool choose(const Column& column, Series& series, bool& changed);
    // Packets that leave the busiest host around a timed call which does nothing: the ranks' own meetings.
    double measure_idle_packets();
    void measure_plan(std::size_t index, Series& series);
    void measure_point(const Point& point);
    void write(const Point& point, const Column& column, const Series& series) const;

    const Config& config_;
    Session& session_;
    std::ostream& out_;
    std::vector<ExchangeGround> grounds_;  // by column
    std::vector<std::unique_ptr<WindowPool>> pools_;
    ExchangeMemory memory_;
    double idle_packets_ = 0;
    double link_bytes_ = 0;  // that must cross the busiest link, of either direction
    int neighbours_ = 0;     // most ranks that one rank sends to, itself left out
    std::uint64_t seed_ = 1;
    std::uint64_t wrong_total_ = 0;
};

}  // namespace thalweg::bench
