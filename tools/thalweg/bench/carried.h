// What carried an application's calls, and how its threads waited: told by the report of its run
// (THALWEG_REPORT), because programs know nothing of Thalweg.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace thalweg::bench {

// As the rows of other benches have it in their context (results.h). Both are empty where no such call was
// taken.
struct Carried {
    std::string transport, waiting;
};

// Of an operation, as reports name it, on the communicators on which it was taken; several values with
// commas.
Carried carried_by(const nlohmann::json& report, const std::string& operation);

// What a version of an application of apps/ calls, as reports name it; empty: sends and receives.
std::string operation_of(const std::string& app, const std::string& version);

}  // namespace thalweg::bench
