// How settings are written into result rows.
#pragma once

#include <string>

namespace thalweg::bench {

// Of a file only its name: where it lies says nothing to others.
inline std::string recorded_value(const std::string& value) {
    return value.starts_with('/') ? value.substr(value.rfind('/') + 1) : value;
}

}  // namespace thalweg::bench
