// Shows a library other environment variables while it loads, without touching anybody's memory.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace thalweg {

struct Variable {
    std::string_view name;   // "UCX_HANDLE_ERRORS"
    std::string_view value;  // "none"
    bool keep = false;       // what the environment already says, if it says anything, holds
};

// While it lives, getenv() finds `variables`; afterwards the environment is what it was, by content and by
// address. setenv() would not do: it may free an array that another thread is reading. Here `environ` points
// to an array of our own meanwhile, which is never freed. If another thread calls setenv() meanwhile, its
// change stays and ours are taken back one by one. One at a time in a process; allocates.
class BorrowedEnvironment {
  public:
    explicit BorrowedEnvironment(const std::vector<Variable>& variables);
    ~BorrowedEnvironment();
    BorrowedEnvironment(const BorrowedEnvironment&) = delete;
    BorrowedEnvironment& operator=(const BorrowedEnvironment&) = delete;

  private:
    char** before_;
    char** ours_;
    struct Shown {
        std::string name;
        std::optional<std::string> before;
    };
    std::vector<Shown> shown_;
};

}  // namespace thalweg
