// What of a request fits together; each returns the sentence of a mistake, or an empty text. Private to
// parse_request().
#pragma once

#include <string>

#include "sim/request.h"

namespace thalweg::sim {

// Its numbers, with one another and with the machine. Numbers of ranks that the machine has no place for are
// refused before the first of them is simulated.
std::string read_limits(const Request& request);
// The tuning table of that file.
std::string read_table(const std::string& path, Request& request);
// What is compared, and with which library.
std::string read_columns(Request& request);

}  // namespace thalweg::sim
