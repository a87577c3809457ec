#include "find_mpi.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "loader.h"
#include "shell_words.h"

namespace thalweg::tool {

namespace {

constexpr int deepest = 8;                     // scripts that start scripts
constexpr std::size_t script_bytes = 1 << 16;  // of a script that are looked at

constexpr std::array<std::string_view, 2> static_names = {"PMPI_Bcast", "PMPI_Init"};
constexpr std::array<std::string_view, 1> ilp64_names = {"MPIR_FILP64_NeedInit"};

bool is_ilp64_name(std::string_view name) {
    return base_of(name).find("mpi_ilp64") != std::string_view::npos;
}

// What the loader needs that this program was started by: a libc of another kind (musl) cannot load our
// objects.
const std::string& own_interpreter() {
    static const std::string path = [] {
        const auto self = ElfFile::open("/proc/self/exe");
        return self == nullptr ? std::string() : self->interpreter();
    }();
    return path;
}

std::string via_of(const LoadedObject& object) {
    const LoadedObject* loader = object.loader;
    if (loader == nullptr || loader->loader == nullptr) return {};
    return "through " + loader->path;
}

// The MPI among what the loader would load for a program or a library.
struct Search {
    Finding finding;
    bool ilp64 = false;

    // A Loader::Visit: stops at the first MPI of a known family.
    bool operator()(const LoadedObject& object) {
        for (const std::string& name : object.file->needed()) ilp64 = ilp64 || is_ilp64_name(name);
        const std::optional<MpiLibrary> library = recognise(*object.file, object.path);
        if (!library || object.file->executable()) return true;
        finding.library = *library;
        finding.via = via_of(object);
        finding.outcome = library->family.empty() ? Outcome::unknown_abi : Outcome::found;
        return finding.outcome != Outcome::found;
    }
};

std::string first_bytes(const std::string& path, std::size_t most) {
    std::string text(most, '\0');
    const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    const ssize_t got = descriptor < 0 ? -1 : read(descriptor, text.data(), most);
    if (descriptor >= 0) close(descriptor);
    text.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
    return text;
}

bool is_text(std::string_view bytes) { return !bytes.empty() && bytes.find('\0') == std::string_view::npos; }

// What was looked at, under which environment, and the least depth at which it was.
using Seen = std::map<std::pair<std::string, std::size_t>, int>;

// Where a search is. It looks at a script or a program once in each environment: usages name their own script
// line after line, and lists of tools are long.
struct Place {
    Seen* seen = nullptr;
    int depth = 0;
    bool goes_on = false;  // whoever asks looks at the words behind this one as well

