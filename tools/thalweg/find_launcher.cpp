// The MPI of whoever started us. A rank's parent is a process of the MPI's own launcher (hydra_pmi_proxy,
// orted, prted, mpispawn, mpiexec), installed beside the library; Slurm's and PBS's are not, and then
// PATH's mpiexec is the best guess.
#include <unistd.h>

#include <array>

#include "find_mpi.h"

namespace thalweg::tool {

namespace {

constexpr std::array<std::string_view, 6> rank_variables = {
    "PMI_RANK", "PMIX_RANK", "PMI_FD", "OMPI_COMM_WORLD_RANK", "PMI_ID", "MPI_LOCALRANKID"};
constexpr std::array<std::string_view, 5> library_names = {"libmpi.so.12", "libmpi.so.40", "libmpich.so.12",
                                                           "libmpi_abi.so.1", "libmpi.so"};

bool is_open_mpi_launcher(std::string_view program) {
    const std::string_view name = base_of(program);
    return name == "orted" || name == "prted" || name == "orterun" || name == "prterun";
}

// The library installed with the launcher at `program` (links resolved), for Open MPI or one of the MPICH
// family.
std::optional<MpiLibrary> library_beside(const std::string& program) {
    const std::string prefix = folder_of(folder_of(program));
    const bool open_mpi = is_open_mpi_launcher(program);
#if defined(__x86_64__)
    const std::string multiarch = "/lib/x86_64-linux-gnu/";
#else
    const std::string multiarch = "/lib/aarch64-linux-gnu/";
#endif
    for (const std::string& folder : {prefix + "/lib/", prefix + "/lib64/", prefix + multiarch}) {
        for (std::string_view name : library_names) {
            const auto file = ElfFile::open(folder + std::string(name));
            if (file == nullptr || !file->native()) continue;
            const std::optional<MpiLibrary> library = recognise(*file, folder + std::string(name));
            if (library && !library->family.empty() && (library->family == "Open MPI") == open_mpi)
                return library;
        }
    }
    return std::nullopt;
}

}  // namespace

bool is_launcher(std::string_view program) {
    static constexpr std::array<std::string_view, 22> names = {"mpiexec",
                                                               "mpirun",
                                                               "mpiexec.hydra",
                                                               "mpirun.mpich",
                                                               "mpiexec.mpich",
                                                               "mpiexec.openmpi",
                                                               "orterun",
                                                               "prterun",
                                                               "mpirun.openmpi",
                                                               "prun",
                                                               "srun",
                                                               "aprun",
                                                               "jsrun",
                                                               "hydra_bstrap_proxy",
                                                               "hydra_pmi_proxy",
                                                               "orted",
                                                               "prted",
                                                               "palsrun",
                                                               "mpiexec.gforker",
                                                               "mpiexec_mpt",
                                                               "mpirun_rsh",
                                                               "mpispawn"};
    for (std::string_view name : names)
        if (base_of(program) == name) return true;
    return false;
}

Finding find_path_mpi(const Environment& environment) {
    Finding finding;
    finding.reach = Reach::launcher;
    const std::string launcher = canonical(find_in_path("mpiexec", environment));
    if (const auto library = launcher.empty() ? std::nullopt : library_beside(launcher)) {
        finding.library = *library;
        finding.outcome = Outcome::found;
        finding.via = "the MPI of the launcher " + launcher;
    }
    return finding;
}

Finding find_launcher_mpi(const Environment& environment) {
    Finding finding;
    finding.reach = Reach::launcher;
    bool launched = false;
    for (std::string_view variable : rank_variables)
        launched = launched || environment.find(variable).has_value();
    if (!launched) return finding;

    std::string launcher = canonical("/proc/" + std::to_string(getppid()) + "/exe");
    std::optional<MpiLibrary> library;
    if (is_launcher(launcher)) library = library_beside(launcher);
    if (!library) return find_path_mpi(environment);
    finding.library = *library;
    finding.outcome = Outcome::found;
    finding.via = "the MPI of the launcher " + launcher;
    return finding;
}

}  // namespace thalweg::tool
