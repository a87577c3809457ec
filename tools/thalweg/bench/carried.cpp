#include "bench/carried.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "bench/amr.h"

namespace thalweg::bench {
namespace {

// Between what carries a communicator's nonblocking collectives and what its exchanges go over instead.
constexpr std::string_view exchanges_apart = ", exchanges over ";

bool is_exchange(std::string_view operation) {
    return operation.find("alltoall") != operation.npos || operation.find("neighbor") != operation.npos;
}

bool took(const nlohmann::json& communicator, const std::string& operation) {
    const auto rows = communicator.value("rows", nlohmann::json::array());
    return std::any_of(rows.begin(), rows.end(), [&](const nlohmann::json& row) {
        return row.value("operation", "") == operation && row.contains("algorithm");
    });
}

// Where nothing was set up for nonblocking operations, blocking ones go over the MPI library.
std::string transport_of(const nlohmann::json& communicator, bool exchange) {
    const std::string over = communicator.value("nonblocking_over", "mpi");
    const auto apart = over.find(exchanges_apart);
    if (apart == over.npos) return over;
    return exchange ? over.substr(apart + exchanges_apart.size()) : over.substr(0, apart);
}

}  // namespace

Carried carried_by(const nlohmann::json& report, const std::string& operation) {
    if (!report.is_object()) return {};
    std::set<std::string> transports, waiting;
    for (const auto& communicator : report.value("communicators", nlohmann::json::array())) {
        if (!took(communicator, operation)) continue;
        const std::string transport = transport_of(communicator, is_exchange(operation));
        const std::string wait = communicator.value("wait", "");
        transports.insert(transport);
        // The MPI library has nothing to sleep on: it is polled between naps.
        waiting.insert(wait == "sleep" && transport == "mpi" ? "naps" : wait);
    }
    return {fmt::format("{}", fmt::join(transports, ", ")), fmt::format("{}", fmt::join(waiting, ", "))};
}

std::string operation_of(const std::string& app, const std::string& version) {
    if (app != amr_app) return version == "blocking" ? "allgather" : "iallgather";
    if (version == "neighbor") return "neighbor_alltoallw";
    return version == "init" ? "neighbor_alltoallw_init" : "";
}

}  // namespace thalweg::bench
