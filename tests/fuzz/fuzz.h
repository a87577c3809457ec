// What the harnesses share. A harness is one file with LLVMFuzzerTestOneInput and seeds(): an input is any
// byte string, and a broken promise ends the program. The same file is linked with drive.cpp (bounded, the
// same inputs every time, any compiler) or with libFuzzer (Clang, for as long as one likes).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace thalweg::fuzz {

// Inputs that reach the inside of what is tested. Each harness defines its own.
std::vector<std::string> seeds();

// Says what is wrong on standard error and aborts.
[[noreturn]] void fail(const std::string& what);

// Reads an input as a sequence of decisions. Behind its end everything is 0, so that every input means
// something.
class Input {
  public:
    Input(const std::uint8_t* data, std::size_t size) : rest_(reinterpret_cast<const char*>(data), size) {}

    bool empty() const { return rest_.empty(); }
    std::uint8_t byte() {
        if (rest_.empty()) return 0;
        const auto value = static_cast<std::uint8_t>(rest_[0]);
        rest_.remove_prefix(1);
        return value;
    }
    std::uint64_t word(int bytes) {
        std::uint64_t value = 0;
        for (int i = 0; i < bytes; ++i) value |= std::uint64_t{byte()} << (8 * i);
        return value;
    }
    // Less than `bound`, which is at most 2^16.
    std::uint64_t below(std::uint64_t bound) { return word(bound <= 256 ? 1 : 2) % bound; }
    std::int64_t between(std::int64_t low, std::int64_t high) {
        return low + static_cast<std::int64_t>(below(static_cast<std::uint64_t>(high - low + 1)));
    }
    bool chance(std::uint64_t one_in) { return below(one_in) == one_in - 1; }

  private:
    std::string_view rest_;
};

}  // namespace thalweg::fuzz
