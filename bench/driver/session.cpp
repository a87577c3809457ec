#include "driver/session.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "bench/recorded.h"
#include "json_text.h"

namespace thalweg::bench {
namespace {

constexpr double start_margin_seconds =
    2e-3;  // from "agreed" to the instant: enough for the agreement to travel
constexpr double sleepers_margin_seconds = 6e-3;  // the same where ranks look for it now and then
constexpr long nap_ns = 200'000;
constexpr double wake_up_seconds = 3e-4;  // what a sleeper may oversleep; spun where each rank has a core

bool same_clock(MPI_Comm comm) {
    unsigned char boot[36] = {}, root[36];
    if (FILE* file = std::fopen("/proc/sys/kernel/random/boot_id", "r")) {
        if (std::fread(boot, 1, sizeof boot, file) != sizeof boot) boot[0] = 0;
        std::fclose(file);
    }
    std::copy(boot, boot + sizeof boot, root);
    PMPI_Bcast(root, sizeof root, MPI_BYTE, 0, comm);
    int same = boot[0] != 0 && std::equal(boot, boot + sizeof boot, root), all = 0;
    PMPI_Allreduce(&same, &all, 1, MPI_INT, MPI_MIN, comm);
    return all != 0;
}

void nap_until_complete(MPI_Request& request) {
    const timespec nap{0, nap_ns};
    for (int done = 0;;) {
        PMPI_Test(&request, &done, MPI_STATUS_IGNORE);
        if (done) return;
        clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, nullptr);
    }
}

}  // namespace

Session::Session() {
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &size);
    PMPI_Comm_dup(MPI_COMM_WORLD, &control);
    MPI_Comm node = MPI_COMM_NULL;
    PMPI_Comm_split_type(control, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    PMPI_Comm_rank(node, &local_rank);
    int lowest = rank;
    PMPI_Allreduce(MPI_IN_PLACE, &lowest, 1, MPI_INT, MPI_MIN, node);
    PMPI_Comm_free(&node);
    host_of.resize(static_cast<std::size_t>(size));
    PMPI_Allgather(&lowest, 1, MPI_INT, host_of.data(), 1, MPI_INT, control);
    std::vector<int> leaders = host_of;
    std::sort(leaders.begin(), leaders.end());
    leaders.erase(std::unique(leaders.begin(), leaders.end()), leaders.end());
    for (int& host : host_of)
        host = static_cast<int>(std::lower_bound(leaders.begin(), leaders.end(), host) - leaders.begin());
    hosts = static_cast<int>(leaders.size());
    shared_clock = same_clock(control);
    // All ranks of a shared clock run on this machine, whatever hosts they stand for.
    spins = size <= sysconf(_SC_NPROCESSORS_ONLN);
}

Session::~Session() { PMPI_Comm_free(&control); }

void Session::describe(std::ostream& out) const {
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;
    PMPI_Get_library_version(version, &length);
    nlohmann::json line;
    line["kind"] = "launch";
    line["mpi"] = std::string(version).substr(0, std::string(version).find('\n'));
    line["ranks"] = size;
    line["hosts"] = hosts;
    line["shared_clock"] = shared_clock;
    line["link_counters"] = links.present();
    // What the lab measured about itself, and every setting of ours that was in effect.
    for (char** entry = environ; *entry != nullptr; ++entry) {
        const std::string text = *entry;
        if (!text.starts_with("THALWEG")) continue;
        line["settings"][text.substr(0, text.find('='))] = recorded_value(text.substr(text.find('=') + 1));
    }
    write_row(out, tool::json_text(line));
}

void Session::leave_out_unknown(Config& config) {
    for (std::size_t i = config.columns.size(); i-- > 0;) {
        const auto& controls = config.columns[i].controls;
        std::string why;
        const bool all = std::all_of(controls.begin(), controls.end(), [&](const Control& control) {
            return controls_.takes(control.variable, why);
        });
        if (all) continue;
        if (rank == 0)
            std::fprintf(stderr, "bench: %s is left out: %s\n", config.columns[i].name.c_str(), why.c_str());
        config.columns.erase(config.columns.begin() + static_cast<std::ptrdiff_t>(i));
        for (Point& point : config.points) {
            std::erase(point.columns, i);
            for (std::size_t& column : point.columns) column -= column > i;
        }
    }
}

