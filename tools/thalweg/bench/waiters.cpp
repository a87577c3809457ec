#include "bench/waiters.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <set>

#include "bench/launch.h"
#include "bench/table.h"
#include "shell_words.h"
#include "verb.h"

namespace thalweg::bench {
namespace {

namespace fs = std::filesystem;

// The newest row of each, in the order in which they were measured.
std::vector<const Row*> newest_waiters(const std::vector<Row>& rows) {
    std::vector<const Row*> shown;
    for (const auto& row : rows) {
        if (row.phase != waiters_phase) continue;
        const auto known = std::find_if(shown.begin(), shown.end(),
                                        [&](const Row* each) { return each->column == row.column; });
        if (known == shown.end()) {
            shown.push_back(&row);
        } else if (row.launch >= (*known)->launch) {
            *known = &row;
        }
    }
    return shown;
}

}  // namespace

int run_waiters(const WaitersRequest& request) {
    std::string why;
    std::vector<Row> before;  // a file that holds something else is not added to
    if (!read_rows_before(request.out, before, why)) return tool::usage_error("bench", why);
    const std::string program = program_of_build("thalweg-bench-waiters", why);
    if (!why.empty()) return tool::usage_error("bench", why);
    const std::string command = fmt::format("{} --json --samples {} --pause-us {}",
                                            tool::shell_quoted(program), request.samples, request.pause_us);
    Shape nowhere;
    nowhere.mpi = "";
    nowhere.hosts = 0;
    nowhere.ppn = 1;
    const nlohmann::json context = session_context(nowhere);
    const auto number =
        static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
    std::vector<Row> rows;
    FILE* const pipe = popen(command.c_str(), "r");
    if (pipe == nullptr) return 1;
    std::string text;
    for (int c = 0; (c = std::fgetc(pipe)) != EOF;) text += static_cast<char>(c);
    const int status = pclose(pipe);
    for (std::size_t begin = 0, end = 0; (end = text.find('\n', begin)) != std::string::npos;
         begin = end + 1) {
        const auto line = nlohmann::json::parse(text.substr(begin, end - begin), nullptr, false);
        if (line.is_discarded()) continue;
        Row row;
        row.context = context;
        row.collective = "wait";
        row.column = line.at("waiter");
        row.phase = waiters_phase;
        row.launch = number;
        row.waiter = line;
        rows.push_back(std::move(row));
    }
    if (status != 0 || rows.empty()) {
        fmt::print(stderr, "thalweg bench: {} ended with status {}\n", program,
                   WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
        return 1;
    }
    if (!request.out.empty() && !append_rows(request.out, rows, why)) {
        fmt::print(stderr, "thalweg bench: {}\n", why);
        return 1;
    }
    fmt::print("{}", format_waiters(rows, false));
    return 0;
}

std::string format_waiters(const std::vector<Row>& rows, bool markdown) {
    const std::vector<const Row*> shown = newest_waiters(rows);
    if (shown.empty()) return "";
    std::vector<std::vector<std::string>> cells{{"way to sleep", "min", "median", "p99", "ringing",
                                                 "ringing p99", "CPU while asleep", "samples",
                                                 "not exercised"}};
    const auto us = [](const nlohmann::json& from, const char* name) {
        return fmt::format("{:.2f} us", from.at(name).get<double>());
    };
    for (const Row* row : shown) {
        const nlohmann::json& seen = row->waiter;
        if (!seen.at("exercised").get<bool>()) {
            cells.push_back({row->column, "-", "-", "-", "-", "-", "-", "-", seen.value("why", "")});
            continue;
        }
        const auto &wake = seen.at("wake_us"), &ring = seen.at("ring_us");
        cells.push_back({row->column, us(wake, "min"), us(wake, "median"), us(wake, "p99"),
                         us(ring, "median"), us(ring, "p99"),
                         fmt::format("{:.1f} %", 100 * seen.at("cpu_share").get<double>()),
                         fmt::format("{}", seen.at("samples").get<std::uint64_t>()), ""});
    }
    return format_cells(cells, markdown);
}

std::string waiters_source(const std::vector<Row>& rows) {
    std::set<std::string> machines, commits;
    for (const Row* row : newest_waiters(rows)) {
        machines.insert(row->context.value("machine", ""));
        commits.insert(row->context.value("commit", ""));
    }
    return fmt::format("{}; commit {}", fmt::join(machines, ", "), fmt::join(commits, ", "));
}

std::string ways_not_exercised(const std::vector<Row>& rows) {
    std::string text;
    for (const Row* row : newest_waiters(rows))
        if (!row->waiter.at("exercised").get<bool>())
            text +=
                fmt::format("{}{} ({})", text.empty() ? "" : ", ", row->column, row->waiter.value("why", ""));
    return text;
}

}  // namespace thalweg::bench
