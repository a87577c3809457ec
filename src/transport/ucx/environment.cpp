#include "transport/ucx/environment.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace thalweg {
namespace {

bool names(const char* entry, std::string_view name) {
    return std::strncmp(entry, name.data(), name.size()) == 0 && entry[name.size()] == '=';
}

// The blocks that were shown, newest first, each with the one before it in front. Nobody reads them here:
// what is kept on purpose stays in sight, of those who look for leaks too.
void** shown_blocks = nullptr;

}  // namespace

BorrowedEnvironment::BorrowedEnvironment(const std::vector<Variable>& variables) : before_(environ) {
    for (const Variable& variable : variables) {
        const char* value = std::getenv(std::string(variable.name).c_str());
        if (value && variable.keep) continue;
        shown_.push_back({std::string(variable.name), std::nullopt});
        if (value) shown_.back().before = value;
    }
    std::vector<char*> entries;
    for (char** entry = before_; entry && *entry; ++entry) {
        bool replaced = false;
        for (const Shown& shown : shown_) replaced |= names(*entry, shown.name);
        if (!replaced) entries.push_back(*entry);
    }
    for (const Variable& variable : variables) {
        for (const Shown& shown : shown_) {
            if (shown.name != variable.name) continue;
            entries.push_back(strdup((shown.name + "=" + std::string(variable.value)).c_str()));
        }
    }
    entries.push_back(nullptr);
    // Neither the array nor the strings are ever freed: a thread may still be reading them.
    auto** const block = static_cast<void**>(std::malloc((1 + entries.size()) * sizeof(void*)));
    if (!block) {
        ours_ = before_;
        return;
    }
    block[0] = shown_blocks;
    shown_blocks = block;
    ours_ = reinterpret_cast<char**>(block + 1);
    std::memcpy(ours_, entries.data(), entries.size() * sizeof(char*));
    environ = ours_;
}

BorrowedEnvironment::~BorrowedEnvironment() {
    if (environ == ours_) {
        environ = before_;
        return;
    }
    // Somebody called setenv(), which may have freed the old array.
    for (const Shown& shown : shown_) {
        if (shown.before) {
            setenv(shown.name.c_str(), shown.before->c_str(), 1);
        } else {
            unsetenv(shown.name.c_str());
        }
    }
}

}  // namespace thalweg
