// The verbs of `thalweg lab`.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <stdexcept>
#include <string_view>

#include "environment.h"
#include "json_text.h"
#include "lab.h"
#include "shell_words.h"

extern char** environ;

namespace thalweg::lab {

namespace {

// Links may add up to this share of the capacity: above it the cores, not the wire, set the pace.
constexpr double usable_share = 0.6;

std::string megabits(double bytes_per_s) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f Mbit/s", bytes_per_s * 8e-6);
    return text;
}

std::string number(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.9g", value);
    return text;
}

void refuse_overfull(const Options& options, const Capacity& capacity) {
    const Network& network = options.network;
    const double wanted = network.rate_bits_per_s / 8.0 * network.hosts * network.rails;
    if (options.force || network.hosts < 2 || wanted <= usable_share * capacity.bytes_per_s) return;
    fail(std::to_string(network.hosts) + " hosts x " + std::to_string(network.rails) +
         " rails at this rate are " + megabits(wanted) + " in all, more than 60 % of the " +
         megabits(capacity.bytes_per_s) +
         " that this machine carries: choose a lower --rate (or --force, and measure the cores)");
}

// The capacity was measured at full speed, where the kernel moves more bytes at a time than at a lab's rate.
void warn_of_busy_cores(const Options& options, const Calibration& calibration) {
    const double needed = options.network.rate_bits_per_s / 8.0 * options.network.hosts *
                          options.network.rails * calibration.cpu_s_per_byte /
                          static_cast<double>(sysconf(_SC_NPROCESSORS_ONLN));
    if (needed > usable_share)
        std::fprintf(
            stderr,
            "lab: with all links busy the kernel alone needs %.0f %% of the cores: choose a lower --rate\n",
            100 * needed);
}

struct Facts {
    Capacity capacity;
    Calibration calibration;
    double set_up_s = 0;
};

std::string ppn_text(const Options& options) {
    std::string text;
    for (const int count : options.ppn) text += (text.empty() ? "" : ",") + std::to_string(count);
    return text;
}

Settings facts_as_environment(const Options& options, const Facts& facts, const Launch& launch) {
    return {{"THALWEG_LAB_HOSTS", std::to_string(options.network.hosts)},
            {"THALWEG_LAB_PPN", ppn_text(options)},
            {"THALWEG_LAB_RAILS", std::to_string(options.network.rails)},
            {"THALWEG_LAB_MAP", options.cyclic ? "cyclic" : "block"},
            {"THALWEG_LAB_MPI", name_of(options.mpi)},
            {"THALWEG_LAB_WAITING", launch.waiting},
            {"THALWEG_LAB_NOMINAL_BITS_PER_S", std::to_string(options.network.rate_bits_per_s)},
            {"THALWEG_LAB_BURST_BYTES", std::to_string(options.network.burst_bytes)},
            {"THALWEG_LAB_TCP", congestion_in_use(options.network)},
            {"THALWEG_LAB_RATE_BYTES_PER_S", number(facts.calibration.rate_bytes_per_s)},
            {"THALWEG_LAB_LATENCY_S", number(facts.calibration.latency_s)},
            {"THALWEG_LAB_CAPACITY_BYTES_PER_S", number(facts.capacity.bytes_per_s)},
            {"THALWEG_LAB_CPU_S_PER_BYTE", number(facts.calibration.cpu_s_per_byte)}};
}

nlohmann::json facts_as_json(const Options& options, const Facts& facts, const Launch& launch,
                             const Settings& settings, int status) {
    nlohmann::json json{{"hosts", options.network.hosts},
                        {"ppn", options.ppn},
                        {"ranks", options.total_ranks()},
                        {"rails", options.network.rails},
                        {"map", options.cyclic ? "cyclic" : "block"},
                        {"mpi", name_of(options.mpi)},
                        {"waiting", launch.waiting},
                        {"nominal_bits_per_s", options.network.rate_bits_per_s},
                        {"burst_bytes", options.network.burst_bytes},
                        {"tcp", congestion_in_use(options.network)},
                        {"rate_bytes_per_s", facts.calibration.rate_bytes_per_s},
                        {"latency_s", facts.calibration.latency_s},
                        {"cpu_s_per_byte", facts.calibration.cpu_s_per_byte},
                        {"calibrated_at", facts.calibration.measured_at},
                        {"capacity", to_json(facts.capacity)},
                        {"forced", options.force},
                        {"disturbed", !is_near_nominal(options.network, facts.calibration)},
                        {"set_up_s", facts.set_up_s},
                        {"launch", launch.argv},
                        {"program", options.program},
                        {"exit_status", status}};
    for (const auto& [name, value] : settings) json["settings"][name] = value;
    return json;
}

// The script that the launchers start in place of ssh; on a file system that only this lab sees.
void write_agent(const Cluster& cluster) {
    const std::string path = cluster.folder + "/ssh";
    write_file(path, "#!/bin/sh\nexec " + tool::shell_quoted(own_path()) + " lab agent-exec \"$@\"\n");
    if (chmod(path.c_str(), 0755) != 0) fail_errno("cannot make " + path + " executable");
}

Calibration calibrate(Cluster& cluster, bool again) {
    Calibration calibration;
    if (!again && cached_calibration(cluster.network, calibration)) return calibration;
    calibration = measure_calibration(cluster);
    if (cluster.network.hosts < 2) return calibration;
    if (is_near_nominal(cluster.network, calibration))
        store_calibration(cluster.network, calibration);
    else
        std::fprintf(
            stderr,
            "lab: the links do not carry what they should; is the machine busy with something else?\n");
    return calibration;
}

constexpr const char* usage =
    "usage: thalweg lab VERB …\n"
    "  run       make hosts, run an MPI program on them, remove them (run --help)\n"
    "  shell     the same, with a shell or a plain command at the launcher's side\n"
    "  exec      run a command on a host of a running lab: exec [--lab PID] HOST -- COMMAND…\n"
    "  check     does this machine have what a lab needs? tried, not assumed\n"
    "  capacity  what this machine carries over all links [--again]\n"
    "  list      running labs\n"
    "  clean     remove what an owner that was killed may have left\n";

int print_help() {
    std::printf("%s\n%s", usage, run_usage().c_str());
    return 0;
}

int run_verb(const Args& args, bool shell) {
    Options options = parse_run_options(args);
    if (options.help) return print_help();
    if (shell) {
        options.mpi = Mpi::none;
        const char* preferred = std::getenv("SHELL");
        if (options.program.empty()) options.program = {preferred ? preferred : "/bin/sh"};
    }
    if (options.program.empty()) fail("there is no program to run; `thalweg lab run --help` shows how");
    const std::string program = find_program(options.program[0]);
    if (program.empty()) fail("there is no program " + options.program[0]);
    if (const std::string why = tool::why_not_writable(options.json_file); !why.empty())
        fail("--json: " + why);
    const MpiInstall install = find_mpi(options.mpi, options.mpi_root);
    Facts facts;
    if (options.network.hosts > 1) {
        facts.capacity = machine_capacity(options.network.burst_bytes, false, options.quiet);
        refuse_overfull(options, facts.capacity);
    }
    for (const auto& name : enclosing_job_variables(environ, options.keep_env)) unsetenv(name.c_str());

    const double start = now_s();
    return with_cluster(options.network, [&](Cluster& cluster) {
        facts.set_up_s = now_s() - start;
        facts.calibration = calibrate(cluster, options.calibrate);
        if (!options.quiet && options.network.hosts == 1)
            std::fprintf(stderr, "lab: 1 host up, no link to measure\n");
        else if (!options.quiet)
            std::fprintf(stderr, "lab: %d hosts up, %s payload, %.3f ms one way\n", options.network.hosts,
                         megabits(facts.calibration.rate_bytes_per_s).c_str(),
                         facts.calibration.latency_s * 1e3);
        warn_of_busy_cores(options, facts.calibration);
        write_agent(cluster);
        Launch launch = plan_launch(options, install, cluster.folder,
                                    static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)), help_library());
        write_file(cluster.folder + "/hosts", launch.hostfile);
        launch.argv.push_back(program);
        launch.argv.insert(launch.argv.end(), options.program.begin() + 1, options.program.end());
        Settings settings = launch.overrides;
        for (const auto& setting : launch.defaults)
            if (!std::getenv(setting.first.c_str())) settings.push_back(setting);
        Settings environment = facts_as_environment(options, facts, launch);
        environment.insert(environment.end(), settings.begin(), settings.end());
        const int status = run_program(cluster, launch.argv, environment);
        if (!options.json_file.empty())
            write_file(options.json_file,
                       tool::json_text(facts_as_json(options, facts, launch, settings, status), 2) + "\n");
        return status;
    });
}

