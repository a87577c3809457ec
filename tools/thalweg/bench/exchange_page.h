// What is told of rows of phase "exchange": their tables, and the section of the page.
#pragma once

#include <string>
#include <vector>

#include "bench/exchange_table.h"
#include "bench/picture.h"

namespace thalweg::bench {

// Empty where there are none.
std::string format_exchange(const std::vector<ExchangeLine>& lines, bool markdown);
std::string format_windows(const std::vector<WindowLine>& lines, bool markdown);

// How many times as fast the chosen plans are as MPI_Alltoallv, by MPI: geometric means, and the algorithm's
// share. Empty where there are none.
std::string format_plan_gains(const std::vector<ExchangeLine>& lines, bool markdown);

// One sentence: for how many plans the predicted N* agrees. And by MPI and column, empty where nothing was
// predicted.
std::string foresight_text(const std::vector<ExchangeLine>& lines);
std::string format_foresight(const std::vector<ExchangeLine>& lines, bool markdown);

// The section of docs/measurements.md; empty where there are no rows. `name`: the page's, with which the
// names of the pictures that it refers to begin; they are added to `pictures`.
std::string exchange_section(const std::vector<Row>& rows, std::string (*provenance)(const std::vector<Row>&),
                             const std::string& name, std::vector<Picture>& pictures);

}  // namespace thalweg::bench
