// What a program prints for people and writes for machines. No MPI here.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/arithmetic.h"

namespace thalweg::apps {

// All versions on one problem.
struct Report {
    std::string app;            // "radix_sort"
    std::string title;          // the problem in one line, for people
    nlohmann::json parameters;  // the same for machines, by option name
    std::vector<Series> series;
    std::string checked;  // what the check of every run was, in words
    std::string library;  // the MPI library's name and version

    bool correct() const;
};

// The table, and under it the arithmetic of what overlap can win.
std::string format_report(const Report& report);

// One JSON line per version: app, parameters, version, the samples' seconds, `checked` and `wrong`.
std::string json_lines(const Report& report);

nlohmann::json to_json(const std::vector<Sample>& samples);

// Reads the lines back; false with one sentence in `why`.
bool read_reports(const std::string& text, std::vector<Report>& reports, std::string& why);

// Appends to a file; false with one sentence in `why`.
bool append_to(const std::string& path, const std::string& text, std::string& why);

}  // namespace thalweg::apps
