#include <cstring>

#include "transport/shm/protocol.h"

namespace thalweg::shm {

const Protocol* find_protocol(std::uint32_t number) {
    return number < protocols.size() ? protocols[number] : nullptr;
}

const Protocol* find_protocol(const char* name) {
    for (const Protocol* protocol : protocols)
        if (std::strcmp(protocol->name, name) == 0) return protocol;
    return nullptr;
}

std::uint32_t number_of(const Protocol& protocol) {
    std::uint32_t number = 0;
    while (protocols[number] != &protocol) ++number;
    return number;
}

}  // namespace thalweg::shm
