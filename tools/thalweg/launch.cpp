#include "launch.h"

#include <errno.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <system_error>
#include <utility>

#include "base/launcher_rank.h"
#include "elf_file.h"
#include "loader.h"

namespace thalweg::tool {

namespace {

// Objects with names that not every MPI library has. A program may ask whether its MPI has them, and must get
// its MPI's answer; so each is preloaded only where the library exports its name. Same list as
// src/interpose/calls.def. An object that stands in for what the library lacks is preloaded for a program
// as well that would not start without: it has been linked to the name, and does not ask.
struct OptionalObject {
    std::string_view suffix;
    std::string_view symbol;
    bool stands_in = false;
};
constexpr std::array<OptionalObject, 4> optional_objects = {{
    {"bigcount", "MPI_Bcast_c"},
    {"persistent", "MPI_Bcast_init", true},
    {"status", "MPI_Request_get_status_all"},
    {"sessions", "MPI_Session_init"},
}};

// Whether `program` or a library that it loads needs a name which nobody has but our `object`.
bool needs(const std::string& program, const std::string& object, const Environment& environment) {
    const auto ours = ElfFile::open(object);
    if (ours == nullptr) return false;
    std::vector<std::string_view> lacking;
    std::vector<const ElfFile*> loaded;
    Loader loader(environment);
    const auto look_at = [&](const LoadedObject& found) {
        loaded.push_back(found.file.get());
        for (const std::string_view name : found.file->required())
            if ((name.starts_with("MPI_") || name.starts_with("mpi_")) && ours->exports(name))
                lacking.push_back(name);
        return true;
    };
    if (loader.load_program(program, look_at) == nullptr) return false;
    const auto has = [](std::string_view name) {
        return [name](const ElfFile* file) { return file->exports(name); };
    };
    return std::any_of(lacking.begin(), lacking.end(), [&](std::string_view name) {
        return std::none_of(loaded.begin(), loaded.end(), has(name));
    });
}

// A build for any ABI, from here or from another installation; the lab's own helper is none.
bool is_ours(std::string_view path) {
    constexpr std::string_view start = "libthalweg-";
    const std::string_view name = base_of(path);
    if (name.substr(0, start.size()) != start) return false;
    const std::string_view build =
        name.substr(start.size(), name.find_first_of("-.", start.size()) - start.size());
    for (Abi abi : {Abi::mpich, Abi::ompi, Abi::standard})
        if (build == name_of(abi)) return true;
    return false;
}

// LD_PRELOAD separates by colons and spaces and knows no escape.
bool fits_preload(std::string_view path) { return path.find_first_of(": ") == std::string_view::npos; }

std::string joined(const std::vector<std::string>& parts) {
    std::string all;
    for (const std::string& part : parts) all += (all.empty() ? "" : ":") + part;
    return all;
}

// The MPI that `thalweg run` preloaded for a program that loads its own out of everybody's sight; a program
// that this one starts may have another. From its MPI_Init on it inherits neither (interpose/inherited.h).
constexpr const char* preloaded_mpi = "THALWEG_PRELOADED_MPI";

// The user's own LD_PRELOAD, without what an outer `thalweg run` put there.
std::vector<std::string> foreign_preload(const Environment& environment) {
    const std::vector<std::string_view> outer = split(environment.get(preloaded_mpi), ":");
    std::vector<std::string> kept;
    for (std::string_view part : split(environment.get("LD_PRELOAD"), ": "))
        if (!part.empty() && !is_ours(part) && std::find(outer.begin(), outer.end(), part) == outer.end())
            kept.emplace_back(part);
    return kept;
}

// Whether the program gets rights by its file that whoever starts it has not: a set-user-ID or set-group-ID
// bit, or capabilities, which mean nothing to root. The loader preloads nothing of ours for such (ld.so(8),
// secure-execution mode).
bool gains_rights(const std::string& program) {
    struct stat file {};
    struct statvfs mount {};
    if (program.empty() || stat(program.c_str(), &file) != 0 || statvfs(program.c_str(), &mount) != 0 ||
        (mount.f_flag & ST_NOSUID) != 0 || prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1)
        return false;
    constexpr mode_t by_group = S_ISGID | S_IXGRP;
    if ((file.st_mode & S_ISUID) != 0 && file.st_uid != getuid()) return true;
    if ((file.st_mode & by_group) == by_group && file.st_gid != getgid()) return true;
    std::array<std::uint32_t, 6>
        capabilities{};  // a version; what is permitted and inheritable, twice; whose
    return getuid() != 0 &&
           getxattr(program.c_str(), "security.capability", capabilities.data(), sizeof capabilities) > 0 &&
           (capabilities[1] | capabilities[3]) != 0;
}

// What keeps `object` from being loaded into a program with a C library of its own, as those of EESSI and Nix
// have: it lies beside the program's loader, and may be older than that of the build. "libc.so.6 lacks
// GLIBC_2.34", with its path; empty where nothing is known to be lacking.
std::string lacking_in_c_library(const std::string& program, const std::string& object) {
    const auto loader_of = [](const std::string& path) {
        const auto file = ElfFile::open(path);
        const bool has_one = file != nullptr && file->native() && !file->interpreter().empty();
        return has_one ? canonical(file->interpreter()) : std::string();
    };
    const std::string loader = loader_of(program);
    const bool ordinary = loader.empty() || loader == loader_of("/proc/self/exe");
    const auto ours = ordinary ? nullptr : ElfFile::open(object);
    if (ours == nullptr || !ours->native()) return {};
    struct Library {
        std::unique_ptr<ElfFile> file;
        bool has_some = false;  // else it tells its versions in another way
        std::string_view lacks;
    };
    std::map<std::string, Library> libraries;
    for (const ElfFile::Version& version : ours->required_versions()) {
        const std::string path = folder_of(loader) + "/" + std::string(version.library);
        Library& library = libraries[path];
        if (library.file == nullptr) library.file = ElfFile::open(path);
        if (library.file == nullptr || !library.file->native()) continue;
        if (library.file->exports(version.name))
            library.has_some = true;
        else
            library.lacks = version.name;
    }
    for (const auto& [path, library] : libraries)
        if (library.has_some && !library.lacks.empty()) return path + " lacks " + std::string(library.lacks);
    return {};
}

// The runtime of a program built with AddressSanitizer ends it where anything was loaded before. Ours has no
// function that the runtime replaces, so their order does not matter. What the user says behind it counts.
void come_before_address_sanitizer(Environment& environment) {
    const std::string_view options = environment.get("ASAN_OPTIONS");
    const std::string ours = "verify_asan_link_order=0";
    if (options.find("verify_asan_link_order") == std::string_view::npos)
        environment.set("ASAN_OPTIONS", options.empty() ? ours : ours + ":" + std::string(options));
}

// Symbols of the program come before those of everything that is preloaded.
bool has_own_init(const std::string& program) {
    const auto file = ElfFile::open(program);
    if (file == nullptr || !file->native()) return false;
    return file->exports("MPI_Init") || file->exports("MPI_Init_thread") || file->exports("mpi_init_");
}

Launch pass_through(Launch launch, LogLevel level, std::string sentence) {
    launch.intercepted = false;
    launch.objects.clear();
    launch.level = level;
    launch.sentence = std::move(sentence);
    return launch;
}

}  // namespace

Finding find_named_mpi(const Settings& settings, std::string& why) {
    const std::string path(settings.mpi_library.view());
    Finding finding;
    finding.culprit = path;
    const auto file = ElfFile::open(path);
    const auto library = file == nullptr ? std::nullopt : recognise(*file, canonical(path));
    if (!library) {
        const int error = access(path.c_str(), R_OK) == 0 ? 0 : errno;
        why = "THALWEG_MPI_LIBRARY names " + path + ", which ";
        why += error == 0 ? "is no MPI library" : "cannot be read: " + std::string(strerror(error));
        return finding;
    }
    finding.library = *library;
    finding.via = "THALWEG_MPI_LIBRARY";
    finding.outcome = library->family.empty() ? Outcome::unknown_abi : Outcome::found;
    return finding;
}

std::string object_folder(std::string_view home) {
    // What is preloaded outlives a change of folder. Links stay: one may be there for the sake of LD_PRELOAD.
    if (!home.empty()) {
        std::error_code gone;  // the current folder may be: then nothing is found, and the program runs
        const std::filesystem::path path = std::filesystem::absolute(home, gone);
        return gone ? std::string(home) : path.lexically_normal().string();
    }
    return folder_of(folder_of(canonical("/proc/self/exe"))) + "/lib";
}

std::string find_object(std::string_view file_name, std::string_view home) {
    std::string path = object_folder(home) + "/" + std::string(file_name);
    return is_regular_file(path) ? path : std::string();
}

bool speaks_for_job(const Environment& environment) {
    for (const char* variable : launcher_rank_variables)
        if (const auto rank = environment.find(variable)) return *rank == "0";
    return true;
}

Launch prepare_launch(const std::vector<std::string>& command, const Settings& settings,
                      Environment& environment) {
    Launch launch;
    std::vector<std::string> preload = foreign_preload(environment);
    auto write_preload = [&] {
        if (preload.empty())
            environment.unset("LD_PRELOAD");
        else
            environment.set("LD_PRELOAD", joined(preload));
    };
    write_preload();
    environment.unset(preloaded_mpi);
    if (settings.enabled == Switch::off)
        return pass_through(std::move(launch), LogLevel::info, "THALWEG is off; the program runs unchanged");

    const bool named = !settings.mpi_library.empty();
    std::string why;
    launch.finding = named ? find_named_mpi(settings, why) : find_mpi(command, environment);
    const Finding& finding = launch.finding;
    if (!why.empty())
        return pass_through(std::move(launch), LogLevel::warn, why + "; the program runs unchanged");
    if (finding.outcome != Outcome::found)
        return pass_through(std::move(launch), LogLevel::warn, explain_outcome(finding, command.front()));

    // The library was named, or the launcher's is assumed: of the program nothing is known but where it is.
    const std::string program =
        named || finding.culprit.empty() ? find_in_path(command.front(), environment) : finding.culprit;
    if (gains_rights(program))
        return pass_through(
            std::move(launch), LogLevel::warn,
            program +
                " has rights by its file (set-user-ID, set-group-ID or capabilities), and the "
                "loader preloads nothing for such a program; it runs unchanged");

    const std::string stem = "libthalweg-" + std::string(name_of(finding.library.abi));
    const std::string core = find_object(stem + ".so", settings.home.view());
    if (core.empty())
        return pass_through(std::move(launch), LogLevel::warn,
                            stem + ".so is not in " + object_folder(settings.home.view()) +
                                "; install it or set THALWEG_HOME to its folder; the program runs unchanged");
    if (const std::string lacking = lacking_in_c_library(program, core); !lacking.empty())
        return pass_through(std::move(launch), LogLevel::warn,
                            program + " has a C library of its own: " + lacking + " for " + core +
                                "; it runs unchanged, or with a Thalweg that was built with that library");
    launch.objects.push_back(core);
    const auto library = ElfFile::open(finding.library.path);
    for (const OptionalObject& optional : optional_objects) {
        if (library == nullptr) continue;
        const std::string path =
            find_object(stem + "-" + std::string(optional.suffix) + ".so", settings.home.view());
        const bool has = library->exports(optional.symbol);
        if (path.empty() || (!has && (!optional.stands_in || finding.culprit.empty()))) continue;
        if (has || needs(finding.culprit, path, environment)) launch.objects.push_back(path);
    }
    for (std::span<const std::string> files :
         {std::span(std::as_const(launch.objects)), std::span(finding.preload)})
        for (const std::string& path : files)
            if (!fits_preload(path))
                return pass_through(
                    std::move(launch), LogLevel::warn,
                    path + " cannot be preloaded, because its path contains a space or a colon; " +
                        (is_ours(path) ? "set THALWEG_HOME to a link to its folder without"
                                       : "use it by a link without") +
                        "; the program runs unchanged");

    // Ours first; then what the user had, because tools go above the MPI; then the MPI of a program that
    // would load it out of everybody's sight.
    preload.insert(preload.begin(), launch.objects.begin(), launch.objects.end());
    std::vector<std::string> added;  // without what the user preloads himself, which is his for all programs
    for (const std::string& path : finding.preload)
        if (std::find(preload.begin(), preload.end(), path) == preload.end()) added.push_back(path);
    preload.insert(preload.end(), added.begin(), added.end());
    write_preload();
    if (!added.empty()) environment.set(preloaded_mpi, joined(added));
    for (const auto& [name, value] : finding.variables) environment.set(name, value);
    come_before_address_sanitizer(environment);
    launch.intercepted = true;
    if (!named && has_own_init(finding.culprit)) {
        launch.level = LogLevel::warn;
        launch.sentence =
            finding.culprit +
            " has an MPI_Init inside, of a profiling library perhaps, which comes before Thalweg's: "
            "if the program calls it, all its calls go to the MPI library; link that dynamically";
        return launch;
    }
    launch.sentence = finding.library.family + " " + finding.library.path +
                      (finding.via.empty() ? "" : " (" + finding.via + ")") + " with " + core;
    return launch;
}

}  // namespace thalweg::tool
