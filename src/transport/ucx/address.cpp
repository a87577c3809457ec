#include <cstring>

#include "transport/ucx/port.h"

// A process's address: a header, then per rail its length and libucp's bytes, padded to 8.
namespace thalweg::ucx {
namespace {

struct Header {
    std::uint32_t magic = 0x31574c54;  // "TLW1"
    std::uint32_t rails = 0;
    std::uint64_t host_key = 0;
};

std::size_t padded(std::size_t bytes) { return (bytes + 7) / 8 * 8; }

}  // namespace

std::vector<std::byte> format_address(std::uint64_t host_key,
                                      const std::vector<std::vector<std::byte>>& rails) {
    Header header;
    header.rails = static_cast<std::uint32_t>(rails.size());
    header.host_key = host_key;
    std::vector<std::byte> bytes(sizeof header);
    std::memcpy(bytes.data(), &header, sizeof header);
    for (const auto& rail : rails) {
        const std::uint64_t length = rail.size();
        const std::size_t at = bytes.size();
        bytes.resize(at + sizeof length + padded(rail.size()));
        std::memcpy(bytes.data() + at, &length, sizeof length);
        std::memcpy(bytes.data() + at + sizeof length, rail.data(), rail.size());
    }
    return bytes;
}

bool parse_address(std::span<const std::byte> bytes, AddressView& view) {
    Header header;
    if (bytes.size() < sizeof header) return false;
    std::memcpy(&header, bytes.data(), sizeof header);
    if (header.magic != Header{}.magic || header.rails == 0 || header.rails > ucx_most_rails) return false;
    view.host_key = header.host_key;
    view.rails.clear();
    bytes = bytes.subspan(sizeof header);
    for (std::uint32_t rail = 0; rail < header.rails; ++rail) {
        std::uint64_t length = 0;
        if (bytes.size() < sizeof length) return false;
        std::memcpy(&length, bytes.data(), sizeof length);
        bytes = bytes.subspan(sizeof length);
        if (length == 0 || length > bytes.size() || padded(length) > bytes.size()) return false;
        view.rails.push_back(bytes.first(length));
        bytes = bytes.subspan(padded(length));
    }
    return bytes.empty();
}

}  // namespace thalweg::ucx
