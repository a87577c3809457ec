#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <sstream>

#include "conjugate_gradient/matrix.h"

namespace thalweg::apps {
namespace {

std::string lower(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
    return text;
}

// The next line that is neither empty nor a comment; false at the end.
bool next_line(std::istream& file, std::string& line, long& number) {
    while (std::getline(file, line)) {
        ++number;
        if (line.find_first_not_of(" \t\r") != std::string::npos && line[0] != '%') return true;
    }
    return false;
}

}  // namespace

bool read_matrix_market(const std::string& path, std::int64_t& n, std::vector<Entry>& entries,
                        std::string& why) {
    std::ifstream file(path);
    const auto refuse = [&](const std::string& what) {
        why = path + ": " + what;
        return false;
    };
    if (!file) return refuse("cannot be opened");
    std::string line, banner, object, format, field, symmetry;
    std::getline(file, line);
    std::istringstream(lower(line)) >> banner >> object >> format >> field >> symmetry;
    if (banner != "%%matrixmarket" || object != "matrix") return refuse("is not a Matrix Market matrix");
    if (format != "coordinate") return refuse("is " + format + ", but only coordinate matrices are read");
    if (field != "real" && field != "integer" && field != "pattern")
        return refuse("has " + field + " entries, but only real, integer and pattern ones are read");
    if (symmetry != "general" && symmetry != "symmetric")
        return refuse("is " + symmetry + ", but only general and symmetric matrices are read");

    long number = 1;
    std::int64_t rows = 0, columns = 0, count = 0;
    if (!next_line(file, line, number) || !(std::istringstream(line) >> rows >> columns >> count) ||
        rows < 1 || count < 0)
        return refuse(
            fmt::format("line {} does not say how many rows, columns and entries there are", number));
    if (rows != columns)
        return refuse(fmt::format("has {} rows and {} columns, but must be square", rows, columns));
    if (rows > std::numeric_limits<std::int32_t>::max())
        return refuse("has more rows than 32 bits can count");
    std::vector<Entry> read;
    for (std::int64_t i = 0; i < count; ++i) {
        std::int64_t row = 0, column = 0;
        double value = 1;
        if (!next_line(file, line, number))
            return refuse(fmt::format("ends after {} of {} entries", i, count));
        std::istringstream words(line);
        if (!(words >> row >> column) || (field != "pattern" && !(words >> value)))
            return refuse(fmt::format("line {} is not an entry: {}", number, line));
        if (row < 1 || row > rows || column < 1 || column > rows)
            return refuse(fmt::format("line {}: ({}, {}) is outside the matrix", number, row, column));
        const auto r = static_cast<std::int32_t>(row - 1), c = static_cast<std::int32_t>(column - 1);
        read.push_back({r, c, value});
        if (symmetry == "symmetric" && r != c) read.push_back({c, r, value});
    }
    n = rows;
    entries = std::move(read);
    return true;
}

}  // namespace thalweg::apps
