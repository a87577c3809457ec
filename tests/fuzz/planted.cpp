// A harness with a planted fault, for the test of drive.cpp: it breaks for inputs near its seed, never for
// the seed.
#include "fuzz/fuzz.h"

std::vector<std::string> thalweg::fuzz::seeds() { return {"depth=12;bottom=no"}; }

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    if (text.starts_with("depth=1") && text.ends_with("bottom=no") && text.size() == 19)
        thalweg::fuzz::fail("the planted fault is found");
    return 0;
}
