// thalweg-sim: the program behind `thalweg sim`. Apart from `thalweg`, so that starting a rank loads no
// SimGrid.
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <system_error>

#include "base/standard_output.h"
#include "sim/app_rows.h"
#include "sim/rows.h"
#include "sim/windows.h"

namespace thalweg::sim {
namespace {

int answer_command(int argc, char** argv) {
    Request request;
    if (const auto status = parse_request(argc, argv, request)) return *status;
    const bool show = !request.quiet && isatty(STDERR_FILENO) != 0;
    const std::size_t columns = request.rma ? 1 : request.app.empty() ? request.columns.size() : app_columns;
    const std::size_t points = request.ranks.size() * request.sizes() * columns;
    std::size_t at = 0;
    const auto told = [&](const std::string& sentence) {
        ++at;
        if (!show) return;
        constexpr std::size_t width = 24;
        const std::size_t full = width * (at - 1) / points;
        fmt::print(stderr, "\r[{}{}] {}/{}  {}\033[K", std::string(full, '#'), std::string(width - full, '.'),
                   at, points, sentence);
    };
    std::string why;
    const auto finish = [&](const auto& rows) {
        if (show) fmt::print(stderr, "\r\033[K");
        if (!why.empty()) {
            fmt::print(stderr, "thalweg sim: {}\n", why);
            return 2;
        }
        if (request.json)
            for (const auto& row : rows) fmt::print("{}\n", json_line(request, row));
        else
            print_table(request, rows);
        return 0;
    };
    if (!request.app.empty()) {
        const std::vector<AppRow> rows = answer_app(request, told, why);
        if (const int status = finish(rows)) return status;
        for (const AppRow& row : rows)
            if (!row.result.outcome.why.empty() && !row.result.given_up && row.ranks > 1) {
                fmt::print(stderr, "thalweg sim: {}\n", row.result.outcome.why);
                return 1;
            }
        return 0;
    }
    if (request.rma) {
        const std::vector<WindowsRow> rows = answer_windows(request, told, why);
        return finish(rows);
    }
    const std::vector<Row> rows = answer(request, told, why);
    if (const int status = finish(rows)) return status;
    for (const Row& row : rows)
        if (!row.simulated && !row.result.given_up && row.ranks > 1 && row.algorithm == row.column) {
            fmt::print(stderr, "thalweg sim: {}\n", row.reason);
            return 1;
        }
    // Lines that all say "cannot run" are no answer.
    const auto nothing = [](const Row& row) { return !row.simulated && row.seconds <= 0 && row.ranks > 1; };
    if (std::all_of(rows.begin(), rows.end(), nothing)) {
        fmt::print(stderr, "thalweg sim: {}\n", rows.front().reason);
        return 1;
    }
    return 0;
}

}  // namespace
}  // namespace thalweg::sim

int main(int argc, char** argv) {
    int status = 1;
    try {
        status = thalweg::sim::answer_command(argc, argv);
    } catch (const std::system_error&) {  // what fmt::print throws where it cannot write
        if (std::ferror(stdout) == 0) throw;
    }
    const std::string why = thalweg::standard_output_failure();
    if (why.empty()) return status;
    fmt::print(stderr, "thalweg sim: {}\n", why);
    return status == 0 ? 1 : status;
}