    Place deeper() const { return {seen, depth + 1, goes_on}; }
    Place one_of_several() const { return {seen, depth + 1, true}; }
    bool has_seen(const std::string& what, const Environment& environment) const {
        const auto [at, fresh] = seen->try_emplace({what, environment.digest()}, depth);
        if (!fresh && at->second <= depth) return true;
        at->second = depth;
        return false;
    }
};

bool is_shell(std::string_view path) {
    static constexpr std::array<std::string_view, 6> shells = {"sh", "bash", "dash", "zsh", "ksh", "ash"};
    return std::find(shells.begin(), shells.end(), base_of(path)) != shells.end();
}

// Whether what is found in it depends on the words behind it.
bool starts_others(std::string_view path) { return is_shell(path) || base_of(path) == "env"; }

Finding find_in_program(const std::vector<std::string>& command, const Environment& environment,
                        const Place& place);

bool conclusive(const Finding& finding) { return finding.outcome != Outcome::none; }

// A wrapper names the real program among its arguments: the first one with an MPI counts. NAME=VALUE before
// it is what env would set.
Finding find_in_words(const std::vector<std::string>& words, Environment environment, const Place& place,
                      bool assignments) {
    for (std::size_t i = 0; i < words.size(); ++i) {
        const std::string& word = words[i];
        if (word.empty() || word[0] == '-') continue;
        const std::size_t equals = word.find('=');
        if (assignments && equals != std::string::npos && equals > 0 && word.find('/') > equals) {
            environment.set(word.substr(0, equals), word.substr(equals + 1));
            continue;
        }
        const std::string path = find_in_path(word, environment);
        if (path.empty()) continue;
        const Place next = place.one_of_several();
        Finding finding;
        if (starts_others(path))
            finding = find_in_program({words.begin() + static_cast<std::ptrdiff_t>(i), words.end()},
                                      environment, next);
        else if (!next.has_seen(path, environment))
            finding = find_in_program({word}, environment, next);
        if (conclusive(finding)) return finding;
    }
    return {};
}

// The programs a shell text may start: every word that is one. What is set on the way, and where it goes by
// `cd`, holds from there on. `beside`: where the text is a script's, whose folder is where one goes most of
// all that only the running script knows; else empty.
Finding find_in_shell_text(std::string text, Environment environment, const Place& place,
                           const std::string& beside = {}) {
    for (std::size_t at; (at = text.find("\\\n")) != std::string::npos;) text.replace(at, 2, " ");
    for (std::string_view line : split(text, "\n")) {
        std::vector<std::string> words;
        bool goes = false;
        for (const ShellWord& word : shell_words(line, environment)) {
            if (std::exchange(goes, word.text == "cd" || (goes && word.text.substr(0, 1) == "-")) &&
                word.text.substr(0, 1) != "-") {
                const Finding before = find_in_words(words, environment, place, true);
                if (conclusive(before)) return before;
                words.clear();
                environment.enter(word.known ? word.text : beside);
                continue;
            }
            if (is_assignment(word.text)) {
                // What only the script knows cannot be told; that it is set to what stands here would be
                // wrong.
                const std::size_t equals = word.text.find('=');
                if (word.known) environment.set(word.text.substr(0, equals), word.text.substr(equals + 1));
                continue;
            }
            if (word.text.find(' ') != std::string::npos) words.push_back(word.text);  // perhaps a name
            for (std::string_view part :
                 split(word.text, " \t;&|()<>`\"'"))  // of what a shell would read again
                if (!part.empty()) words.emplace_back(part);
        }
        Finding finding = find_in_words(words, environment, place, true);
        if (conclusive(finding)) return finding;
    }
    return {};
}

Finding find_in_script(const std::string& path, std::string_view text,
                       const std::vector<std::string>& command, const Environment& environment,
                       const Place& place) {
    std::string line = "/bin/sh";  // what execvp does with a text that does not begin with #!
    if (text.substr(0, 2) == "#!") line = std::string(text.substr(2, text.find('\n') - 2));
    const std::size_t start = line.find_first_not_of(" \t\r");
    if (start == std::string::npos) return {};
    line = line.substr(start, line.find_last_not_of(" \t\r") - start + 1);
    // The kernel passes everything behind the interpreter as one argument; env -S splits it again.
    const std::size_t space = line.find_first_of(" \t");
    std::vector<std::string> next = {line.substr(0, space)};
    if (space != std::string::npos) {
        const std::string rest = line.substr(line.find_first_not_of(" \t", space));
        if (base_of(next[0]) == "env")
            for (std::string_view word : split(rest, " \t")) next.emplace_back(word);
        else
            next.push_back(rest);
    }
    next.push_back(path);
    next.insert(next.end(), command.begin() + 1, command.end());
    return find_in_program(next, environment, place.deeper());
}

Finding find_behind_shell(const std::vector<std::string>& command, const Environment& environment,
                          const Place& place) {
    bool is_command = false;
    const std::size_t at = end_of_options(command, is_command);
    if (at >= command.size()) return {};
    const std::string& argument = command[at];
    Finding finding;
    // A pipe gives its text once, and it is the shell's.
    if (is_command) {
        finding = find_in_shell_text(argument, environment, place);
    } else if (is_regular_file(argument) && !place.has_seen("text of " + argument, environment)) {
        const std::string text = first_bytes(argument, script_bytes);
        if (is_text(text)) finding = find_in_shell_text(text, environment, place, folder_of(argument));
    }
    // exec "$@" at the end of a script: the program is among the arguments.
    if (!conclusive(finding) && !place.goes_on)
        finding = find_in_words({command.begin() + static_cast<std::ptrdiff_t>(at) + 1, command.end()},
                                environment, place, false);
    return finding;
}

// Whether an env of these arguments starts its program without what is preloaded.
bool drops_preload(const std::vector<std::string>& command) {
    constexpr std::string_view variable = "LD_PRELOAD";
    const auto starts = [](std::string_view text, std::string_view with) {
        return text.substr(0, with.size()) == with;
    };
    for (std::size_t i = 1; i < command.size(); ++i) {
        const std::string_view word = command[i];
        const bool is_option = starts(word, "-"), is_short = is_option && !starts(word, "--");
        if (!is_option && word.find('=') == std::string_view::npos) return false;
        if (word == "-" || word == "--ignore-environment" || word == "--unset=LD_PRELOAD" ||
            starts(word, "LD_PRELOAD="))
            return true;
        if (!is_short) continue;
        const std::size_t with_value = word.find_first_of("uCS");
        if (word.substr(0, with_value).find('i') != std::string_view::npos) return true;
        if (with_value == std::string_view::npos) continue;
        const bool apart = with_value + 1 == word.size();
        const std::string_view value = !apart                   ? word.substr(with_value + 1)
                                       : i + 1 < command.size() ? std::string_view(command[i + 1])
                                                                : std::string_view();
        if (word[with_value] == 'u' && value == variable) return true;
        i += apart;
    }
    return false;
}

Finding find_in_program(const std::vector<std::string>& command, const Environment& environment,
                        const Place& place) {
    Finding none;
    const std::string path = place.depth > deepest ? std::string() : find_in_path(command[0], environment);
    if (path.empty()) return none;
    if (is_launcher(path)) {
        none.outcome = Outcome::launcher;
        none.culprit = path;
        return none;
    }
    const auto file = ElfFile::open(path);
    if (file == nullptr) {
        const std::string text = first_bytes(path, 256);
        return is_text(text) || text.substr(0, 2) == "#!"
                   ? find_in_script(path, text, command, environment, place)
                   : none;
    }
    if (!file->native() || (!file->interpreter().empty() && !own_interpreter().empty() &&
                            base_of(file->interpreter()) != base_of(own_interpreter()))) {
        none.outcome = Outcome::foreign;
        none.culprit = path;
        return none;
    }
    Loader loader(environment);
    Search search;
    const LoadedObject* program = loader.load_program(path, std::ref(search));
    if (program == nullptr) return none;
    Finding& finding = search.finding;
    finding.culprit = path;
    finding.missing = loader.missing();
    if (finding.outcome == Outcome::found && finding.library.family == "Intel MPI")
        search.ilp64 = search.ilp64 || program->file->defines_any(ilp64_names);
    if (search.ilp64) finding.outcome = Outcome::ilp64;
    if (conclusive(finding)) return finding;
    if (is_python(*program->file)) {
        finding = find_python_mpi(path, loader, *program, environment);
        if (conclusive(finding)) return finding;
    } else if (program->file->defines_any(static_names)) {
        finding.outcome = Outcome::static_mpi;
        return finding;
    }
    if (place.goes_on && !starts_others(path)) return finding;
    Finding behind = is_shell(path) ? find_behind_shell(command, environment, place)
                                    : find_in_words({command.begin() + 1, command.end()}, environment, place,
                                                    base_of(path) == "env");
    if (base_of(path) == "env" && behind.outcome == Outcome::found && drops_preload(command)) {
        behind.outcome = Outcome::dropped;
        behind.culprit = path;
    }
    return conclusive(behind) ? behind : finding;
}

// A program may change its folder, and its children inherit what we preload.
std::string absolute(const std::string& path) {
    if (path.empty() || path[0] == '/') return path;
    return canonical(folder_of(path)) + "/" + std::string(base_of(path));
}

}  // namespace

std::string_view name_of(Abi abi) {
    switch (abi) {
        case Abi::mpich:
            return "mpich";
        case Abi::ompi:
            return "ompi";
        case Abi::standard:
            return "abi";
    }
    return "";
}

std::optional<MpiLibrary> recognise(const ElfFile& file, const std::string& path) {
    // A profiling tool defines some of these; the library itself has both. PMPI_* may live in a second
    // library (libpmpi_abi), hence MPI_* names only.
    if (!file.exports("MPI_Init") || !file.exports("MPI_Get_library_version")) return std::nullopt;
    MpiLibrary library;
    library.path = path;
    library.soname = file.soname();
    const bool mpich = file.exports("MPIR_Err_create_code") || file.exports("MPIR_Err_return_comm");
    const bool intel = file.exports("I_MPI_Check_image_status");
    const bool ompi = file.exports("ompi_mpi_comm_world");
    // MPI_Abi_get_version alone does not tell: MPICH 5 exports it from the library with its own handles, too,
    // where it answers "no". Only the standard's own library name decides between the two.
    const std::string_view name = base_of(library.soname.empty() ? path : library.soname);
    if (file.exports("MPI_Abi_get_version") && name.substr(0, 10) == "libmpi_abi") {
        library.abi = Abi::standard;
        library.family = intel ? "Intel MPI" : mpich ? "MPICH" : ompi ? "Open MPI" : "MPI-5 ABI";
    } else if (ompi) {
        library.abi = Abi::ompi;
        library.family = "Open MPI";
    } else if (mpich || intel) {
        library.abi = Abi::mpich;
        library.family = intel ? "Intel MPI" : file.exports("MPIDI_CRAY_init") ? "Cray MPICH" : "MPICH";
    }
    return library;
}

Finding find_mpi(const std::vector<std::string>& command, const Environment& environment) {
    if (command.empty()) return {};
    Seen seen;
    Finding finding = find_in_program(command, environment, {&seen});
    finding.library.path = absolute(finding.library.path);
    for (std::string& path : finding.preload) path = absolute(path);
    if (finding.outcome != Outcome::none) return finding;
    Finding launcher = find_launcher_mpi(environment);
    return launcher.outcome == Outcome::found ? launcher : finding;
}

std::string explain_outcome(const Finding& finding, std::string_view program) {
    const std::string name(finding.culprit.empty() ? program : std::string_view(finding.culprit));
    switch (finding.outcome) {
        case Outcome::static_mpi:
            return name +
                   " contains its MPI library (static linking), which cannot be intercepted; link it "
                   "dynamically to use Thalweg; it runs unchanged";
        case Outcome::ilp64:
            return name +
                   " uses the ILP64 interface (8-byte integers), which Thalweg does not support; it runs "
                   "unchanged";
        case Outcome::launcher:
            return name + " starts the ranks: put `thalweg run` behind it (" + std::string(base_of(name)) +
                   " … thalweg run PROGRAM …); it runs unchanged";
        case Outcome::foreign:
            return name +
                   " is for another processor or C library than Thalweg was built for; it runs unchanged";
        case Outcome::unknown_abi:
            return finding.library.path +
                   " is an MPI library of a family that Thalweg does not know (neither MPICH, "
                   "Open MPI nor the MPI-5 ABI); the program runs unchanged";
        case Outcome::dropped:
            return name +
                   " starts the program without LD_PRELOAD, by which Thalweg is loaded; put `thalweg run` "
                   "behind "
                   "it (env … thalweg run PROGRAM …); the program runs unchanged";
        default:
            break;
    }
    if (!finding.missing.empty())
        return "no MPI library found for " + name + ", whose " + finding.missing.front() +
               " cannot be found either: check LD_LIBRARY_PATH; it runs unchanged";
    if (!finding.via.empty())
        return name + " has " + finding.via + ", which would find no MPI library: set MPI4PY_LIBMPI or " +
               "LD_LIBRARY_PATH; it runs unchanged";
    if (access(name.c_str(), X_OK) == 0 && access(name.c_str(), R_OK) != 0)
        return name +
               " may be run but not read, so that nothing tells which MPI library it would load: name " +
               "that by THALWEG_MPI_LIBRARY; it runs unchanged";
    return "no MPI library found in what " + name + " would load; it runs unchanged";
}

}  // namespace thalweg::tool
