#include "transport/shm/mappings.h"

#include <sys/mman.h>
#include <sys/sysmacros.h>

#include <cstdio>
#include <cstring>
#include <memory>

namespace thalweg::shm {
namespace {

// Calls `visit` with every mapping of this process, until that says true.
template <typename Visit>
void each_mapping(Visit visit) {
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> maps(std::fopen("/proc/self/maps", "re"),
                                                               std::fclose);
    if (maps == nullptr) return;
    char line[512];
    bool begins = true;  // of a line; a long one comes in pieces
    while (std::fgets(line, sizeof line, maps.get()) != nullptr) {
        const bool first = begins;
        begins = std::strchr(line, '\n') != nullptr;
        if (!first) continue;
        unsigned long begin = 0, end = 0, offset = 0, inode = 0;
        unsigned device_major = 0, device_minor = 0;
        char rights[5] = {};
        if (std::sscanf(line, "%lx-%lx %4s %lx %x:%x %lu", &begin, &end, rights, &offset, &device_major,
                        &device_minor, &inode) != 7)
            continue;
        Mapped mapped{begin, end};
        if (rights[0] == 'r' && rights[3] == 's' && inode != 0)
            mapped.place = {makedev(device_major, device_minor), inode, offset};
        if (visit(mapped)) return;
    }
}

}  // namespace

Mapped mapping_of(const void* memory) {
    const auto address = reinterpret_cast<std::uintptr_t>(memory);
    Mapped found{address, address};
    each_mapping([&](const Mapped& mapped) {
        if (address < mapped.begin || address >= mapped.end) return false;
        found = mapped;
        return true;
    });
    return found;
}

const std::byte* Views::view(const SharedPlace& place, std::size_t bytes) {
    const auto holds = [&](const SharedPlace& from, std::size_t length) {
        return from.device == place.device && from.inode == place.inode && from.offset <= place.offset &&
               place.offset - from.offset <= length && bytes <= length - (place.offset - from.offset);
    };
    for (const View& known : views_) {
        if (!holds(known.place, known.bytes)) continue;
        return known.base == nullptr ? nullptr : known.base + (place.offset - known.place.offset);
    }
    View made{place, bytes, nullptr};
    each_mapping([&](const Mapped& mapped) {
        const std::size_t length = mapped.end - mapped.begin;
        if (!mapped.place || !holds(*mapped.place, length)) return false;
        // Of no bytes: what is there stays, and the same pages are mapped once more.
        void* const again = mremap(reinterpret_cast<void*>(mapped.begin), 0, length, MREMAP_MAYMOVE);
        if (again == MAP_FAILED) return true;
        made = {*mapped.place, length, static_cast<std::byte*>(again)};
        return true;
    });
    try {
        views_.push_back(made);
    } catch (...) {
        if (made.base != nullptr) munmap(made.base, made.bytes);
        throw;
    }
    return made.base == nullptr ? nullptr : made.base + (place.offset - made.place.offset);
}

Views::~Views() {
    for (const View& view : views_)
        if (view.base != nullptr) munmap(view.base, view.bytes);
}

}  // namespace thalweg::shm
