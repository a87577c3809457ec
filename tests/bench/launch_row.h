// A row as a launch writes it, for tests of what is made of them; each phase adds what is its own.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/results.h"

namespace thalweg::bench {

// Under which library and on what; a number of 0, and settings that are null, are not told.
struct MeasuredOn {
    std::string mpi = "mpich", shape = "4x2", rate = "100mbit";
    int hosts = 0, ranks = 0;
    nlohmann::json settings = nullptr;
};

// What settings say of the lab's links.
inline nlohmann::json lab_link(const char* rate_bytes_per_s, const char* burst_bytes, const char* latency_s) {
    return {{"THALWEG_LAB_RATE_BYTES_PER_S", rate_bytes_per_s},
            {"THALWEG_LAB_BURST_BYTES", burst_bytes},
            {"THALWEG_LAB_LATENCY_S", latency_s}};
}

inline Row launch_row(const MeasuredOn& on, std::string_view collective, std::string_view phase,
                      std::string_view column, std::uint64_t launch, std::uint64_t bytes,
                      std::vector<double> seconds) {
    Row made;
    made.context = {{"mpi_name", on.mpi}, {"shape", on.shape}, {"rate", on.rate}};
    if (on.hosts != 0) made.context["hosts"] = on.hosts;
    if (on.ranks != 0) made.context["ranks"] = on.ranks;
    if (!on.settings.is_null()) made.context["settings"] = on.settings;
    made.collective = collective;
    made.phase = phase;
    made.column = column;
    made.launch = launch;
    made.bytes = bytes;
    made.seconds = std::move(seconds);
    return made;
}

}  // namespace thalweg::bench
