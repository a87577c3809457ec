// What an interrupted run need not measure again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
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
    // Whether the point has its pairs, and nothing that was screened later asks for new ones: a native column
    // without pairs that was faster there than every native that has them.
    bool decided(std::uint64_t bytes) const;
    // Whether its newest pairs are fewer than `enough` and too noisy for that: of native against itself the
    // ratio's interval leaves 0.97 to 1.03.
    bool wants_more_pairs(std::uint64_t bytes, std::size_t enough) const;
    // Of `columns`, those that have no row there, in their order.
    std::vector<ColumnPlan> missing(const std::string& phase, const std::vector<ColumnPlan>& columns,
                                    std::uint64_t bytes) const;

  private:
    struct Natives {
        std::uint64_t decided_at = 0;  // the newest launch of pairs
        double best_decided = 0;       // seconds, the median
        struct Screened {
            std::string column;
            std::uint64_t launch = 0;
            double seconds = 0;
        };
        std::vector<Screened> screened;
        // The newest pairs of native and native again.
        std::uint64_t compared_at = 0;
        std::vector<double> native, again;  // seconds
    };
    std::map<std::uint64_t, Natives> natives_;  // by bytes
    std::set<std::tuple<std::string, std::string, std::uint64_t>> seen_;
};

}  // namespace thalweg::bench
