#include "plan/report_file.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>

#include "base/signals_blocked.h"

namespace thalweg {

namespace {

char folder[PATH_MAX] = "";  // noted in MPI_Init

std::string said(int error) {
    char text[128] = "";
    return strerror_r(error, text, sizeof text);
}

// All of `text` into `file`, which is closed. 0, or errno.
int write_and_close(int file, std::string_view text) {
    const WriteSignalsBlocked blocked;
    int error = 0;
    while (!text.empty() && error == 0) {
        const ssize_t written = write(file, text.data(), text.size());
        if (written >= 0)
            text.remove_prefix(static_cast<std::size_t>(written));
        else if (errno != EINTR)
            error = errno;
    }
    // Some file systems tell only now that there was no room.
    if (close(file) != 0 && error == 0) error = errno;
    return error;
}

std::string write_as_it_is(const std::string& path, std::string_view text, int how = O_CREAT | O_TRUNC) {
    const int file = open(path.c_str(), O_WRONLY | O_CLOEXEC | how, 0666);
    const int error = file < 0 ? errno : write_and_close(file, text);
    return error == 0 ? std::string() : said(error);
}

// Whether the path names what a process has open, and not a place for a file.
bool names_open_file(std::string_view path) {
    return path == "/dev/stdout" || path == "/dev/stderr" || path.starts_with("/dev/fd/") ||
           (path.starts_with("/proc/") && path.find("/fd/") != path.npos);
}

// The descriptor of this process that the path names, or -1.
int descriptor_of(std::string_view path) {
    if (path == "/dev/stdout") return 1;
    if (path == "/dev/stderr") return 2;
    for (const std::string_view folder : {"/dev/fd/", "/proc/self/fd/"}) {
        if (!path.starts_with(folder)) continue;
        const std::string_view digits = path.substr(folder.size());
        const char* const end = digits.data() + digits.size();
        int number = -1;
        if (std::from_chars(digits.data(), end, number).ptr == end) return number;
    }
    return -1;
}

// Behind what is in a file that a process has open. By our own descriptor where there is one: what the
// program writes later goes on behind the report, and not over it.
std::string write_behind(const std::string& path, std::string_view text) {
    const int number = descriptor_of(path);
    if (number < 0 || (fcntl(number, F_GETFL) & O_ACCMODE) == O_RDONLY)
        return write_as_it_is(path, text, O_APPEND);
    const int file = fcntl(number, F_DUPFD_CLOEXEC, 0);
    const int error = file < 0 ? errno : write_and_close(file, text);
    return error == 0 ? std::string() : said(error);
}

}  // namespace

void note_report_folder() {
    if (getcwd(folder, sizeof folder) == nullptr) *folder = '\0';
}

std::string report_path(std::string path) {
    if (path.empty() || path[0] == '/' || *folder == '\0') return path;
    return std::string(folder) + "/" + path;
}

std::string path_of_spawned(std::string path) {
    struct stat there {};
    if (names_open_file(path) || (stat(path.c_str(), &there) == 0 && S_ISCHR(there.st_mode))) return path;
    char name[256] = "";
    gethostname(name, sizeof name - 1);
    const std::size_t slash = path.rfind('/'), dot = path.rfind('.');
    const std::size_t name_begin = slash == path.npos ? 0 : slash + 1;
    const bool has_extension = dot != path.npos && dot > name_begin;
    path.insert(has_extension ? dot : path.size(),
                ".spawned-" + std::string(name) + "-" + std::to_string(getpid()));
    return path;
}

std::string write_report_file(const std::string& path, std::string_view text) {
    struct stat there {};
    const bool exists = stat(path.c_str(), &there) == 0;
    if (exists && !S_ISREG(there.st_mode)) return write_as_it_is(path, text);
    if (exists && names_open_file(path)) return write_behind(path, text);
    if (exists && access(path.c_str(), W_OK) != 0) return said(errno);
    // A link to a file that is not there yet makes that file.
    struct stat link {};
    if (!exists && lstat(path.c_str(), &link) == 0 && S_ISLNK(link.st_mode))
        return write_as_it_is(path, text);
    char real[PATH_MAX];  // what a link points to, not the link, is replaced
    const std::string target = exists && realpath(path.c_str(), real) != nullptr ? real : path;
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    const std::string fresh = target + "." + host + "-" + std::to_string(getpid()) + ".part";
    const int file = open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    // In a folder that takes no new files there may be one that takes a new text.
    if (file < 0) return write_as_it_is(path, text);
    if (exists) fchmod(file, there.st_mode & 07777);
    const int error = write_and_close(file, text);
    if (error == 0 && rename(fresh.c_str(), target.c_str()) == 0) return {};
    const int refused = error == 0 ? errno : error;
    unlink(fresh.c_str());
    // What is mounted there, or another's in a folder like /tmp, cannot be replaced and may still be written;
    // without O_CREAT, which such folders may refuse.
    return error == 0 && exists ? write_as_it_is(path, text, O_TRUNC) : said(refused);
}

}  // namespace thalweg
