// The Python scripts that come with Thalweg: they draw, with matplotlib, a well-kept library and on nobody's
// hot path.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace thalweg::tool {

// Becomes `script` with these words: "bench/plot.py" of the sources that this program was built in, or of
// share/thalweg beside it, run by the Python of the sources' .venv or by python3. Returns only where that
// fails: exit_failure, which `verb` has told in one line.
int run_script(std::string_view verb, std::string_view script, std::vector<std::string> words);

}  // namespace thalweg::tool
