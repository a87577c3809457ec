#include "plan/report_file.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace thalweg {

namespace {

char folder[PATH_MAX] = "";  // noted in MPI_Init

std::string said(int error) {
    char text[128] = "";
    return strerror_r(error, text, sizeof text);
}

// All of `text` into `file`, which is closed. 0, or errno.
int write_and_close(int file, std::string_view text) {
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

std::string write_as_it_is(const std::string& path, std::string_view text) {
    const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
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

std::string write_report_file(const std::string& path, std::string_view text) {
    struct stat there {};
    const bool exists = stat(path.c_str(), &there) == 0;
    if (exists && !S_ISREG(there.st_mode)) return write_as_it_is(path, text);
    if (exists && access(path.c_str(), W_OK) != 0) return said(errno);
    char real[PATH_MAX];  // what a link points to, not the link, is replaced
    const std::string target = exists && realpath(path.c_str(), real) != nullptr ? real : path;
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    const std::string fresh = target + "." + host + "-" + std::to_string(getpid()) + ".part";
    const int file = open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    // In a folder that takes no new files there may be one that takes a new text.
    if (file < 0) return write_as_it_is(path, text);
    if (exists) fchmod(file, there.st_mode & 07777);
    int error = write_and_close(file, text);
    if (error == 0 && rename(fresh.c_str(), target.c_str()) != 0) error = errno;
    if (error == 0) return {};
    unlink(fresh.c_str());
    return said(error);
}

}  // namespace thalweg
