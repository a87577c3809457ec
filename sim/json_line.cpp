#include "sim/json_line.h"

#include <nlohmann/json.hpp>

namespace thalweg::sim {

std::string json_line(const Request& request, const Asked& asked, const nlohmann::ordered_json& found) {
    nlohmann::ordered_json line = {{asked.kind, asked.name},
                                   {"machine", request.machine.name},
                                   {"fabric", name_of(request.machine.fabric)},
                                   {"mapping", request.mapping},
                                   {"seed", request.seed},
                                   {"ranks", asked.ranks},
                                   {"hosts", asked.hosts},
                                   {"bytes", asked.bytes},
                                   {"rails", request.machine.rails}};
    for (const auto& [field, value] : found.items()) line[field] = value;
    // Names of files are no UTF-8 where they are not meant to be.
    return line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace thalweg::sim
