#include "bench/columns.h"

#include <algorithm>
#include <set>
#include <sstream>

#include "algorithms/algorithm.h"
#include "base/text.h"
#include "json_text.h"

namespace thalweg::bench {
namespace {

// "A=1,B=2" -> {"A": 1, "B": 2}
nlohmann::json parse_controls(std::string_view text) {
    nlohmann::json controls = nlohmann::json::object();
    while (!text.empty()) {
        const auto comma = std::min(text.find(','), text.size());
        const auto item = text.substr(0, comma);
        const auto equal = item.find('=');
        controls[std::string(item.substr(0, equal))] = std::stol(std::string(item.substr(equal + 1)));
        text.remove_prefix(std::min(comma + 1, text.size()));
    }
    return controls;
}

// The family whose rows serve this MPI: Debian's builds take the same controls as the wheels.
std::string_view family(std::string_view mpi) { return mpi.substr(0, mpi.find("-debian")); }

struct AsynchronousRow {
    std::string_view mpi, setting, remark;
};
constexpr AsynchronousRow asynchronous_rows[] = {
#define ASYNCHRONOUS(mpi, setting, remark) {#mpi, setting, remark},
#include "bench/asynchronous.def"
#undef ASYNCHRONOUS
};

// " [transport=shm inside=coop]"
std::string suffix_of(const std::string& settings) {
    std::string suffix;
    std::istringstream words(settings);
    for (std::string word; words >> word;) {
        if (word.starts_with("THALWEG_")) word.erase(0, std::string_view("THALWEG_").size());
        for (char& c : word) c = lower(c);
        suffix += (suffix.empty() ? std::string(setting_begins) : " ") + word;
    }
    return tool::utf8_text(suffix + "]");  // a setting may name any file
}

}  // namespace

const std::vector<NativeRow>& native_rows() {
    static const std::vector<NativeRow> rows{
#define NATIVE(mpi, collective, name, how, settings, twin, changed) \
    {#mpi, #collective, name, #how, settings, twin, changed},
#include "bench/defaults.def"
#include "bench/natives.def"
#undef NATIVE
    };
    return rows;
}

std::string twin_of(const NativeRow& row) {
    if (row.twin.empty()) return "";
    for (const Twin& twin : twins())
        if (twin.family == row.mpi && twin.native == row.twin && name_of(twin.collective) == row.collective)
            // Of a parameter that is given twice the last value counts.
            return canonical(std::string(twin.choice) + (row.changed.empty() ? "" : ":") +
                             std::string(row.changed));
    return "";
}

std::string canonical(std::string_view text) {
    Choice choice;
    std::string why;
    return parse_choice(Collective::bcast, text, choice, why) == Status::ok ? to_text(choice)
                                                                            : std::string(text);
}

bool always_measured(std::string_view column) {
    return column == native_default || column == native_again || column == automatic;
}

std::vector<ColumnPlan> all_columns(std::string_view mpi, std::string_view collective,
                                    const std::vector<std::string>& ours) {
    std::vector<ColumnPlan> columns;
    columns.push_back({std::string(native_default), true, nlohmann::json::object(), "", ""});
    columns.push_back({std::string(native_again), true, nlohmann::json::object(), "", ""});
    columns.push_back({std::string(automatic), false, nlohmann::json::object(), "auto", ""});
    for (const auto& row : native_rows()) {
        if (row.mpi != family(mpi) || row.collective != collective || row.how == "default") continue;
        // Algorithms have the numbers of MPICH 5, Debian's is MPICH 4, which has others.
        if (mpi == "mpich-debian") continue;
        ColumnPlan column{"native " + std::string(row.name), true, nlohmann::json::object(), "", ""};
        if (row.how == "cvar") {
            column.controls = parse_controls(row.settings);
        } else {
            column.environment = row.settings;
        }
        columns.push_back(std::move(column));
    }
    std::set<std::string> known;
    for (const auto& choice : ours) known.insert(canonical(choice));
    for (const auto& row : native_rows()) {
        if (row.mpi != family(mpi) || row.collective != collective) continue;
        const std::string twin = twin_of(row);
        if (!twin.empty() && known.insert(twin).second)
            columns.push_back({std::string(ours_prefix) + twin, false, nlohmann::json::object(), twin, ""});
    }
    for (const auto& choice : ours)
        columns.push_back({std::string(ours_prefix) + choice, false, nlohmann::json::object(), choice, ""});
    return columns;
}

PortRings port_rings(int rails) { return {"ring", "kport_ring:ports=" + std::to_string(rails)}; }

std::vector<ColumnPlan> overlap_columns(std::string_view mpi, std::string_view collective,
                                        const std::vector<std::string>& ours,
                                        const std::vector<std::string>& agents, int rails) {
    std::vector<ColumnPlan> columns;
    const auto add = [&columns](std::string_view name, bool native, const std::string& option,
                                const std::string& environment, const std::string& way) {
        columns.push_back({std::string(name), native, nlohmann::json::object(), option, environment, way});
    };
    add(native_default, true, "", "", "nonblocking");
    add(native_again, true, "", "", "nonblocking");
    add(automatic, false, "auto", "", "nonblocking");
    add(native_tested, true, "", "", "tested");
    add(native_blocking, true, "", "", "blocking");
    add(socket_reference, true, "", "", "sockets");
    add(no_traffic, true, "", "", "nothing");
    if (rails > 1 && collective == "iallgather") {
        const PortRings rings = port_rings(rails);
        for (const std::string& choice : {rings.single, rings.several})
            if (std::find(ours.begin(), ours.end(), choice) == ours.end())
                add(std::string(ours_prefix) + choice, false, choice, "", "nonblocking");
    }
    for (const auto& choice : ours) add(std::string(ours_prefix) + choice, false, choice, "", "nonblocking");
    for (const auto& column : all_columns(mpi, collective.substr(1), {})) {
        // Of the columns of the blocking collective: the natives with settings of their own.
        if (!column.native || (column.controls.empty() && column.environment.empty())) continue;
        columns.push_back(column);
        columns.back().name.insert(native_default.size(), " blocking");
        columns.back().way = "alone";
    }
    for (const auto& row : asynchronous_rows)
        if (row.mpi == family(mpi)) add(native_async, true, "", std::string(row.setting), "nonblocking");
    for (const auto& agent : agents)
        add(std::string(agent_prefix) + agent, false, "auto", "THALWEG_AGENT=" + agent, "nonblocking");
    return columns;
}

std::vector<ColumnPlan> exchange_columns(const std::vector<std::string>& ours) {
    std::vector<ColumnPlan> columns;
    const auto add = [&columns](std::string_view name, bool native, std::string_view variant,
                                const std::string& option = "") {
        ColumnPlan column;
        column.name = name;
        column.native = native;
        column.option = option;
        column.variant = variant;
        columns.push_back(std::move(column));
    };
    add(native_default, true, "native");
    add(native_again, true, "native");
    add(native_plan, true, "native_init");
    add(window_per_call, true, "window_per_call");
    add(window_kept, true, "window_kept");
    add(window_kept_lock, true, "window_kept_lock");
    // Over windows without the preload object in between, so that they stand beside their baseline.
    for (const char* way : {"rma_fence", "rma_fence_barrier", "rma_lock", "rma_pscw", "rma_get"})
        add(way, true, way);
    add(automatic, false, "thalweg", "auto");
    add(automatic_plan, false, "thalweg_init", "auto");
    for (const auto& choice : ours)
        add(std::string(automatic_plan) + " " + choice, false, "thalweg_init", choice);
    return columns;
}

std::vector<ColumnPlan> halo_columns(const std::vector<std::string>& settings,
                                     const std::vector<std::string>& asked) {
    struct HaloColumn {
        std::string_view name, variant, option;
    };
    constexpr HaloColumn natives[] = {{native_default, "native", ""},
                                      {native_again, "native", ""},
                                      {native_halo_nonblocking, "native_i", ""},
                                      {native_plan, "native_init", ""},
                                      {"isend", "isend", ""},
                                      {"persistent", "persistent", ""},
                                      {"isend packed waitall", "packed_all", ""},
                                      {"isend packed waitsome", "packed_some", ""},
                                      {"isend packed waitany", "packed_any", ""},
                                      {sends_parted, "isend_parted", ""}};
    constexpr HaloColumn ours[] = {
        {automatic, "thalweg", "auto"},           {"thalweg spread", "thalweg", "spread"},
        {halo_nonblocking, "thalweg_i", "auto"},  {"thalweg nonblocking spread", "thalweg_i", "spread"},
        {automatic_plan, "thalweg_init", "auto"}, {"thalweg init spread", "thalweg_init", "spread"},
        {halo_parted, "thalweg_parted", "spread"}};
    std::vector<ColumnPlan> columns;
    const auto add = [&columns](const HaloColumn& from, const std::string& suffix,
                                const std::string& environment) {
        ColumnPlan column;
        column.name = std::string(from.name) + suffix;
        column.native = from.option.empty();
        column.option = from.option;
        column.variant = from.variant;
        column.environment = environment;
        columns.push_back(std::move(column));
    };
    for (const HaloColumn& each : natives) add(each, "", "");
    for (const HaloColumn& each : ours) add(each, "", "");
    for (const std::string& choice : asked) {
        const std::string name = std::string(automatic_plan) + " " + choice;
        add({name, "thalweg_init", choice}, "", "");
    }
    for (const std::string& setting : settings) {
        const std::string suffix = suffix_of(setting);
        add(natives[0], suffix, setting);
        for (const HaloColumn& each : ours) add(each, suffix, setting);
    }
    return columns;
}

std::vector<ColumnPlan> halo_pair_columns(bool crosses) {
    std::vector<ColumnPlan> columns;
    const auto add = [&columns](bool native, const std::string& environment, const std::string& inside) {
        ColumnPlan column;
        const std::string also = inside.empty() ? "" : " THALWEG_INSIDE=" + inside;
        column.name = std::string(native ? native_default : halo_paired) + suffix_of(environment + also);
        column.native = native;
        column.option = native ? "" : "spread";
        column.variant = native ? "native" : "thalweg_init";
        column.environment = environment;
        column.inside = inside;
        columns.push_back(std::move(column));
    };
    for (const char* between : {"", "eager", "get", "put"}) {
        std::string environment = "THALWEG_TRANSPORT=shm";
        if (between[0] != '\0') environment += std::string(" THALWEG_BETWEEN=") + between;
        add(true, environment, "");
        // The memory of this benchmark is each rank's own: nothing of it is direct.
        for (const char* inside : {"", "eager", "cma_get", "cma_put", "coop"})
            if (between[0] == '\0' || inside[0] != '\0') add(false, environment, inside);
        if (!crosses) break;
    }
    return columns;
}

std::vector<ColumnPlan> halo_overlap_columns(const std::vector<std::string>& settings) {
    std::vector<ColumnPlan> columns;
    for (auto& column : halo_columns({}))
        if (column.variant.ends_with("_i") || column.variant.ends_with("_init"))
            columns.push_back(std::move(column));
    std::vector<ColumnPlan> further;
    for (const std::string& setting : settings)
        for (ColumnPlan column : columns) {
            if (column.name == native_plan) continue;
            column.name += suffix_of(setting);
            column.environment = setting;
            further.push_back(std::move(column));
        }
    columns.insert(columns.end(), further.begin(), further.end());
    return columns;
}

std::string_view asynchronous_remark(std::string_view mpi) {
    for (const auto& row : asynchronous_rows)
        if (row.mpi == family(mpi)) return row.remark;
    return "";
}

std::vector<std::string> twins_of_default(std::string_view mpi, std::string_view collective) {
    std::vector<std::string> twins;
    for (const auto& row : native_rows())
        if (row.mpi == family(mpi) && row.collective == collective && row.how == "default")
            twins.push_back(twin_of(row));
    return twins;
}

std::string same_as_ours(std::string_view mpi, std::string_view collective, std::string_view name) {
    for (const auto& row : native_rows())
        if (row.mpi == family(mpi) && row.collective == collective &&
            "native " + std::string(row.name) == name)
            return twin_of(row);
    return "";
}

}  // namespace thalweg::bench