// Tried, not assumed: two hosts, a shaped link, and a transfer that takes as long as the shaper says.
int check_verb() {
    Network network;
    network.hosts = 2;
    network.rate_bits_per_s = 20'000'000;
    constexpr std::uint64_t bytes = 256 * 1024;
    const double expected_s =
        (bytes - 2.0 * network.burst_bytes) * 8 / static_cast<double>(network.rate_bits_per_s);
    const int status = with_cluster(network, [&](Cluster& cluster) {
        const double took_s = shaped_transfer_s(cluster, bytes);
        if (took_s < 0.9 * expected_s)
            fail("the shaper (tbf) lets more through than its rate: " + number(took_s) + " s instead of " +
                 number(expected_s));
        return 0;
    });
    if (status == 0) std::printf("namespaces, veth, bridge and tbf work here\n");
    return status == 0 ? 0 : 1;
}

int capacity_verb(const Args& args) {
    bool again = false;
    for (const auto& arg : args) {
        if (arg != "--again") fail("usage: thalweg lab capacity [--again]");
        again = true;
    }
    const Capacity capacity = machine_capacity(Network{}.burst_bytes, again, false);
    std::printf(
        "%s over all links together (measured %s, %.0f %% of the machine in use by others);"
        " labs may add up to %s\n",
        megabits(capacity.bytes_per_s).c_str(), capacity.measured_at.c_str(), 100 * capacity.foreign_load,
        megabits(usable_share * capacity.bytes_per_s).c_str());
    return 0;
}

