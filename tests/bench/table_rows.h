// Rows of broadcasts as a launch on four hosts writes them, for tests of what is made of them.
#pragma once

#include <string>
#include <vector>

#include "launch_row.h"

namespace thalweg::bench {

inline Row row(const std::string& column, const std::string& phase, std::uint64_t launch,
               std::vector<double> seconds) {
    const MeasuredOn on{.hosts = 4, .settings = lab_link("1000000", "48576", "0.5")};
    Row made = launch_row(on, "bcast", phase, column, launch, 1 << 20, std::move(seconds));
    if (column == "thalweg") made.algorithm = "chain:chunk_bytes=64K";
    return made;
}

// With what the kernel counted on the busiest link and on all of them.
inline Row counted(Row row, double tx_bytes, double all_tx_bytes) {
    row.tx_bytes = tx_bytes;
    row.all_tx_bytes = all_tx_bytes;
    return row;
}
inline std::vector<Row> counted_alike(std::vector<Row> rows) {
    for (Row& each : rows) each = counted(each, 1e6, 3e6);
    return rows;
}

// Of a launch with an environment of its own.
inline Row elsewhere(Row row) {
    row.context["environment"] = "I_MPI_ADJUST_BCAST=3";
    return row;
}

}  // namespace thalweg::bench
