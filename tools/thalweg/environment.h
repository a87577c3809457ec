// A copy of the environment that can be changed before a program is started with it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace thalweg::tool {

class Environment {
  public:
    Environment() = default;
    explicit Environment(const char* const* environment);

    std::optional<std::string_view> find(std::string_view name) const;
    // The value, or the empty text when unset.
    std::string_view get(std::string_view name) const { return find(name).value_or(std::string_view()); }
    void set(std::string_view name, std::string_view value);
    void unset(std::string_view name);
    // As `cd` in a shell: from now on what is named by a relative path may be there, or where it was before.
    // Does nothing where there is no such folder.
    void enter(std::string_view folder);
    // Those entered, the latest last.
    const std::vector<std::string>& folders() const { return folders_; }
    // The same for equal environments, folders included, and by all chances another for others.
    std::size_t digest() const;
    // For execve; valid until the next change.
    std::vector<char*> pointers();

  private:
    std::vector<std::string> entries_;  // "NAME=value"
    std::vector<std::string> folders_;
};

// The parts of "a:b::c", empty ones included.
std::vector<std::string_view> split(std::string_view text, std::string_view separators);

bool is_regular_file(const std::string& path);
bool is_executable_file(const std::string& path);
std::string canonical(const std::string& path);  // links resolved; the path itself when it does not exist
std::string folder_of(std::string_view path);    // "." when there is no slash
std::string_view base_of(std::string_view path);

// A sentence where the file at `path` could not be written or made, told before the work whose result it is
// to hold; else an empty text. Nothing is made or changed, so a disk that is full is not seen.
std::string why_not_writable(const std::string& path);

// What execvp would run, or empty when there is nothing.
std::string find_in_path(std::string_view program, const Environment& environment);

// The files that it would try, in order, whether they are there or not.
std::vector<std::string> places_in_path(std::string_view program, const Environment& environment);

}  // namespace thalweg::tool
