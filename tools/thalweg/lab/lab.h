// The emulated cluster: hosts are sets of Linux namespaces on one bridge per rail, every link shaped in both
// directions, so that the wire and not the cores is the bottleneck. docs/lab.md describes it for users.
//
// Everything a lab makes lives in namespaces of its own (the bridges too), so nothing of it is visible
// outside, two labs cannot collide, and all of it is gone when its first process is.
//
// Errors inside this folder are std::runtime_error with one sentence; lab_main prints it and returns 2.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace thalweg::lab {

using Args = std::vector<std::string>;
using Settings = std::vector<std::pair<std::string, std::string>>;

inline constexpr int max_hosts = 200;
inline constexpr int max_rails = 8;
inline constexpr int max_ranks_per_host = 1024;
inline constexpr int failure = 2;  // the lab itself failed; a program's own exit status is passed on

// What the links are. Rates are nominal, in bits per second on the wire, per link and direction.
struct Network {
    int hosts = 4;
    int rails = 1;
    std::uint64_t rate_bits_per_s = 100'000'000;
    std::uint64_t burst_bytes = 16 * 1024;
    std::string congestion = "cubic";  // TCP's congestion control; the machine's own where it lacks that one
};

enum class Mpi { mpich, openmpi, impi, mpich_debian, openmpi_debian, none };

struct Options {
    Network network;
    std::vector<int> ppn{2};  // ranks per host; the last entry holds for the remaining hosts
    int ranks = 0;            // 0: as many as ppn gives
    Mpi mpi = Mpi::mpich;
    bool cyclic = false;
    bool force = false;
    bool calibrate = false;
    bool quiet = false;
    bool help = false;  // is all that was asked for
    std::string json_file;
    std::string mpi_root;
    std::string yield_help = "auto";  // auto, on, off
    Args keep_env;
    Args program;

    int ppn_of(int host) const { return ppn[host < static_cast<int>(ppn.size()) ? host : ppn.size() - 1]; }
    int total_ranks() const;
};

// --- options.cpp
// ---------------------------------------------------------------------------------------------
Options parse_run_options(const Args& args);
std::uint64_t parse_rate(const std::string& text);   // of --rate: "100mbit" -> bits per second
std::uint64_t parse_bytes(const std::string& text);  // of --burst: "16kb" -> bytes, 1024-based
const char* name_of(Mpi mpi);
Mpi parse_mpi(const std::string& text);  // throws with one sentence that names them all
std::string run_usage();

// --- network.cpp: the commands for ip and tc, as text; pure functions
// ------------------------------------------
std::string host_name(int host);             // "node0"
std::string rail_name(int rail);             // "rail0"
std::string address_of(int rail, int host);  // of a host on a rail
std::string head_address(int rail);          // of the launcher's side, the bridge itself
std::string congestion_in_use(
    const Network& network);                     // what the hosts' TCP really runs; read from this machine
std::string hosts_file(const Network& network);  // what /etc/hosts holds in every host
std::string switch_links(const Network& network, const std::vector<pid_t>& hosts);  // ip -batch, at the head
std::string switch_shaping(const Network& network);                                 // tc -batch, at the head
std::string host_links(const Network& network, int host);                           // ip -batch, in a host
std::string host_shaping(const Network& network);                                   // tc -batch, in a host
inline constexpr const char* link_group = "77";  // all devices of the head: one deletion takes them away

// --- cluster.cpp
// --------------------------------------------------------------------------------------------- A lab that is
// up, as its first process sees it.
struct Cluster {
    Network network;
    std::vector<pid_t> hosts;  // each host's first process
    std::string folder;        // scratch files, on a file system that only this lab sees
    int commands = -1;         // what the owner asks for: one byte per signal to pass on to the program
    int reports = -1;          // what the owner is told: one byte once the program runs
};

// Brings a lab up, runs `body` in its first process (process 1 of a pid namespace, at the bridges) and takes
// it down. Returns body's value, or 128 + n after signal n. Throws when the lab cannot come up.
int with_cluster(const Network& network, const std::function<int(Cluster&)>& body);

// Runs the program from within `with_cluster`, passes signals on, reaps orphans; returns its exit status.
int run_program(Cluster& cluster, const Args& argv, const Settings& environment);

// --- system.cpp
// ----------------------------------------------------------------------------------------------
struct Ran {
    int status = 0;  // as of waitpid
    std::string out;
    std::string err;
    bool good() const { return status == 0; }
};

using Prepare = std::function<void()>;  // runs in the child before exec; may throw

pid_t spawn(const Args& argv, const Prepare& prepare, int in, int out,
            int err);  // descriptors, -1: /dev/null