bool Session::polls() const { return spins || !shared_clock; }

void Session::meet() {
    if (polls()) {
        PMPI_Barrier(control);
        return;
    }
    MPI_Request request;
    PMPI_Ibarrier(control, &request);
    nap_until_complete(request);
}

// Not by a broadcast, which would leave the entry of the native one in the caches, and no other column's.
double Session::agree_on_start() {
    meet();
    double instant = now() + (polls() ? start_margin_seconds : sleepers_margin_seconds);
    if (polls()) {
        PMPI_Allreduce(MPI_IN_PLACE, &instant, 1, MPI_DOUBLE, MPI_MAX, control);
    } else {
        MPI_Request request;
        PMPI_Iallreduce(MPI_IN_PLACE, &instant, 1, MPI_DOUBLE, MPI_MAX, control, &request);
        nap_until_complete(request);
    }
    latest_start_ = instant;
    return instant;
}

void Session::await(double instant) {
    if (!shared_clock) {
        PMPI_Barrier(control);
        return;
    }
    sleep_until(instant - (spins ? wake_up_seconds : 0));
    // A core that wakes up late would count as part of a short call.
    while (spins && now() < instant) {
    }
}

void Session::sleep_until(double instant) {
    timespec t;
    t.tv_sec = static_cast<time_t>(instant);
    t.tv_nsec = static_cast<long>((instant - static_cast<double>(t.tv_sec)) * 1e9);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, nullptr) != 0) {
    }
}

Session::Timed Session::time(const std::function<int()>& what) {
    const double instant = agree_on_start();
    await(instant);
    const double began = now();
    if (what() != MPI_SUCCESS) die("the call failed");
    const double ended = now();
    double most[2] = {ended - (shared_clock ? instant : began), shared_clock ? began - instant : 0.0};
    meet();
    PMPI_Allreduce(MPI_IN_PLACE, most, 2, MPI_DOUBLE, MPI_MAX, control);
    return {most[0], most[1] > late_seconds};
}

bool Session::select(const Column& column, const std::string& operation) {
    bool changed = false;
    std::string why;
    if (!offer(column, operation, changed, why)) die(why);
    return changed;
}

bool Session::offer(const Column& column, const std::string& operation, bool& changed, std::string& why) {
    changed = false;
    if (!controls_.apply(column.controls, why)) die(why);
    if (column.native) return true;
    if (ours.set_option == nullptr) die("column " + column.name + " needs `thalweg run` around the driver");
    if (inside_ != column.inside) {
        // What it decides anew is only how what comes next is copied.
        const char* const wanted = column.inside.empty() ? nullptr : column.inside.c_str();
        if (ours.set_option("THALWEG_INSIDE", wanted) != THALWEG_OK)
            die("this Thalweg refuses THALWEG_INSIDE=" + column.inside);
        inside_ = column.inside;
    }
    if (selected_ && *selected_ == column.option) return true;
    std::string option = "THALWEG_" + operation;
    for (auto& c : option) c = static_cast<char>(std::toupper(c));
    changed = true;
    if (ours.set_option(option.c_str(), column.option.c_str()) == THALWEG_OK) {
        selected_ = column.option;
        return true;
    }
    why = "this Thalweg refuses " + option + "=" + column.option;
    return false;
}

int Session::status_of(std::uint64_t wrong_words) const {
    if (wrong_words == 0) return 0;
    if (rank == 0)
        std::fprintf(stderr, "thalweg bench: %llu wrong words were received\n",
                     static_cast<unsigned long long>(wrong_words));
    return 1;
}

}  // namespace thalweg::bench
