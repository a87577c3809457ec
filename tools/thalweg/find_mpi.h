// Which MPI library a command would really load, found without running it: through the libraries the program
// needs, a script's #! line, Python's mpi4py, a wrapper's arguments (env, numactl, bash -c …), or the
// launcher that started us. The library is recognised by what it exports, never by its name alone.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "elf_file.h"
#include "environment.h"

namespace thalweg::tool {

// The binary interface of an MPI library: what its handles are.
enum class Abi { mpich, ompi, standard };
std::string_view name_of(Abi abi);  // "mpich", "ompi", "abi": as in libthalweg-mpich.so

struct MpiLibrary {
    std::string path;
    std::string soname;
    Abi abi = Abi::mpich;
    std::string family;  // "MPICH", "Intel MPI", "Open MPI"
};

enum class Reach {
    linked,    // the loader brings it before main
    dlopened,  // the program loads it later, out of sight of what is preloaded: preload the file itself
    launcher,  // the program does not show it; the launcher's own is assumed
};

enum class Outcome {
    found,
    none,         // no MPI anywhere
    static_mpi,   // inside the executable
    ilp64,        // Fortran integers of 8 bytes
    launcher,     // the command is mpiexec or the like, whose ranks are what should be run through us
    foreign,      // another processor, word size or C library
    unknown_abi,  // an MPI whose handles we do not know
    dropped,      // env takes from the program what is preloaded for it
};

struct Finding {
    Outcome outcome = Outcome::none;
    MpiLibrary library;  // for found, and unknown_abi
    Reach reach = Reach::linked;
    std::string via;                   // "through /usr/lib/libhdf5.so", "mpi4py of /venv", … may be empty
    std::string culprit;               // the file that outcome speaks of when nothing was found
    std::vector<std::string> preload;  // files to preload behind ours
    std::vector<std::pair<std::string, std::string>> variables;  // to set
    std::vector<std::string> missing;  // needed libraries that the loader will not find either
};

// Recognises an MPI library by its exports; empty when `file` is none. An MPI of no known family has an empty
// `family`.
std::optional<MpiLibrary> recognise(const ElfFile& file, const std::string& path);

// `command` is a program with its arguments, as for execvp. `environment` is the one it will get.
Finding find_mpi(const std::vector<std::string>& command, const Environment& environment);

// Whether `program` starts the ranks of a job: mpiexec, srun …
bool is_launcher(std::string_view program);

// The MPI installed with PATH's mpiexec. Outcome found or none.
Finding find_path_mpi(const Environment& environment);

// The MPI of the launcher that started this process as a rank, else find_path_mpi; none when no launcher did.
Finding find_launcher_mpi(const Environment& environment);

// One sentence without full stop on why a program runs unchanged. Pre: outcome is not found.
std::string explain_outcome(const Finding& finding, std::string_view program);

// Internal steps, each in a file of its own.
class Loader;
struct LoadedObject;

// What a Python interpreter would load when a program imports mpi4py. `interpreter` is the path it is started
// by.
Finding find_python_mpi(const std::string& interpreter, Loader& loader, const LoadedObject& program,
                        const Environment& environment);
bool is_python(const ElfFile& file);

}  // namespace thalweg::tool