Ran run(const Args& argv, const std::string& input = {}, const Prepare& prepare = {});
pid_t fork_task(
    const std::function<int()>& task);  // a child that ends with task's value; dies with its parent
int wait_for(pid_t pid);                // exit status, 128 + n after signal n
std::string find_program(const std::string& name);  // absolute, symbolic links kept; empty if there is none
std::string read_file(const std::string& path);     // empty if it cannot be read
void write_file(const std::string& path, const std::string& text);
void enter_network(pid_t host);  // this process's sockets from now on belong to that host
// Enters all namespaces of a host and runs argv there in the same working directory, in a session of its own
// (as ssh does: a Ctrl-C is the launcher's business) or in this one. Ends with its exit status.
[[noreturn]] void exec_on_host(pid_t host, const Args& argv, bool own_session);
std::string own_path();  // of the running program
double now_s();          // monotonic
int memory_file();       // takes output of any length, so no pipe can fill and block
std::string read_from_start(int fd);
bool close_from(int first);  // this descriptor and all above it; false, with all of them open, without /proc
std::string strip(const std::string& text);
[[noreturn]] void fail(const std::string& sentence);
[[noreturn]] void fail_errno(const std::string& what);

// --- measure.cpp
// ---------------------------------------------------------------------------------------------
struct Calibration {
    double rate_bytes_per_s = 0;  // one-way payload of a plain TCP stream; 0 with a single host
    double latency_s = 0;         // half a one-byte round trip
    double cpu_s_per_byte = 0;    // CPU seconds of the whole machine per payload byte, at this lab's rate
    std::string measured_at;
};

struct Capacity {
    double bytes_per_s = 0;       // payload over all links together
    double cpu_s_per_byte = 0;    // CPU seconds of the whole machine per payload byte, at that rate
    double foreign_load = 0;      // share of the machine's CPU time that others took just before
    std::vector<double> samples;  // bytes per second, one per round
    std::string measured_at;
};

Calibration measure_calibration(Cluster& cluster);  // 2 to 7 s
bool is_near_nominal(const Network& network,
                     const Calibration& calibration);             // within 3 % of what TCP leaves of it
Capacity measure_capacity(std::uint64_t burst_bytes);             // brings up a lab of its own, about 10 s
double shaped_transfer_s(Cluster& cluster, std::uint64_t bytes);  // host 0 to host 1

// --- cache.cpp
// -----------------------------------------------------------------------------------------------
std::string cache_folder();
Capacity machine_capacity(std::uint64_t burst_bytes, bool again, bool quiet);
bool cached_calibration(const Network& network, Calibration& calibration);
void store_calibration(const Network& network, const Calibration& calibration);
nlohmann::json to_json(const Capacity& capacity);

// --- launch.cpp
// ----------------------------------------------------------------------------------------------
struct MpiInstall {
    Mpi mpi = Mpi::none;
    std::string root;       // a virtual environment, or /usr
    std::string launcher;   // its mpiexec, absolute
    std::string libraries;  // folder of its libmpi
};

struct Launch {
    Args argv;
    Settings defaults;     // set unless the user's environment already has them
    Settings overrides;    // set in any case
    std::string hostfile;  // its text
    std::string waiting;   // how native waits are helped, one phrase
};

// `root`: the folder of a wheel's MPI; empty: looked for. Throws with one sentence where there is none.
MpiInstall find_mpi(Mpi mpi, const std::string& root);
Launch plan_launch(const Options& options, const MpiInstall& install, const std::string& folder, int cores,
                   const std::string& help_library);
Args enclosing_job_variables(char** environment, const Args& keep);  // names left by a surrounding launcher
std::string help_library();  // what a host preloads: liblabwait.so, or the link to it; empty if not built
void link_help_library();    // on each host, where LD_PRELOAD cannot carry the path

// --- processes.cpp
// -------------------------------------------------------------------------------------------
struct RunningLab {
    pid_t pid = 0;    // its first process, in our pid namespace
    pid_t owner = 0;  // the `thalweg lab` that made it; 0 if that is gone
    std::map<int, pid_t> hosts;
};

inline constexpr const char* lab_process = "thalweg-lab";    // the name ps shows
inline constexpr const char* host_process = "thalweg-host";  // followed by the host's number

std::vector<RunningLab> running_labs();
int clean();
int exec_verb(const Args& args);        // thalweg lab exec [--lab PID] HOST -- COMMAND…
int agent_exec_verb(const Args& args);  // what the launchers take for ssh

}  // namespace thalweg::lab

// The verb `lab` of the command line: argv[0] is "lab". Returns the program's exit status, or 2 when the lab
// failed.
int lab_main(int argc, char** argv);
