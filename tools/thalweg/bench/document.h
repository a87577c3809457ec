// docs/measurements.md: everything that was measured, made from result files alone.
#pragma once

#include <string>
#include <vector>

#include "bench/results.h"

namespace thalweg::bench {

// Markdown: the shape of the lab and the method, one table per MPI, a summary with geometric means, the
// rings. `about`: Markdown that stands behind the title, may be empty.
std::string document(const std::vector<Row>& rows, const std::string& about = "");

}  // namespace thalweg::bench
