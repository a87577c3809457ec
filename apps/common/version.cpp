#include "common/version.h"

namespace thalweg::apps {

std::string Version::name() const {
    switch (style) {
        case Style::blocking:
            return "blocking";
        case Style::waited:
            return "waited";
        case Style::nonblocking:
            return "nonblocking";
        case Style::manual:
            return "manual/" + std::to_string(pieces);
    }
    return "";
}

bool parse_versions(const std::vector<std::string>& names, const std::vector<int>& pieces,
                    std::vector<Version>& versions, std::string& why) {
    std::vector<Version> parsed;
    for (const auto& name : names) {
        if (name == "blocking") {
            parsed.push_back({Style::blocking, 1});
        } else if (name == "waited") {
            parsed.push_back({Style::waited, 1});
        } else if (name == "nonblocking") {
            parsed.push_back({Style::nonblocking, 1});
        } else if (name == "manual") {
            for (const int count : pieces) parsed.push_back({Style::manual, count});
        } else {
            why = "there is no version " + name + "; there are blocking, waited, nonblocking and manual";
            return false;
        }
    }
    versions = std::move(parsed);
    return true;
}

}  // namespace thalweg::apps
