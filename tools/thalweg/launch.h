// What `thalweg run` decides before it becomes the program: which preload objects, in which environment.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/options.h"
#include "environment.h"
#include "find_mpi.h"

namespace thalweg::tool {

struct Launch {
    bool intercepted = false;  // false: the program runs unchanged
    Finding finding;
    std::vector<std::string> objects;  // our preload objects, full paths, in order
    LogLevel level = LogLevel::info;   // how loud `sentence` is
    std::string sentence;              // what was decided and why, without full stop; may be empty
};

// Decides for `command` (as for execvp) and changes `environment` accordingly: LD_PRELOAD and
// THALWEG_PRELOADED_MPI. What an outer `thalweg run` preloaded is replaced.
Launch prepare_launch(const std::vector<std::string>& command, const Settings& settings,
                      Environment& environment);

// The MPI that THALWEG_MPI_LIBRARY names. Where that is none, `why` is set to a sentence without full stop.
// Pre: it names one.
Finding find_named_mpi(const Settings& settings, std::string& why);

// The folder of the preload objects: `home` if given, else ../lib beside this program's own folder.
std::string object_folder(std::string_view home);

// The path of "libthalweg-mpich.so" there, or empty.
std::string find_object(std::string_view file_name, std::string_view home);

// False on the ranks whose number the launcher has given and is not 0: what all ranks have to say, one says.
bool speaks_for_job(const Environment& environment);

}  // namespace thalweg::tool
