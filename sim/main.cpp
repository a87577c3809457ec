// thalweg-sim: the program behind `thalweg sim`. Apart from `thalweg`, so that starting a rank loads no
// SimGrid.
#include <fmt/core.h>
#include <unistd.h>

#include "sim/rows.h"

int main(int argc, char** argv) {
    using namespace thalweg::sim;
    Request request;
    if (const auto status = parse_request(argc, argv, request)) return *status;
    const bool show = !request.quiet && isatty(STDERR_FILENO) != 0;
    const std::size_t points = request.ranks.size() * request.bytes.size() * request.columns.size();
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
    const std::vector<Row> rows = answer(request, told, why);
    if (show) fmt::print(stderr, "\r\033[K");
    if (!why.empty()) {
        fmt::print(stderr, "thalweg sim: {}\n", why);
        return 2;
    }
    if (request.json)
        for (const Row& row : rows) fmt::print("{}\n", json_line(request, row));
    else
        print_table(request, rows);
    for (const Row& row : rows)
        if (!row.simulated && !row.result.given_up && row.ranks > 1 && row.algorithm == row.column) {
            fmt::print(stderr, "thalweg sim: {}\n", row.reason);
            return 1;
        }
    return 0;
}
