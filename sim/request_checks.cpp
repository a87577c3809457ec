#include "sim/request_checks.h"

#include <fstream>
#include <sstream>
#include <string_view>

#include "base/text.h"
#include "model/cost.h"
#include "select/select.h"
#include "sim/mapping.h"
#include "sim/natives.h"

namespace thalweg::sim {
namespace {

// A library whose way with messages is known, and whose defaults are not published.
constexpr std::string_view unmodelled = "impi";

std::string too_long(std::uint64_t bytes, int ranks) {
    return "--bytes " + bytes_text(bytes) + " among " + std::to_string(ranks) +
           " ranks keep a link busy for longer than the cost model can count, 53 days: ask for less";
}

}  // namespace

std::string read_limits(const Request& request) {
    if (request.per_host > request.machine.cores_per_host)
        return "--per-host " + std::to_string(request.per_host) + ": a host of " + request.machine.name +
               " has " + std::to_string(request.machine.cores_per_host) +
               " cores, and ranks that share one are not modelled";
    // How many times `bytes` a rank has. The keys of a program that sorts are all of them; a rank of a grid
    // has six faces, and a refined one four times the cells.
    const auto times = [&request](int ranks) -> std::uint64_t {
        if (request.halo || request.app == "sort") return 1;
        if (request.app == "stencil") return 6;
        if (request.app == "amr") return 24;
        const bool of_all =
            request.collective == Collective::allgather || request.collective == Collective::alltoallv;
        return of_all ? static_cast<std::uint64_t>(ranks) : 1;
    };
    for (const std::uint64_t bytes : request.bytes)
        for (const int ranks : request.ranks)
            if (bytes > most_rank_bytes / times(ranks))
                return "--bytes " + bytes_text(bytes) + " among " + std::to_string(ranks) +
                       " ranks: no rank has room for more than 1 TiB";
    for (const int ranks : request.ranks) {
        Topology topology;
        std::string why;
        if (failed(map_ranks(request.mapping, ranks, request.per_host, request.machine.hosts, request.seed,
                             topology, why)))
            return why;
        for (const std::uint64_t bytes : request.bytes)
            if (!request.halo && request.app.empty() && !request.rma &&
                wire_limit(request.collective, bytes, topology, request.machine.wire()) >= longest_counted)
                return too_long(bytes, ranks);
        for (std::size_t size = 0; !request.pattern.empty() && size < request.sizes(); ++size) {
            Pattern pattern;
            if (why = request.read_pattern(ranks, size, pattern); !why.empty()) return why;
            if (pattern_limit(topology, pattern, request.machine) >= longest_seconds)
                return too_long(request.bytes[size], ranks);
        }
        for (std::size_t size = 0; request.halo && size < request.sizes(); ++size) {
            Faces faces;
            if (why = request.read_faces(ranks, size, faces); !why.empty()) return why;
        }
    }
    return {};
}

std::string read_table(const std::string& path, Request& request) {
    std::ifstream file(path);
    file.peek();  // a folder can be opened, and not read
    std::stringstream content;
    content << file.rdbuf();
    if (!file) return "cannot read the tuning table " + path;
    request.table = content.str();
    std::string why;
    return failed(check_table(request.table, why)) ? path + ": " + why : std::string();
}

std::string read_columns(Request& request) {
    if (request.columns.empty()) request.columns = {"auto", "mpich", "openmpi"};
    for (const std::string& column : request.columns) {
        Choice choice;
        std::string why;
        if (column == "auto") continue;
        if (column == unmodelled)
            return "--algorithm " + column + ": no model of its defaults; --mpi " + column +
                   " simulates Thalweg over it";
        if (native_model(column) == nullptr) {
            if (failed(parse_choice(request.collective, column, choice, why)))
                return request.halo ? "halo is an alltoallv of few pairs: " + why : why;
        } else if (!request.halo && request.app.empty() &&
                   native_choice(column, request.collective, 8, Topology::single_node(2)).empty()) {
            return "--algorithm " + column + ": no model of its " + std::string(name_of(request.collective));
        }
    }
    if (native_model(request.family) == nullptr && request.family != unmodelled)
        return "--mpi " + request.family + " is not valid: expected mpich, openmpi, impi or mvapich";
    if (request.family == unmodelled && (request.rma || !request.app.empty()))
        return "--mpi " + request.family + ": no model of its defaults, which " +
               (request.rma ? "--rma" : "app") + " compares with";
    const bool faces = request.halo || request.app == "stencil" || request.app == "amr";
    if (!faces && request.family != unmodelled &&
        native_choice(request.family, request.collective, 8, Topology::single_node(2)).empty())
        return "--mpi " + request.family + ": no model of its " +
               (request.app.empty() ? std::string(name_of(request.collective)) : request.app);
    if (!request.trace_path.empty() && request.columns.size() * request.ranks.size() * request.sizes() != 1)
        return "--trace shows one operation: give one --algorithm, one --ranks and one --bytes";
    return {};
}

}  // namespace thalweg::sim
