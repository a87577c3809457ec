#include "environment.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <functional>

namespace thalweg::tool {

namespace {

bool names(const std::string& entry, std::string_view name) {
    return entry.size() > name.size() && entry[name.size()] == '=' &&
           entry.compare(0, name.size(), name) == 0;
}

}  // namespace

Environment::Environment(const char* const* environment) {
    for (; environment != nullptr && *environment != nullptr; ++environment)
        entries_.emplace_back(*environment);
}

std::optional<std::string_view> Environment::find(std::string_view name) const {
    for (const std::string& entry : entries_)
        if (names(entry, name)) return std::string_view(entry).substr(name.size() + 1);
    return std::nullopt;
}

void Environment::set(std::string_view name, std::string_view value) {
    std::string entry = std::string(name) + "=" + std::string(value);
    for (std::string& old : entries_)
        if (names(old, name)) {
            old = std::move(entry);
            return;
        }
    entries_.push_back(std::move(entry));
}

void Environment::unset(std::string_view name) {
    std::erase_if(entries_, [name](const std::string& entry) { return names(entry, name); });
}

void Environment::enter(std::string_view folder) {
    const bool relative = !folder.empty() && folder.front() != '/';
    std::string path(folder);
    if (relative && !folders_.empty()) path = folders_.back() + "/" + path;
    struct stat status {};
    if (stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) folders_.push_back(std::move(path));
}

std::size_t Environment::digest() const {
    std::size_t digest = 0;
    for (const auto* texts : {&entries_, &folders_})
        for (const std::string& text : *texts) digest = digest * 31 + std::hash<std::string>()(text);
    return digest;
}

std::vector<char*> Environment::pointers() {
    std::vector<char*> all;
    for (std::string& entry : entries_) all.push_back(entry.data());
    all.push_back(nullptr);
    return all;
}

std::vector<std::string_view> split(std::string_view text, std::string_view separators) {
    std::vector<std::string_view> parts;
    if (text.empty()) return parts;
    for (;;) {
        const std::size_t end = text.find_first_of(separators);
        parts.push_back(text.substr(0, end));
        if (end == std::string_view::npos) return parts;
        text.remove_prefix(end + 1);
    }
}

bool is_regular_file(const std::string& path) {
    struct stat status {};
    return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

bool is_executable_file(const std::string& path) {
    return is_regular_file(path) && access(path.c_str(), X_OK) == 0;
}

std::string canonical(const std::string& path) {
    char resolved[PATH_MAX];
    return realpath(path.c_str(), resolved) != nullptr ? resolved : path;
}

std::string folder_of(std::string_view path) {
    const std::size_t slash = path.rfind('/');
    if (slash == std::string_view::npos) return ".";
    return std::string(slash == 0 ? "/" : path.substr(0, slash));
}

std::string_view base_of(std::string_view path) {
    const std::size_t slash = path.rfind('/');
    return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

std::string why_not_writable(const std::string& path) {
    const std::string folder = folder_of(path);
    struct stat status {};
    if (path.empty()) return {};
    if (stat(path.c_str(), &status) == 0) {
        if (S_ISDIR(status.st_mode)) return path + " is a folder";
        return access(path.c_str(), W_OK) == 0 ? "" : path + " cannot be written: " + strerror(errno);
    }
    if (stat(folder.c_str(), &status) != 0 || !S_ISDIR(status.st_mode))
        return "there is no folder " + folder + " for " + std::string(base_of(path));
    if (access(folder.c_str(), W_OK | X_OK) == 0) return {};
    return path + " cannot be made: " + strerror(errno);
}

std::vector<std::string> places_in_path(std::string_view program, const Environment& environment) {
    if (program.empty()) return {};
    std::vector<std::string> places;
    if (program.find('/') != std::string_view::npos) {
        const auto& folders = environment.folders();
        if (program.front() != '/')
            for (auto folder = folders.rbegin(); folder != folders.rend(); ++folder)
                places.push_back(*folder + "/" + std::string(program));
        places.emplace_back(program);
        return places;
    }
    for (std::string_view folder : split(environment.find("PATH").value_or("/bin:/usr/bin"), ":"))
        places.push_back((folder.empty() ? "." : std::string(folder)) + "/" + std::string(program));
    return places;
}

std::string find_in_path(std::string_view program, const Environment& environment) {
    for (std::string& place : places_in_path(program, environment))
        if (is_executable_file(place)) return std::move(place);
    return {};
}

}  // namespace thalweg::tool
