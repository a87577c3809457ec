// Which MPI library `from mpi4py import MPI` would load, without starting the interpreter: 10,000 ranks
// cannot each start Python twice. Follows CPython's rules for sys.path as far as they matter here (venv, user
// site, Debian's dist-packages, PYTHONPATH) and the search of mpi4py's wheels (mpi4py/_mpiabi.py), which
// carry an extension module per ABI and choose by the libmpi that they find at run time.
#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "find_mpi.h"
#include "loader.h"

namespace thalweg::tool {

namespace {

std::vector<std::string> entries_of(const std::string& folder) {
    std::vector<std::string> names;
    DIR* directory = opendir(folder.c_str());
    if (directory == nullptr) return names;
    while (const dirent* entry = readdir(directory)) names.emplace_back(entry->d_name);
    closedir(directory);
    std::sort(names.begin(), names.end());
    return names;
}

bool starts_with(std::string_view text, std::string_view start) {
    return text.substr(0, start.size()) == start;
}
bool ends_with(std::string_view text, std::string_view end) {
    return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

// The value of "key = value" in pyvenv.cfg.
std::string value_in(std::string_view text, std::string_view key) {
    for (std::string_view line : split(text, "\n")) {
        const std::size_t equals = line.find('=');
        if (equals == std::string_view::npos) continue;
        auto trimmed = [](std::string_view part) {
            const std::size_t start = part.find_first_not_of(" \t\r");
            if (start == std::string_view::npos) return std::string_view();
            return part.substr(start, part.find_last_not_of(" \t\r") - start + 1);
        };
        if (trimmed(line.substr(0, equals)) == key) return std::string(trimmed(line.substr(equals + 1)));
    }
    return {};
}

std::string read_small_file(const std::string& path) {
    std::string text(8192, '\0');
    const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    const ssize_t got = descriptor < 0 ? -1 : read(descriptor, text.data(), text.size());
    if (descriptor >= 0) close(descriptor);
    text.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
    return text;
}

// Where an interpreter keeps its packages, in the order of sys.path.
struct Python {
    std::string prefix;       // of the virtual environment, or of the installation
    std::string base_prefix;  // of the installation
    std::string user_base;    // empty when user packages are off
    std::string folder_name;  // "python3.11"; empty when unknown
    bool virtual_environment = false;
    bool sees_system = true;  // the installation's packages count
    std::vector<std::string> package_folders;
};

void add_packages(Python& python, const std::string& prefix, bool distribution) {
    for (const std::string& library : {prefix + "/lib", prefix + "/lib64"})
        for (const std::string& name : entries_of(library))
            if (starts_with(name,
                            python.folder_name.empty() ? std::string("python3.") : python.folder_name)) {
                python.package_folders.push_back(library + "/" + name + "/site-packages");
                if (distribution) python.package_folders.push_back(library + "/" + name + "/dist-packages");
            }
    if (distribution) python.package_folders.push_back(prefix + "/lib/python3/dist-packages");
}

Python describe_python(const std::string& interpreter, const Environment& environment) {
    Python python;
    const std::string folder = folder_of(interpreter);
    std::string settings = read_small_file(folder + "/pyvenv.cfg");
    std::string environment_root = folder;
    if (settings.empty()) {
        environment_root = folder_of(folder == "." ? canonical(".") : folder);
        settings = read_small_file(environment_root + "/pyvenv.cfg");
    }
    python.base_prefix = folder_of(folder_of(canonical(interpreter)));
    python.prefix = python.base_prefix;
    if (!settings.empty()) {
        python.virtual_environment = true;
        python.prefix = environment_root;
        python.sees_system = value_in(settings, "include-system-site-packages") == "true";
        if (const std::string home = value_in(settings, "home"); !home.empty())
            python.base_prefix = folder_of(home);
    }
    const std::string real_name(base_of(canonical(interpreter)));
    if (starts_with(real_name, "python3.")) python.folder_name = real_name;
    for (std::string_view part : split(environment.get("PYTHONPATH"), ":"))
        python.package_folders.emplace_back(part.empty() ? std::string_view(".") : part);
    if (python.sees_system && environment.get("PYTHONNOUSERSITE").empty()) {
        python.user_base = environment.get("PYTHONUSERBASE");
        if (python.user_base.empty() && !environment.get("HOME").empty())
            python.user_base = std::string(environment.get("HOME")) + "/.local";
        if (!python.user_base.empty()) add_packages(python, python.user_base, false);
    }
    if (python.virtual_environment) add_packages(python, python.prefix, false);
    if (python.sees_system) {
        if (python.base_prefix == "/usr") add_packages(python, "/usr/local", true);
        add_packages(python, python.base_prefix, true);
    }
    return python;
}

// mpi4py's dlopen of one candidate: it must be an MPI; the search goes on where it is not.
std::optional<MpiLibrary> try_library(const std::string& name, Loader& loader, const LoadedObject& program) {
    const LoadedObject* object =
        loader.load_library(name, &program, [](const LoadedObject&) { return false; });
    if (object == nullptr || !object->file->exports("MPI_Get_version")) return std::nullopt;
    return recognise(*object->file, object->path);
}

// _mpiabi.py, _dlopen_libmpi: entries of MPI4PY_LIBMPI, else lib/ of the environments, else the loader's own
// search.
std::optional<MpiLibrary> search_like_mpi4py(const Python& python, Loader& loader,
                                             const LoadedObject& program, const Environment& environment,
                                             bool& by_path) {
    std::vector<std::string> places;
    if (const auto listed = environment.find("MPI4PY_LIBMPI")) {
        for (std::string_view entry : split(*listed, ":")) places.emplace_back(entry);
    } else {
        std::vector<std::string> prefixes;
        if (python.virtual_environment) prefixes.push_back(python.prefix);
        if (!python.user_base.empty()) prefixes.push_back(python.user_base);
        if (python.sees_system) prefixes.push_back(python.base_prefix);
        for (const std::string& prefix : prefixes)
            if (prefix != "/usr") places.push_back(prefix + "/lib");
        places.emplace_back("");
    }
    static constexpr std::array<std::string_view, 3> names = {"libmpi.so", "libmpi.so.12", "libmpi.so.40"};
    for (const std::string& place : places) {
        by_path = !place.empty();
        const bool folder = place.empty() || !entries_of(place).empty();
        if (!folder) {
            if (auto library = try_library(place, loader, program)) return library;
            continue;
        }
        for (std::string_view name : names)
            if (auto library = try_library(
                    place.empty() ? std::string(name) : place + "/" + std::string(name), loader, program))
                return library;
    }
    return std::nullopt;
}

bool is_off(std::string_view value) {
    for (std::string_view word : {"0", "no", "off", "false", "disable"})
        if (std::equal(value.begin(), value.end(), word.begin(), word.end(),
                       [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a - 'A' + 'a' : a) == b; }))
            return true;
    return false;
}

// _mpiabi.py, dlopen_impi_libfabric: Intel MPI brings its own libfabric, which nothing else would find once
// the library is there before mpi4py looks for it.
void add_intel_libfabric(Finding& finding, const Environment& environment) {
    if (is_off(environment.get("I_MPI_OFI_LIBRARY_INTERNAL")) || environment.get("I_MPI_FABRICS") == "shm")
        return;
    std::string root = folder_of(folder_of(finding.library.path));
    const std::string_view kind = base_of(root);
    if (kind == "release" || kind == "debug") root = folder_of(root);
    for (const char* place :
         {"opt/mpi/libfabric/lib", "libfabric/lib", "libfabric", "lib/libfabric", "lib"}) {
        const std::string folder = root + "/" + place;
        if (!is_regular_file(folder + "/libfabric.so.1")) continue;
        finding.preload.push_back(folder + "/libfabric.so.1");
        if (!environment.find("FI_PROVIDER_PATH")) {
            const std::string providers = folder + "/prov";
            finding.variables.emplace_back("FI_PROVIDER_PATH",
                                           entries_of(providers).empty() ? folder : providers);
        }
        return;
    }
}

// The extension module of this interpreter: "MPI.cpython-311-x86_64-linux-gnu.so", with ".mpich" after MPI
// for an ABI of a wheel that carries several. Several Pythons may share a folder: the one named by the folder
// wins.
std::string find_extension(const std::string& package, std::string_view abi) {
    std::string best;
    const std::string start = abi.empty() ? "MPI." : "MPI." + std::string(abi) + ".";
    for (const std::string& name : entries_of(package)) {
        if (!starts_with(name, start) || !ends_with(name, ".so")) continue;
        const std::string_view rest = std::string_view(name).substr(start.size());
        if (!starts_with(rest, "cpython-") && !starts_with(rest, "abi3.") && rest != "so") continue;
        best = package + "/" + name;
    }
    return best;
}

std::string extension_abi(std::string_view value) {  // MPI4PY_MPIABI as _get_mpiabi_from_string reads it
    std::string abi;
    for (char c : value)
        if (c != ' ' && c != '-' && c != '_')
            abi += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    return abi == "impi" ? "mpich" : abi;
}

// An extension module that is linked to its MPI.
std::optional<MpiLibrary> library_of_extension(const std::string& extension, Loader& loader,
                                               const LoadedObject& program) {
    std::optional<MpiLibrary> library;
    loader.load_library(extension, &program, [&library](const LoadedObject& object) {
        library = recognise(*object.file, object.path);
        return !library.has_value();
    });
    return library;
}

}  // namespace

bool is_python(const ElfFile& file) {
    if (file.exports("Py_BytesMain") || file.exports("Py_Main")) return true;
    for (const std::string& name : file.needed())
        if (starts_with(base_of(name), "libpython3")) return true;
    return false;
}

Finding find_python_mpi(const std::string& interpreter, Loader& loader, const LoadedObject& program,
                        const Environment& environment) {
    Finding finding;
    finding.culprit = interpreter;
    finding.reach = Reach::dlopened;
    const Python python = describe_python(interpreter, environment);
    for (const std::string& folder : python.package_folders) {
        const std::string package = folder + "/mpi4py";
        if (!is_regular_file(package + "/__init__.py")) continue;
        finding.via = "mpi4py in " + folder;
        std::optional<MpiLibrary> library;
        bool by_path = true;
        const std::string abi = extension_abi(environment.get("MPI4PY_MPIABI"));
        const std::string plain = find_extension(package, "");
        if (!plain.empty()) {
            library = library_of_extension(plain, loader, program);
        } else if (is_regular_file(package + "/_mpiabi.py")) {
            if (abi.empty()) {
                library = search_like_mpi4py(python, loader, program, environment, by_path);
            } else if (const std::string extension = find_extension(package, abi); !extension.empty()) {
                library = library_of_extension(extension, loader, program);
            }
        }
        if (!library) return finding;  // this mpi4py will not find one either
        finding.library = *library;
        finding.outcome = library->family.empty() ? Outcome::unknown_abi : Outcome::found;
        finding.preload.push_back(library->path);
        if (library->family == "Intel MPI" && abi.empty() && plain.empty() && by_path)
            add_intel_libfabric(finding, environment);
        return finding;
    }
    return finding;
}

}  // namespace thalweg::tool
