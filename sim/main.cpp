// thalweg-sim: the program behind `thalweg sim`. Apart from `thalweg`, so that starting a rank loads no
// SimGrid.
#include <fmt/core.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <system_error>
#include <vector>

#include "base/standard_output.h"
#include "sim/app_rows.h"
#include "sim/rows.h"
#include "sim/windows.h"

namespace thalweg::sim {
namespace {

// Lines that all say why nothing was simulated are no answer. `why_not(row)`: a sentence, or an empty one of
// a row that is as it was asked for. Returns the exit status.
template <class Rows, class WhyNot>
int look_for_an_answer(const Rows& rows, WhyNot why_not) {
    for (const auto& row : rows)
        if (row.ranks < 2 || why_not(row).empty()) return 0;
    fmt::print(stderr, "thalweg sim: {}\n", why_not(rows.front()));
    return 1;
}

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
        return look_for_an_answer(rows, [](const AppRow& row) { return row.result.outcome.why; });
    }
    if (request.rma) {
        const std::vector<WindowsRow> rows = answer_windows(request, told, why);
        if (const int status = finish(rows)) return status;
        return look_for_an_answer(rows, [](const WindowsRow& row) { return row.why; });
    }
    const std::vector<Row> rows = answer(request, told, why);
    if (const int status = finish(rows)) return status;
    for (const Row& row : rows)
        if (!row.simulated && !row.result.given_up && row.ranks > 1 && row.algorithm == row.column) {
            fmt::print(stderr, "thalweg sim: {}\n", row.reason);
            return 1;
        }
    if (!request.trace_path.empty() && !rows.front().simulated) {
        fmt::print(stderr, "thalweg sim: --trace: nothing was simulated that it could show: {}\n",
                   rows.front().reason);
        return 1;
    }
    return look_for_an_answer(rows, [](const Row& row) {
        return row.simulated || row.seconds > 0 ? std::string() : row.reason;  // or predicted
    });
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
