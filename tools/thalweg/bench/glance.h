// The front of docs/measurements.md: what is faster by how much, where it is not, and what was not measured,
// of all operations together.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/results.h"
#include "bench/statistics.h"

namespace thalweg::bench {

// One measured point of one operation, Thalweg's automatic choice beside the MPI's.
struct GlancePoint {
    std::string operation, compared;  // "MPI_Bcast"; what the gain is against: "its default"
    std::string mpi, shape;
    std::string where;    // "64 KiB", a grid, a version of an application
    Ratio ratio;          // Thalweg's time over that of `compared`, of the same launch
    double of_limit = 0;  // Thalweg's time over the limit; 0: there is none
    Verdict decision = Verdict::not_slower;
    std::string than;  // what it was decided against, where it is not `compared`: "its ring"
    Ratio decided_by;  // the ratio against that
};

// In the order of the page; those that were left out or did not end are not among them.
std::vector<GlancePoint> glance(const std::vector<Row>& rows);

// Markdown, from its heading on; empty where there are no points.
std::string glance_section(const std::vector<Row>& rows);

}  // namespace thalweg::bench
