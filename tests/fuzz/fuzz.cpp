#include "fuzz/fuzz.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

namespace thalweg::fuzz {

void fail(const std::string& what) {
    std::fprintf(stderr, "fuzz: %s\n", what.c_str());
    std::abort();
}

}  // namespace thalweg::fuzz

// PROGRAM --seeds FOLDER writes the seeds as files, for libFuzzer's first corpus. Both mains call this first.
extern "C" int LLVMFuzzerInitialize(int* count, char*** arguments) {
    if (*count != 3 || std::strcmp((*arguments)[1], "--seeds") != 0) return 0;
    int number = 0;
    for (const std::string& seed : thalweg::fuzz::seeds()) {
        std::ofstream file(std::string((*arguments)[2]) + "/seed-" + std::to_string(number++),
                           std::ios::binary);
        file << seed;
        if (!file.flush()) {
            std::fprintf(stderr, "cannot write into %s\n", (*arguments)[2]);
            std::exit(1);
        }
    }
    std::exit(0);
}
