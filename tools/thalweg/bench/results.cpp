#include "bench/results.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <system_error>

#include "bench/statistics.h"
#include "bench/table.h"
#include "json_text.h"

namespace thalweg::bench {

namespace {

// What only some phases have: absent, and null, elsewhere.
struct Part {
    const char* name;
    nlohmann::json Row::*value;
};
constexpr Part parts[] = {{"calls", &Row::calls}, {"overlap", &Row::overlap}, {"exchange", &Row::exchange},
                          {"halo", &Row::halo},   {"waiter", &Row::waiter},   {"app", &Row::app}};

// Whether the last line of a file, which has no end, is the beginning of a row: what was killed, or had no
// room, in the middle of one leaves that. Anything else is not ours to leave out.
bool is_torn(std::string_view line) {
    constexpr std::string_view begin = "{\"algorithm\":";
    return line.substr(0, begin.size()) == begin.substr(0, line.size()) && !nlohmann::json::accept(line);
}

// The next row would be written behind it.
void drop_torn_end(const std::string& path) {
    namespace fs = std::filesystem;
    std::error_code none;
    if (!fs::is_regular_file(path, none)) return;
    std::ifstream file(path);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    if (text.empty() || text.back() == '\n') return;
    const std::size_t begin = text.rfind('\n') + 1;  // 0 where there is none
    if (is_torn(std::string_view(text).substr(begin)))
        fs::resize_file(path, begin, none);
    else
        std::ofstream(path, std::ios::app) << '\n';
}

}  // namespace

std::string element_of(const Row& row) {
    if (row.collective != "allreduce" && row.collective != "iallreduce") return "";
    return row.element.empty() ? "int64" : row.element;
}

bool append_rows(const std::string& path, const std::vector<Row>& rows, std::string& why) {
    drop_torn_end(path);
    std::ofstream file(path, std::ios::app);
    for (const auto& row : rows) {
        nlohmann::json line{{"context", row.context},
                            {"collective", row.collective},
                            {"column", row.column},
                            {"phase", row.phase},
                            {"launch", row.launch},
                            {"bytes", row.bytes},
                            {"seconds", row.seconds},
                            {"back_to_back_seconds", row.back_to_back},
                            {"wrong_words", row.wrong_words},
                            {"late_samples", row.late_samples},
                            {"algorithm", row.algorithm},
                            {"reason", row.reason},
                            {"tx_bytes", row.tx_bytes},
                            {"tx_packets", row.tx_packets},
                            {"all_tx_bytes", row.all_tx_bytes}};
        if (!row.stopped.empty()) line["stopped"] = row.stopped;
        if (!row.element.empty()) line["element"] = row.element;
        for (const Part& part : parts)
            if (!(row.*part.value).is_null()) line[part.name] = row.*part.value;
        if (const double limit = limit_seconds(row);
            row.phase == "decide" && limit > 0 && !row.seconds.empty()) {
            line["limit_s"] = limit;
            line["time_over_limit"] = median(row.seconds) / limit;
        }
        file << tool::json_text(line) << '\n';
    }
    file.flush();
    if (!file) why = "results cannot be written to " + path;
    return static_cast<bool>(file);
}

Row row_of(const nlohmann::json& line) {
    Row row;
    row.context = line.at("context");
    row.collective = line.at("collective");
    row.column = line.at("column");
    row.phase = line.at("phase");
    row.launch = line.at("launch");
    row.bytes = line.at("bytes");
    row.seconds = line.at("seconds").get<std::vector<double>>();
    row.back_to_back = line.at("back_to_back_seconds").get<std::vector<double>>();
    row.wrong_words = line.at("wrong_words");
    row.late_samples = line.at("late_samples");
    row.algorithm = line.at("algorithm");
    row.reason = line.at("reason");
    row.stopped = line.value("stopped", "");
    for (const Part& part : parts)
        if (line.contains(part.name)) row.*part.value = line[part.name];
    row.tx_bytes = line.value("tx_bytes", -1.0);
    row.tx_packets = line.value("tx_packets", -1.0);
    row.all_tx_bytes = line.value("all_tx_bytes", -1.0);
    row.element = line.value("element", "");
    return row;
}

bool read_rows(const std::vector<std::string>& paths, std::vector<Row>& rows, std::string& why) {
    for (const auto& path : paths) {
        std::ifstream file(path);
        std::error_code none;
        const auto kind = std::filesystem::status(path, none);
        const bool missing = kind.type() == std::filesystem::file_type::not_found;
        if (std::filesystem::is_directory(kind) || (!missing && !file.is_open())) {
            why = path + " cannot be read";
            return false;
        }
        std::string text;
        for (int number = 1; std::getline(file, text); ++number) {
            if (text.empty()) continue;
            try {
                rows.push_back(row_of(nlohmann::json::parse(text)));
            } catch (const std::exception& error) {
                if (file.eof() && is_torn(text)) {
                    fmt::print(stderr, "bench: {} line {} was cut off, and is left out\n", path, number);
                    break;
                }
                why = path + " line " + std::to_string(number) +
                      " is not a result row: " + tool::plain_words(error.what());
                return false;
            }
        }
    }
    return true;
}

bool read_rows_before(const std::string& out, std::vector<Row>& rows, std::string& why) {
    std::error_code none;
    const auto type = std::filesystem::status(out, none).type();
    if (type == std::filesystem::file_type::fifo || type == std::filesystem::file_type::character)
        return true;
    return out.empty() || read_rows({out}, rows, why);
}

}  // namespace thalweg::bench
