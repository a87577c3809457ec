// What is made of result files: tables, the documentation's page, plots.
#pragma once

#include <string>
#include <vector>

namespace thalweg::bench {

// All of these return the exit status: 0; 1: what was made cannot be written; 2: a file is not there or holds
// no result rows, which one sentence on standard error says.

// Prints the tables of these files; `columns`: every column too.
int show_table(const std::vector<std::string>& files, bool markdown, bool columns);
// Writes the page of all tables, and what it shows into a folder `pictures` beside it; "-": the page alone,
// to standard output.
int write_document(const std::vector<std::string>& files, const std::string& about, const std::string& page);
// Becomes the script that draws `out`, a picture whose form its name tells. Returns only on failure.
int draw(const std::vector<std::string>& files, const std::string& out);

}  // namespace thalweg::bench
