// Capacity is a property of the machine and calibration one of a kind of lab: both are measured once and
// kept, in $XDG_CACHE_HOME/thalweg or ~/.cache/thalweg.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>

#include "lab.h"

namespace thalweg::lab {

namespace {

constexpr long calibration_lifetime_s = 3600;
// A capacity that was measured while others used the machine is too low; it serves for a while, not for ever.
constexpr double quiet_load = 0.15;
constexpr long disturbed_lifetime_s = 600;

std::string machine_key() {
    utsname info{};
    uname(&info);
    std::string id = strip(read_file("/etc/machine-id"));
    if (id.empty()) id = info.machine;
    return id + " " + info.release + " " + std::to_string(sysconf(_SC_NPROCESSORS_ONLN)) + " cores";
}

std::string cache_file() { return cache_folder() + "/lab.json"; }

nlohmann::json load() {
    auto json = nlohmann::json::parse(read_file(cache_file()), nullptr, false);
    return json.is_object() ? json : nlohmann::json::object();
}

// One reader-modifier at a time; readers always see a whole file.
void store(const std::string& table, const std::string& key, nlohmann::json row) {
    row["stored_at_s"] = static_cast<long>(std::time(nullptr));
    const int lock = open((cache_file() + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (lock >= 0) flock(lock, LOCK_EX);
    auto json = load();
    if (!json[table].is_object()) json[table] = nlohmann::json::object();
    json[table][key] = std::move(row);
    const std::string fresh = cache_file() + ".new";
    try {
        write_file(fresh, json.dump(2) + "\n");
        if (rename(fresh.c_str(), cache_file().c_str()) != 0) fail_errno("cannot write " + cache_file());
    } catch (const std::exception& error) {  // a lab without a memory is slower to start, and no worse
        std::fprintf(stderr, "lab: %s; what was measured is not kept: set XDG_CACHE_HOME\n", error.what());
    }
    if (lock >= 0) close(lock);
}

// Throws where the row, or a field of it that is read, is something else than was written here.
bool find_row(const std::string& table, const std::string& key, long lifetime_s, nlohmann::json& row) {
    const auto json = load();
    if (!json.contains(table) || !json[table].contains(key)) return false;
    row = json[table][key];
    return lifetime_s == 0 || std::time(nullptr) - row.value("stored_at_s", 0L) < lifetime_s;
}

std::string calibration_key(const Network& network) {
    return machine_key() + ", " + std::to_string(network.hosts) + " hosts " + std::to_string(network.rails) +
           " rails " + std::to_string(network.rate_bits_per_s) + " bit/s " +
           std::to_string(network.burst_bytes) + " B " + congestion_in_use(network);
}

}  // namespace

std::string cache_folder() {
    const char* cache = std::getenv("XDG_CACHE_HOME");
    const char* home = std::getenv("HOME");
    std::string folder = cache && *cache ? cache : std::string(home && *home ? home : "/tmp") + "/.cache";
    mkdir(folder.c_str(), 0755);
    folder += "/thalweg";
    mkdir(folder.c_str(), 0755);
    return folder;
}

nlohmann::json to_json(const Capacity& capacity) {
    return {{"bytes_per_s", capacity.bytes_per_s},
            {"cpu_s_per_byte", capacity.cpu_s_per_byte},
            {"foreign_load", capacity.foreign_load},
            {"samples", capacity.samples},
            {"measured_at", capacity.measured_at}};
}

Capacity machine_capacity(std::uint64_t burst_bytes, bool again, bool quiet) {
    const std::string key = machine_key() + ", " + std::to_string(burst_bytes) + " B";
    const auto read = [&](Capacity& capacity) {
        nlohmann::json row;
        if (!find_row("capacity", key, 0, row)) return false;
        capacity.foreign_load = row.value("foreign_load", 0.0);
        if (capacity.foreign_load > quiet_load && !find_row("capacity", key, disturbed_lifetime_s, row))
            return false;
        capacity.bytes_per_s = row.value("bytes_per_s", 0.0);
        capacity.cpu_s_per_byte = row.value("cpu_s_per_byte", 0.0);
        capacity.samples = row.value("samples", std::vector<double>{});
        capacity.measured_at = row.value("measured_at", "");
        return capacity.bytes_per_s > 0;
    };
    const auto find = [&](Capacity& capacity) {
        try {
            return read(capacity);
        } catch (const nlohmann::json::exception&) {
            return false;  // measured anew
        }
    };
    Capacity capacity;
    if (!again && find(capacity)) return capacity;
    // Two measurements at once would each see half of the machine.
    const int lock = open((cache_folder() + "/capacity.lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (lock >= 0) flock(lock, LOCK_EX);
    if (again || !find(capacity)) {
        if (!quiet) std::fprintf(stderr, "lab: measuring what this machine carries, once, about 10 s\n");
        capacity = measure_capacity(burst_bytes);
        store("capacity", key, to_json(capacity));
    }
    if (lock >= 0) close(lock);
    return capacity;
}

bool cached_calibration(const Network& network, Calibration& calibration) {
    try {
        nlohmann::json row;
        if (!find_row("calibration", calibration_key(network), calibration_lifetime_s, row)) return false;
        Calibration read;
        read.rate_bytes_per_s = row.value("rate_bytes_per_s", 0.0);
        read.latency_s = row.value("latency_s", 0.0);
        read.cpu_s_per_byte = row.value("cpu_s_per_byte", 0.0);
        read.measured_at = row.value("measured_at", "");
        calibration = read;
        return true;
    } catch (const nlohmann::json::exception&) {
        return false;  // measured anew
    }
}

void store_calibration(const Network& network, const Calibration& calibration) {
    store("calibration", calibration_key(network),
          {{"rate_bytes_per_s", calibration.rate_bytes_per_s},
           {"latency_s", calibration.latency_s},
           {"cpu_s_per_byte", calibration.cpu_s_per_byte},
           {"measured_at", calibration.measured_at}});
}

}  // namespace thalweg::lab
