// `thalweg sim app`: a program's iterations, with the native library's calls and with Thalweg's.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/point.h"
#include "sim/request.h"

namespace thalweg::sim {

// How a program's operations run. Blocking: it waits where it starts. Started: it computes meanwhile, and the
// operation goes on inside calls only, or by an agent.
enum class Calls : std::uint8_t { blocking, started, agent };

struct AppRow {
    bool native = false;  // the default algorithms of Request::family, and its copies as they are matched
    Calls calls = Calls::blocking;
    int ranks = 0, hosts = 0;
    std::uint64_t bytes = 0;
    std::string algorithms;      // of its operations, in order, each once
    double seconds = 0;          // of an iteration, until the last rank is done; 0: not simulated
    double compute_seconds = 0;  // of a rank, in an iteration
    PointResult result;
};

inline constexpr std::size_t app_columns = 5;

// For every number of ranks and size: native blocking, native started, Thalweg blocking, started and with an
// agent.
std::vector<AppRow> answer_app(const Request& request, const std::function<void(const std::string&)>& told,
                               std::string& why);

std::string json_line(const Request& request, const AppRow& row);
void print_table(const Request& request, const std::vector<AppRow>& rows);

}  // namespace thalweg::sim
