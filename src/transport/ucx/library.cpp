#include "transport/ucx/library.h"

#include <dlfcn.h>
#include <signal.h>

#include <array>
#include <cstring>
#include <mutex>
#include <optional>

#include "transport/ucx/environment.h"

namespace thalweg::ucx {
namespace {

constexpr const char* file_name = "libucp.so.0";
constexpr unsigned oldest_minor = 13;
constexpr unsigned oldest_minor_needing_registration = 14;
constexpr unsigned oldest_minor_with_two_thresholds = 17;
constexpr unsigned oldest_minor_without_bridges = 16;

// What a library may change in a process by being loaded: who handles signals, and the first instructions of
// the functions that libucm patches to see memory come and go.
class Fingerprint {
  public:
    Fingerprint() {
        for (int signal = 1; signal < NSIG; ++signal) {
            struct sigaction action = {};
            if (sigaction(signal, nullptr, &action) != 0) continue;
            handlers_[signal] = reinterpret_cast<void*>(action.sa_handler);
        }
        for (std::size_t i = 0; i < names.size(); ++i) {
            if (const void* code = dlsym(RTLD_DEFAULT, names[i])) {
                std::memcpy(code_[i].data(), code, code_[i].size());
            }
        }
    }
    bool operator==(const Fingerprint&) const = default;

  private:
    static constexpr std::array names = {"mmap", "munmap", "mremap", "madvise",
                                         "brk",  "sbrk",   "shmat",  "shmdt"};
    std::array<void*, NSIG> handlers_{};
    std::array<std::array<unsigned char, 16>, names.size()> code_{};
};

void* load(Library& library, std::string& why) {
    if (void* handle = dlopen(file_name, RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD)) return handle;
    const Fingerprint before;
    void* handle = nullptr;
    {
        // Read by constructors of libucs and libucm, where no configuration of ours can reach them. Messages
        // of the library would go to the program's standard output.
        const BorrowedEnvironment environment({{"UCX_HANDLE_ERRORS", "none"},
                                               {"UCX_DEBUG_SIGNO", "0"},
                                               {"UCX_MEM_EVENTS", "n"},
                                               {"UCX_VFS_ENABLE", "n"},
                                               {"UCX_LOG_LEVEL", "fatal", true}});
        handle = dlopen(file_name, RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
    }
    library.loaded_by_us = true;
    if (!handle) {
        const char* reason = dlerror();
        why = std::string("libucp cannot be loaded: ") + (reason ? reason : "no reason given");
        return nullptr;
    }
    if (!(before == Fingerprint())) {
        why = "this libucp changes signal handlers or memory functions of the process, so it is not used";
        return nullptr;
    }
    return handle;
}

bool look_up(Library& library, void* handle, std::string& why) {
#define UCX_CALL(name)                                                                    \
    library.name = reinterpret_cast<decltype(library.name)>(dlsym(handle, "ucp_" #name)); \
    if (!library.name) {                                                                  \
        why = "this libucp has no ucp_" #name;                                            \
        return false;                                                                     \
    }
#include "transport/ucx/calls.def"
#undef UCX_CALL
    // Of libucs, which libucp needs: the handle finds what its dependencies export.
    library.status_string =
        reinterpret_cast<decltype(library.status_string)>(dlsym(handle, "ucs_status_string"));
    if (!library.status_string) {
        why = "this libucp comes without ucs_status_string";
        return false;
    }
    unsigned major = 0, minor = 0, release = 0;
    library.get_version(&major, &minor, &release);
    library.version = library.get_version_string();
    if (major != UCP_API_MAJOR || minor < oldest_minor) {
        why = "libucp " + library.version + " is not 1.13 or a newer 1.x";
        return false;
    }
    library.needs_registration = library.loaded_by_us && minor >= oldest_minor_needing_registration;
    library.tells_hosts_apart = minor >= oldest_minor_with_two_thresholds;
    library.takes_bridges = minor < oldest_minor_without_bridges;
    return true;
}

}  // namespace

const Library* library(std::string& why) {
    static std::mutex mutex;
    // Never destroyed: the agent's thread may outlive static destructors.
    static Library* found = nullptr;
    static std::string* reason = nullptr;
    const std::lock_guard lock(mutex);
    if (!found && !reason) {
        auto* candidate = new Library;
        std::string sentence;
        void* handle = load(*candidate, sentence);
        if (handle && look_up(*candidate, handle, sentence)) {
            found = candidate;
        } else {
            delete candidate;
            reason = new std::string(sentence);
        }
    }
    if (!found) why = *reason;
    return found;
}

}  // namespace thalweg::ucx
