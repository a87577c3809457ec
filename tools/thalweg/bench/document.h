// docs/measurements.md: everything that was measured, made from result files alone.
#pragma once

#include <string>
#include <vector>

#include "bench/picture.h"
#include "bench/results.h"

namespace thalweg::bench {

// Markdown: the shape of the lab and the method, one table per MPI, a summary with geometric means, the
// rings. `about`: Markdown that stands behind the title, may be empty. `name`: the page's without ".md";
// the pictures that it refers to are in a folder beside it, begin with that name, and are told in `pictures`.
std::string document(const std::vector<Row>& rows, const std::string& about = "",
                     const std::string& name = "measurements", std::vector<Picture>* pictures = nullptr);

}  // namespace thalweg::bench
