#include "bench/results.h"

#include <fstream>

namespace thalweg::bench {

bool append_rows(const std::string& path, const std::vector<Row>& rows, std::string& why) {
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
        if (!row.calls.is_null()) line["calls"] = row.calls;
        if (!row.overlap.is_null()) line["overlap"] = row.overlap;
        if (!row.exchange.is_null()) line["exchange"] = row.exchange;
        if (!row.halo.is_null()) line["halo"] = row.halo;
        if (!row.waiter.is_null()) line["waiter"] = row.waiter;
        if (!row.app.is_null()) line["app"] = row.app;
        file << line.dump() << '\n';
    }
    file.flush();
    if (!file) why = "results cannot be written to " + path;
    return static_cast<bool>(file);
}

bool read_rows(const std::vector<std::string>& paths, std::vector<Row>& rows, std::string& why) {
    for (const auto& path : paths) {
        std::ifstream file(path);
        std::string text;
        for (int number = 1; std::getline(file, text); ++number) {
            if (text.empty()) continue;
            try {
                const auto line = nlohmann::json::parse(text);
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
                if (line.contains("calls")) row.calls = line["calls"];
                if (line.contains("overlap")) row.overlap = line["overlap"];
                if (line.contains("exchange")) row.exchange = line["exchange"];
                if (line.contains("halo")) row.halo = line["halo"];
                if (line.contains("waiter")) row.waiter = line["waiter"];
                if (line.contains("app")) row.app = line["app"];
                row.tx_bytes = line.at("tx_bytes");
                row.tx_packets = line.at("tx_packets");
                row.all_tx_bytes = line.value("all_tx_bytes", -1.0);
                rows.push_back(std::move(row));
            } catch (const std::exception& error) {
                why = path + " line " + std::to_string(number) + " is not a result row: " + error.what();
                return false;
            }
        }
    }
    return true;
}

}  // namespace thalweg::bench
