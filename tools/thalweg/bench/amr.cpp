#include "bench/amr.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <tuple>
#include <utility>

#include "bench/apps_table.h"
#include "bench/table.h"

namespace thalweg::bench {
namespace {

constexpr const char* sends[] = {"isend", "waitall", "persistent"};
constexpr const char* neighbourhoods[] = {"neighbor", "init"};

AmrVersion& version_of(AmrLine& line, const std::string& name) {
    for (auto& version : line.versions)
        if (version.name == name) return version;
    line.versions.push_back({name, {}, {}, {}, {}, {}});
    return line.versions.back();
}

// The least median of the runs on one side, of the versions that are named.
template <class Names>
const AmrVersion* least(const AmrLine& line, const Names& names, std::vector<double> AmrVersion::*side) {
    const AmrVersion* best = nullptr;
    for (const auto& version : line.versions) {
        const bool named = std::find(std::begin(names), std::end(names), version.name) != std::end(names);
        if (!named || (version.*side).empty()) continue;
        if (best == nullptr || median(version.*side) < median(best->*side)) best = &version;
    }
    return best;
}

// What its exchanges are: equal for all rows with the same parameters on the same shape.
void describe(const nlohmann::json& meshes, AmrLine& line) {
    double link = 0, messages = 0, crossing = 0;
    line.meshes = static_cast<int>(meshes.size());
    line.exchanges = 0;
    for (const auto& mesh : meshes) {
        const int exchanges = mesh.at("exchanges");
        line.exchanges += exchanges;
        for (const auto& stage : mesh.at("stages")) {
            link += exchanges * stage.at("busiest").get<double>();
            messages += exchanges * stage.at("messages").get<double>();
            crossing += exchanges * stage.at("crossing").get<double>();
            line.largest_bytes = std::max(line.largest_bytes, stage.at("largest").get<double>());
        }
    }
    if (messages > 0) line.message_bytes = crossing / messages;
    line.link_bytes = line.per_exchange(link);
    line.messages = line.per_exchange(messages);
}

void add(const Row& row, AmrLine& line) {
    const std::string_view column = row.column;
    for (const char* side : {native_side, again_side, thalweg_side}) {
        const std::string prefix = app_column(side, "");
        if (!column.starts_with(prefix)) continue;
        AmrVersion& version = version_of(line, std::string(column.substr(prefix.size())));
        auto& seconds = side == native_side  ? version.native
                        : side == again_side ? version.again
                                             : version.ours;
        seconds.insert(seconds.end(), row.seconds.begin(), row.seconds.end());
        if (side == again_side) continue;
        auto& made = side == native_side ? version.native_made : version.ours_made;
        for (const auto& sample : row.app.at("samples")) made.push_back(sample.at("making").get<double>());
    }
}

}  // namespace

std::vector<AppCase> amr_cases() {
    struct Mesh {
        int cells, steps, repeat;
    };
    // A step is an exchange, and there is one behind the last.
    constexpr Mesh meshes[] = {{32, 19, 6}, {64, 14, 3}};
    const std::vector<int> blocks{4, 2, 2};
    constexpr int levels = 1, refine_every = 5;
    std::vector<AppCase> cases;
    for (const Mesh& mesh : meshes) {
        AppCase made;
        made.app = amr_app;
        made.program = "amr";
        made.repeat = mesh.repeat;
        made.saved_by_paper = AmrOutcome::saved_target;
        made.again = "isend,waitall,persistent";
        made.known["blocks"] = blocks;
        made.known["cells"] = mesh.cells;
        made.known["levels"] = levels;
        made.known["steps"] = mesh.steps;
        made.known["refine-every"] = refine_every;
        made.options = {"--blocks",
                        std::to_string(blocks[0]),
                        std::to_string(blocks[1]),
                        std::to_string(blocks[2]),
                        "--cells",
                        std::to_string(mesh.cells),
                        "--levels",
                        std::to_string(levels),
                        "--steps",
                        std::to_string(mesh.steps),
                        "--refine-every",
                        std::to_string(refine_every)};
        cases.push_back(std::move(made));
    }
    return cases;
}

bool amr_rows(const std::string& text, const std::string& side, int round, std::vector<Row>& rows,
              std::string& why) {
    std::istringstream lines(text);
    for (std::string each; std::getline(lines, each);) {
        if (each.empty()) continue;
        try {
            const auto line = nlohmann::json::parse(each);
            Row row;
            row.context["mpi"] = line.at("library");
            row.collective = amr_app;
            row.column = app_column(side, line.at("version").get<std::string>());
            row.phase = amr_phase;
            const std::string wrong = line.at("wrong");
            row.wrong_words = wrong.empty() ? 0 : 1;
            row.app["round"] = round;
            for (const char* part : {"parameters", "wrong", "checked", "meshes", "samples"})
                row.app[part] = line.at(part);
            for (const auto& sample : row.app["samples"]) {
                row.seconds.push_back(sample.at("communication").get<double>());
                if (!sample.at("making").is_number()) throw std::runtime_error("making is no number");
            }
            AmrLine of;
            describe(row.app["meshes"], of);
            row.bytes = static_cast<std::uint64_t>(of.largest_bytes);
            rows.push_back(std::move(row));
        } catch (const std::exception& error) {
            why = std::string("a line is not what amr writes: ") + error.what();
            return false;
        }
    }
    return true;
}

double amr_limit_seconds(const Row& row) {
    const double rate = setting(row, "THALWEG_LAB_RATE_BYTES_PER_S");
    if (rate <= 0) return 0;
    const double latency = setting(row, "THALWEG_LAB_LATENCY_S");
    const double rails = row.context.value("rails", 1);  // each of that rate, with a bucket of its own
    double seconds = 0;
    for (const auto& mesh : row.app.at("meshes")) {
        double bytes = 0;
        int stages = 0;
        for (const auto& stage : mesh.at("stages")) {
            const double busiest = stage.at("busiest");
            bytes += busiest / rails;
            stages += busiest > 0;
        }
        const double wire = std::max(0.0, bytes - setting(row, "THALWEG_LAB_BURST_BYTES")) / rate;
        seconds += mesh.at("exchanges").get<double>() * (wire + stages * latency);
    }
    return seconds;
}

std::uint64_t AmrLine::face_bytes() const {
    const std::uint64_t cells = parameters.value("cells", std::uint64_t{0});
    return cells * cells * sizeof(std::uint32_t);
}

std::vector<AmrLine> summarize_amr(const std::vector<Row>& rows) {
    using Key = std::tuple<std::string, std::string, std::string, int>;
    std::map<Key, std::vector<const Row*>> groups;
    for (const auto& row : rows)
        if (row.phase == amr_phase && !row.app.is_null())
            groups[{row.context.value("mpi_name", ""), row.context.value("shape", ""),
                    row.context.value("rate", ""), row.app.at("parameters").value("cells", 0)}]
                .push_back(&row);
    std::vector<AmrLine> lines;
    for (const auto& [key, group] : groups) {
        AmrLine line;
        line.mpi = std::get<0>(key);
        line.shape = std::get<1>(key);
        line.rate = std::get<2>(key);
        line.parameters = group.back()->app.at("parameters");
        describe(group.back()->app.at("meshes"), line);
        std::set<int> rounds;
        std::vector<double> limits;
        for (const Row* row : group) {
            // What was asked for otherwise is another measurement.
            if (row->app.at("parameters") != line.parameters) continue;
            add(*row, line);
            rounds.insert(row->app.value("round", 0));
            limits.push_back(amr_limit_seconds(*row));
            line.wrong += row->wrong_words;
        }
        line.rounds = static_cast<int>(rounds.size());
        line.limit_seconds = median(std::move(limits));
        lines.push_back(std::move(line));
    }
    return lines;
}

const AmrVersion* fastest_sends(const AmrLine& line) { return least(line, sends, &AmrVersion::native); }

const AmrVersion* fastest_of_ours(const AmrLine& line) {
    return least(line, neighbourhoods, &AmrVersion::ours);
}

AmrOutcome outcome(const AmrLine& line, const AmrVersion& version) {
    AmrOutcome result;
    result.seconds = median(version.ours);
    if (line.limit_seconds > 0) result.of_limit = result.seconds / line.limit_seconds;
    const AmrVersion* const theirs = fastest_sends(line);
    if (theirs == nullptr || version.ours.empty()) return result;
    const double their_seconds = median(theirs->native);
    result.of_sends = ratio_of_medians(version.ours, theirs->native);
    result.saved = 1 - result.of_sends.value;
    if (their_seconds > 0 && line.limit_seconds > 0) result.most = 1 - line.limit_seconds / their_seconds;
    return result;
}

}  // namespace thalweg::bench
