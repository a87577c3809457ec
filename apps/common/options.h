// The command line of a program, and the options that all programs share. No MPI here, and none of the
// parser's headers: what knows MPI is compiled once per library.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/version.h"

namespace CLI {
class App;
}

namespace thalweg::apps {

struct CommonOptions {
    std::vector<std::string> version_names{"blocking", "waited", "nonblocking", "manual"};
    std::vector<int> pieces{64};
    double slowdown = 0;  // seconds of sleep per unit of work
    int repeat = 3, warm_up = 1;
    std::string json;
    bool damage = false;

    std::vector<Version> versions;  // made of the names and pieces

    // unit: what one unit of work is, for the help text.
    void add_to(CLI::App& app, const std::string& unit);
};

// The options that were added to app() point to what they set, which has to outlive this.
class CommandLine {
  public:
    CommandLine(const std::string& about, const std::string& name);
    ~CommandLine();

    CLI::App& app() { return *app_; }
    const std::string& name() const { return name_; }

    // What came of it: the options are set, or `text` is the help that was asked for, or one sentence about a
    // mistake.
    struct Answer {
        enum class Kind { options, help, mistake } kind;
        std::string text;
    };
    Answer parse(int argc, char** argv);

  private:
    std::string name_;
    std::unique_ptr<CLI::App> app_;
};

}  // namespace thalweg::apps
