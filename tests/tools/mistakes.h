// What the tests of mistakes share.
#pragma once

#include <algorithm>

#include "shell.h"

namespace thalweg::test {

inline std::string tool(const std::string& arguments) { return "'" + thalweg + "' " + arguments; }

// One sentence, and this exit status.
inline void refused(const Result& result, int status, const std::string& sentence) {
    EXPECT_EQ(result.status, status) << result.text;
    EXPECT_NE(result.text.find(sentence), std::string::npos) << sentence << ": " << result.text;
    EXPECT_EQ(std::count(result.text.begin(), result.text.end(), '\n'), 1) << result.text;
}

class Starting : public Scratch {};

}  // namespace thalweg::test
