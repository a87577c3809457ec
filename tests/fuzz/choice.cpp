// Algorithms as text: what parses is written in a form that parses to the same choice; what does not says why
// and changes nothing.
#include "algorithms/algorithm.h"
#include "fuzz/fuzz.h"

using namespace thalweg;

std::vector<std::string> fuzz::seeds() {
    std::vector<std::string> seeds;
    for (const Algorithm& row : algorithms()) {
        seeds.push_back(to_text(standard_choice(row)));
        if (row.collective != Collective::bcast) continue;
        for (const Parameter& parameter : row.parameters)
            seeds.push_back(std::string(row.name) + ":" + std::string(parameter.name) + "=7");
    }
    for (const Twin& twin : twins()) seeds.emplace_back(twin.choice);
    seeds.push_back("node_leader(intra=kary:fanout=3:chunk_bytes=1M,inter=circulant:chunk_bytes=0)");
    seeds.push_back("node_leader(inter=node_leader(inter=node_leader(inter=node_leader(inter=linear))))");
    return seeds;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string text(reinterpret_cast<const char*>(data), size);
    const Choice before = standard_choice(algorithms()[0]);
    Choice choice = before, again;
    std::string why;
    if (parse_choice(Collective::bcast, text, choice, why) != Status::ok) {
        if (why.empty()) fuzz::fail("refused without a word");
        if (choice != before) fuzz::fail("refused, but changed: " + to_text(choice));
        return 0;
    }
    const std::string written = to_text(choice);
    if (parse_choice(Collective::bcast, written, again, why) != Status::ok)
        fuzz::fail(written + " does not read back: " + why);
    if (again != choice) fuzz::fail(written + " reads back as " + to_text(again));
    return 0;
}
