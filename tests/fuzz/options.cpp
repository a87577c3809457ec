// The environment: any block of NAME=value texts is read; what was read is written in a form that reads back;
// rank 0's blob makes the agreed options equal and leaves the others alone. A zero byte ends an entry.
#include "base/options.h"

#include <cstring>

#include "algorithms/algorithm.h"
#include "fuzz/fuzz.h"

using namespace thalweg;

namespace {

bool check(const Option& option, std::string_view value, std::string& why) {
    if (option.kind != OptionKind::algorithm) return true;
    Choice choice;
    return parse_choice(Collective::bcast, value, choice, why) == Status::ok;
}

void reads_back(const Settings& settings) {
    for (std::size_t i = 0; i < option_count; ++i) {
        const Option& option = options()[i];
        const std::string text = settings.value_text(i);
        if (text.empty()) continue;  // none: the empty text restores the default
        Settings again;
        std::string why;
        if (again.set(option.variable, text, Origin::environment, why, check) != Status::ok)
            fuzz::fail("the value of " + std::string(option.variable) + " does not read back: " + why);
        if (again.value_text(i) != text)
            fuzz::fail(std::string(option.variable) + ": " + text + " becomes " + again.value_text(i));
    }
}

void is_adopted(const Settings& rank0) {
    Settings here;
    std::vector<std::string_view> differing;
    if (here.adopt(rank0.to_blob(), differing) != Status::ok) fuzz::fail("the own build's blob is refused");
    for (std::size_t i = 0; i < option_count; ++i) {
        const bool agreed = options()[i].scope == Scope::agreed;
        if (here.value_text(i) != (agreed ? rank0 : Settings{}).value_text(i))
            fuzz::fail(std::string(options()[i].variable) +
                       (agreed ? " is not adopted" : " is nobody else's"));
    }
}

}  // namespace

std::vector<std::string> fuzz::seeds() {
    using namespace std::string_literals;  // for the zero bytes
    std::vector<std::string> seeds;
    std::string all;
    for (const Option& option : options()) {
        const std::string name(option.variable);
        std::string accepted(option.accepted);
        for (char end : {'|', '.'}) accepted = accepted.substr(0, accepted.find(end));
        seeds.push_back(name + "=" + std::string(option.standard));
        seeds.push_back(name + "=" + accepted);
        all += seeds.back() + '\0';
    }
    seeds.push_back(all);
    seeds.push_back("THALWEG_BCAST=node_leader(intra=linear,inter=chain:chunk_bytes=64K)"s);
    seeds.push_back("THALWEG_RATE=3GiB/s\0THALWEG_RATE=12.5gbit\0THALWEG_LATENCY_US=1.5"s);
    seeds.push_back("THALWEGS=1\0THALWEG_LAB_X=2\0PATH=/bin\0THALWEG_BCSAT=auto"s);
    return seeds;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string block(reinterpret_cast<const char*>(data), size);
    std::vector<const char*> environment;
    for (std::size_t at = 0; at < block.size(); at += std::strlen(block.c_str() + at) + 1)
        environment.push_back(block.c_str() + at);
    environment.push_back(nullptr);

    std::vector<Complaint> complaints;
    const Settings settings = Settings::from_environment(environment.data(), complaints, check);
    for (const Complaint& complaint : complaints)
        if (complaint.sentence.empty()) fuzz::fail("a complaint without words");
    reads_back(settings);
    is_adopted(settings);
    return 0;
}
