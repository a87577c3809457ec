// thalweg sim: checks the command line here, and leaves the work to thalweg-sim beside this program, which is
// built where SimGrid is installed. This program must stay quick to start: every rank of a job starts it.
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "sim/request.h"
#include "verb.h"

int sim_main(int argc, char** argv) {
    using namespace thalweg::tool;
    thalweg::sim::Request request;
    if (const auto status = thalweg::sim::parse_request(argc, argv, request)) return *status;
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
