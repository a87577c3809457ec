// `thalweg bench apps`: the applications of apps/ in the lab, native and with Thalweg, launch by launch in
// turns. In each launch their versions (blocking, waited for at once, nonblocking, manual progress; of the
// refined mesh bench/amr.h) take turns too.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/launch.h"

namespace thalweg::bench {

struct AppsRequest {
    Shape shape{.mpi = "mpich", .hosts = 4, .ppn = 1, .rails = 1, .rate = "100mbit"};
    std::vector<std::string> apps{"radix_sort", "conjugate_gradient"};
    int rounds = 5;   // of three launches each: native, Thalweg, native again
    std::string out;  // JSON lines to append to; rounds that are in it are not measured again
    bool force = false;
};

// The options with which an application is started on a shape, and why: `rate` in payload bytes per second.
struct AppCase {
    std::string app, program;
    std::vector<std::string> options;
    int repeat = 3;                              // timed runs of each version in a launch
    double slowdown = 0;                         // seconds per unit of work
    double saved_by_paper = 0;                   // of the blocking version's time, as the paper reports
    std::string again = "blocking,nonblocking";  // versions of the launches native again
    // By these of its rows' parameters it is told from other problems.
    nlohmann::json known = nlohmann::json::object();
};

// Each rank gathers app_bytes. Radix sort: the work beside the allgather takes 1.25 times what the wire needs
// for it. Conjugate gradient: the work of a product takes 68/32 of it, so that communication is the 32 % of
// the blocking version that the paper hides. False where there is no such application.
inline constexpr std::uint64_t app_bytes = 256u << 10;
bool find_app(const std::string& app, const Shape& shape, double rate_bytes_per_second, AppCase& found);

// "100mbit" in bytes per second; 0 where it is no rate.
double bytes_per_second(const std::string& rate);

// Measures and prints the table. The exit status: 0; 1: a launch failed or a result was wrong; 2: the request
// cannot be read.
int run_apps(const AppsRequest& request);

}  // namespace thalweg::bench
