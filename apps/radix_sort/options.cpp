#include "radix_sort/options.h"

#include <CLI/CLI.hpp>

#include "radix_sort/keys.h"

namespace thalweg::apps {

void SortOptions::add_to(CLI::App& app) {
    app.add_option("--keys", keys, "how many keys in all; several make several sorts")
        ->delimiter(',')
        ->check(CLI::Range(std::uint64_t{0}, std::uint64_t{1} << 46))
        ->transform(CLI::AsSizeValue(false))
        ->capture_default_str();
    app.add_option("--input", inputs, "what they are like: " + all_inputs())
        ->delimiter(',')
        ->capture_default_str();
    app.add_option("--key-bits", key_bits, "bits of a key")
        ->check(CLI::IsMember({32, 64}))
        ->capture_default_str();
    app.add_option("--digit-bits", digit_bits, "bits sorted by in one pass")
        ->check(CLI::Range(1, 24))
        ->capture_default_str();
    app.add_option("--seed", seed, "of the input")->capture_default_str();
    app.add_option("--serial-bytes", serial_bytes,
                   "up to so many bytes of keys are also compared with a serial sort on rank 0")
        ->check(CLI::Range(std::uint64_t{0}, std::uint64_t{1} << 31))
        ->transform(CLI::AsSizeValue(false))
        ->capture_default_str();
    common.add_to(app, "key of the local sort");
}

}  // namespace thalweg::apps
