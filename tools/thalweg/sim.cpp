// thalweg sim: checks the command line here, and leaves the work to thalweg-sim beside this program, which is
// built where SimGrid is installed. This program must stay quick to start: every rank of a job starts it.
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "environment.h"
#include "script.h"
#include "sim/request.h"
#include "verb.h"

namespace {

// thalweg sim plot --out curve.png FILE
int plot(int argc, char** argv) {
    using namespace thalweg::tool;
    CLI::App app{
        "thalweg sim plot [--out PICTURE] FILE\n"
        "Draws what --json printed or what --trace wrote (needs Python's matplotlib).",
        "thalweg sim plot"};
    std::string file, picture = "sim.png";
    app.add_option("FILE", file, "JSON lines of --json, or a file of --trace")->required();
    app.add_option("--out", picture, "the picture to write (.png, .svg, .pdf)")->capture_default_str();
    std::string name = "sim plot";
    argv[0] = name.data();
    if (const auto status = parse(app, argc, argv)) return *status;
    return run_script("sim", "sim/plot.py", {"--out", picture, file});
}

}  // namespace

int sim_main(int argc, char** argv) {
    using namespace thalweg::tool;
    if (argc > 1 && std::string_view(argv[1]) == "plot") return plot(argc - 1, argv + 1);
    // CLI11 would take the next option for the value, and write a trace of that name.
    for (const char* const each : std::span(argv, static_cast<std::size_t>(argc)))
        if (const std::string_view word(each); word.starts_with("--") && word.find('=') == word.size() - 1)
            return usage_error("sim", std::string(word) + " has no value: give it one, or leave it out");
    thalweg::sim::Request request;
    if (const auto status = thalweg::sim::parse_request(argc, argv, request)) return *status;
    // It is written when all is simulated, which may take long.
    if (const std::string why = why_not_writable(request.trace_path); !why.empty())
        return usage_error("sim", "--trace: " + why);
    char self[4096];
    const ssize_t length = readlink("/proc/self/exe", self, sizeof self);
    if (length <= 0 || length == sizeof self) {
        usage_error("sim", "cannot find this program's own place");
        return exit_failure;
    }
    std::string program(self, static_cast<std::size_t>(length));
    program.replace(program.rfind('/') + 1, std::string::npos, "thalweg-sim");
    execv(program.c_str(), argv);
    const int error = errno;
    if (error == ENOENT)
        usage_error("sim",
                    "this Thalweg was built without SimGrid: install it (Debian: libsimgrid-dev) and "
                    "build again; `thalweg explain` needs no more than this program");
    else
        usage_error("sim", "cannot start " + program + ": " + std::strerror(error));
    return exit_failure;
}
