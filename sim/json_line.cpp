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
    return line.dump();
}

}  // namespace thalweg::sim
