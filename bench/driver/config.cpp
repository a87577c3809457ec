#include "driver/config.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>

namespace thalweg::bench {
namespace {

CallWay way_of(const std::string& text) {
    constexpr std::array<std::string_view, 6> names{"nonblocking", "tested",  "blocking",
                                                    "sockets",     "nothing", "alone"};
    const auto found = std::find(names.begin(), names.end(), text);
    if (found == names.end()) throw std::invalid_argument("no way to call is named " + text);
    return static_cast<CallWay>(found - names.begin());
}

}  // namespace

bool choices_change(const Config& config, const Point& point) {
    const std::string* first = nullptr;
    for (const std::size_t index : point.columns) {
        const Column& column = config.columns[index];
        if (column.native) continue;
        if (first != nullptr && *first != column.option) return true;
        first = &column.option;
    }
    return false;
}

bool read_config(const char* path, Config& config, std::string& why) {
    std::ifstream file(path);
    if (!file) {
        why = std::string("the bench configuration ") + path + " cannot be opened";
        return false;
    }
    try {
        const auto json = nlohmann::json::parse(file);
        config.collective = json.at("collective");
        config.phase = json.value("phase", "");
        config.root = json.value("root", 0);
        config.warm_up_calls = json.value("warm_up_calls", 2);
        config.computes = json.value("computes", std::vector<std::string>());
        for (const auto& entry : json.at("columns")) {
            Column column;
            column.name = entry.at("name");
            column.native = entry.at("native");
            column.option = entry.value("option", "");
            column.always = entry.value("always", true);
            column.variant = entry.value("variant", "");
            column.inside = entry.value("inside", "");
            column.way = way_of(entry.value("way", "nonblocking"));
            if (entry.contains("controls"))
                for (const auto& [variable, value] : entry["controls"].items())
                    column.controls.push_back({variable, value.get<long>()});
            config.columns.push_back(std::move(column));
        }
        for (const auto& entry : json.at("points")) {
            Point point;
            point.bytes = entry.at("bytes");
            point.samples = entry.at("samples");
            point.back_to_back = entry.value("back_to_back", 4);
            point.race = entry.value("race", false);
            point.best_seconds = entry.value("best_seconds", 0.0);
            point.warm_up_bytes = entry.value("warm_up_bytes", std::size_t{0});
            point.matrix = entry.value("matrix", std::vector<std::uint64_t>());
            point.pattern = entry.value("pattern", "");
            point.halo = entry.value("halo", nlohmann::json());
            point.small_calls = entry.value("small_calls", 0);
            for (const std::size_t column : entry.at("columns")) {
                if (column >= config.columns.size())
                    throw std::out_of_range("a point names a missing column");
                point.columns.push_back(column);
            }
            config.points.push_back(std::move(point));
        }
    } catch (const std::exception& error) {
        why = std::string("the bench configuration ") + path + " is malformed: " + error.what();
        return false;
    }
    return true;
}

}  // namespace thalweg::bench