int list_verb() {
    for (const auto& lab : running_labs())
        std::printf("%d\t%zu hosts\t%s\n", lab.pid, lab.hosts.size(),
                    lab.owner ? ("owner " + std::to_string(lab.owner)).c_str() : "abandoned");
    return 0;
}

bool is_help(const std::string& word) { return word == "--help" || word == "-h"; }

bool is_verb(const std::string& word) {
    constexpr std::string_view verbs[] = {"run", "shell", "exec", "check", "capacity", "list", "clean"};
    return std::find(std::begin(verbs), std::end(verbs), word) != std::end(verbs);
}

int dispatch(const std::string& verb, const Args& args) {
    if (!args.empty() && is_help(args[0]) && is_verb(verb)) return print_help();
    if (verb == "run") return run_verb(args, false);
    if (verb == "shell") return run_verb(args, true);
    if (verb == "exec") return exec_verb(args);
    if (verb == "agent-exec") return agent_exec_verb(args);
    const bool alone = verb == "check" || verb == "list" || verb == "clean";
    if (alone && !args.empty()) {
        std::fprintf(stderr, "thalweg lab: `thalweg lab %s` takes no %s\n", verb.c_str(), args[0].c_str());
        return failure;
    }
    if (verb == "check") return check_verb();
    if (verb == "capacity") return capacity_verb(args);
    if (verb == "list") return list_verb();
    if (verb == "clean") return clean();
    if (is_help(verb) || verb == "help") return print_help();
    if (!verb.empty()) fail("there is no verb " + verb + "; `thalweg lab --help` lists them");
    std::fprintf(stderr, "%s", usage);
    return failure;
}

}  // namespace

}  // namespace thalweg::lab

int lab_main(int argc, char** argv) {
    using namespace thalweg::lab;
    const Args all(argv + (argc > 0), argv + argc);
    const std::string verb = all.empty() ? "" : all[0];
    try {
        return dispatch(verb, all.empty() ? all : Args(all.begin() + 1, all.end()));
    } catch (const int status) {
        return status;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "thalweg lab: %s\n", error.what());
        return verb == "check" ? 1 : failure;
    }
}
