// What an interrupted run need not measure again.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "bench/launch.h"
#include "bench/results.h"

namespace thalweg::bench {

// The options of Thalweg that are set in this process's environment and steer what is measured, as rows
// record them.
nlohmann::json steering_settings();

// Whether a row was measured on this shape, at its rate, under its MPI, and with these settings besides those
// of its own column: it stands beside what is measured now.
bool measured_here(const Row& row, const Shape& shape, const nlohmann::json& settings = steering_settings());

// The points that rows hold already.
class Done {
  public:
    Done(const std::vector<Row>& rows, const std::string& collective, const Shape& shape,
         const nlohmann::json& settings = steering_settings());
    bool has(const std::string& phase, const std::string& column, std::uint64_t bytes) const;
    // Of `columns`, those that have no row there, in their order.
    std::vector<ColumnPlan> missing(const std::string& phase, const std::vector<ColumnPlan>& columns,
                                    std::uint64_t bytes) const;

  private:
    std::set<std::tuple<std::string, std::string, std::uint64_t>> seen_;
};

}  // namespace thalweg::bench
