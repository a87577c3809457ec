// Runs a harness over a bounded number of inputs, the same ones every time: its seeds, seeds with a few
// changes, and random bytes. An input that ends the program is kept.
//
//     fuzz_NAME RUNS [SEED]      fuzz_NAME --input FILE...      fuzz_NAME --seeds FOLDER
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>

#include "fuzz/fuzz.h"

extern "C" int LLVMFuzzerInitialize(int* count, char*** arguments);
// Where a sanitizer is linked: it ends the program without a signal.
extern "C" void __sanitizer_set_death_callback(void (*)()) __attribute__((weak));

namespace {

constexpr std::size_t longest = 4096;

std::string current;
char kept_as[64];

// Only calls that a signal handler may make.
void keep() {
    const int file = open(kept_as, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    const char text[] = "fuzz: the input is kept in ";
    ssize_t written = file < 0 ? -1 : write(file, current.data(), current.size());
    if (written < 0) return;
    written = write(STDERR_FILENO, text, sizeof text - 1);
    written = write(STDERR_FILENO, kept_as, std::strlen(kept_as));
    written = write(STDERR_FILENO, "\n", 1);
}

struct sigaction before[NSIG];

// Then what would have happened without us: the fault comes again, or abort() goes on.
void keep_at(int signal) {
    keep();
    sigaction(signal, &before[signal], nullptr);
}

void keep_what_ends_us() {
    struct sigaction action {};
    action.sa_handler = keep_at;
    for (int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) sigaction(signal, &action, &before[signal]);
    if (__sanitizer_set_death_callback != nullptr) __sanitizer_set_death_callback(keep);
}

void run(std::string input) {
    current = std::move(input);
    // A copy of exactly its size: a checker sees a read behind it.
    const std::vector<std::uint8_t> bytes(current.begin(), current.end());
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

class Mutator {
  public:
    Mutator(std::vector<std::string> seeds, std::uint64_t seed) : seeds_(std::move(seeds)), random_(seed) {}

    std::string next() {
        if (seeds_.empty() || below(4) == 0) {
            std::string text(below(below(4) == 0 ? longest : 200), '\0');
            for (char& c : text) c = any();
            return text;
        }
        std::string text = one_seed();
        for (std::size_t changes = 1 + below(6); changes > 0; --changes) change(text);
        text.resize(std::min(text.size(), longest));
        return text;
    }

  private:
    std::size_t below(std::size_t bound) { return static_cast<std::size_t>(random_() % bound); }
    const std::string& one_seed() { return seeds_[below(seeds_.size())]; }
    char any() {
        static constexpr char odd[] = {'\0', '\xff', '\x7f', '\x80', '0', '9', ',',
                                       ':',  '=',    '(',    ')',    '"', '-', '.'};
        return below(3) == 0 ? odd[below(sizeof odd)] : static_cast<char>(random_());
    }

    void change(std::string& text) {
        const std::size_t at = below(text.size() + 1), left = text.size() - at;
        const std::size_t length = std::min(left, 1 + below(8));
        switch (below(8)) {
            case 0:
                if (left > 0) text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
                break;
            case 1:
                if (left > 0) text[at] = any();
                break;
            case 2:
                text.insert(at, 1, any());
                break;
            case 3:
                text.erase(at, length);
                break;
            case 4:
                text.insert(at, text.substr(at, below(64)));
                break;
            case 5: {  // a piece of another seed
                const std::string& other = one_seed();
                const std::size_t from = below(other.size() + 1);
                text.insert(at, other, from, 1 + below(24));
                break;
            }
            case 6:
                if (left > 0) text.insert(at, 1 + below(below(4) == 0 ? 400 : 20), text[at]);
                break;
            default:
                text.resize(at);
                break;
        }
    }

    std::vector<std::string> seeds_;
    std::mt19937_64 random_;
};

bool number(const char* text, std::uint64_t& to) {
    const char* end = text + std::strlen(text);
    const auto [stop, error] = std::from_chars(text, end, to);
    return error == std::errc{} && stop == end;
}

}  // namespace

int main(int count, char** arguments) {
    LLVMFuzzerInitialize(&count, &arguments);
    const char* slash = std::strrchr(arguments[0], '/');
    std::snprintf(kept_as, sizeof kept_as, "%.40s.input", slash == nullptr ? arguments[0] : slash + 1);
    keep_what_ends_us();

    if (count >= 3 && std::strcmp(arguments[1], "--input") == 0) {
        for (int i = 2; i < count; ++i) {
            std::ifstream file(arguments[i], std::ios::binary);
            if (!file) {
                std::fprintf(stderr, "cannot read %s\n", arguments[i]);
                return 2;
            }
            run(std::string(std::istreambuf_iterator<char>(file), {}));
        }
        return 0;
    }
    std::uint64_t runs = 0, seed = 1;
    if (count < 2 || count > 3 || !number(arguments[1], runs) ||
        (count == 3 && !number(arguments[2], seed))) {
        std::fprintf(stderr, "usage: %s RUNS [SEED], or --input FILE..., or --seeds FOLDER\n", arguments[0]);
        return 2;
    }
    const std::vector<std::string> seeds = thalweg::fuzz::seeds();
    for (const std::string& input : seeds) run(input);
    Mutator mutator(seeds, seed);
    for (std::uint64_t i = 0; i < runs; ++i) run(mutator.next());
    std::printf("%zu seeds and %llu inputs\n", seeds.size(), static_cast<unsigned long long>(runs));
    return 0;
}
