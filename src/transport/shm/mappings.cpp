#include "transport/shm/mappings.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>

namespace thalweg::shm {
namespace {

// Whether a mapping called `name` in /proc is of a file that has its device and inode for itself. The kernel
// calls all memory of a device by the device's own file: page-locked buffers of a GPU's driver, of every
// process, begin at the same offset of the same inode. A System V segment has its number for an inode, which
// another one has in each IPC namespace, and a file of the same kernel-internal device may have.
bool names_one_file(std::string_view name) {
    if (name.starts_with("/dev/"))
        return name.starts_with("/dev/shm/") || name.starts_with("/dev/hugepages/") ||
               name == "/dev/zero (deleted)";  // anonymous, and shared with children
    return name.starts_with('/') && !name.starts_with("/SYSV") && !name.starts_with("/proc/") &&
           !name.starts_with("/sys/");
}

// A line of /proc/self/maps, and what it is called there.
std::optional<Mapped> read_mapping(const char* line, std::string_view& name) {
    unsigned long begin = 0, end = 0, offset = 0, inode = 0;
    unsigned device_major = 0, device_minor = 0;
    char rights[5] = {};
    int name_at = 0;
    if (std::sscanf(line, "%lx-%lx %4s %lx %x:%x %lu %n", &begin, &end, rights, &offset, &device_major,
                    &device_minor, &inode, &name_at) != 7)
        return std::nullopt;
    Mapped mapped{begin, end};
    name = line + name_at;
    if (name.ends_with('\n')) name.remove_suffix(1);
    if (rights[0] == 'r' && rights[3] == 's' && inode != 0 && names_one_file(name))
        mapped.place = {makedev(device_major, device_minor), inode, offset};
    return mapped;
}

// Calls `visit` with every mapping of this process and its name, until that says true.
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
        std::string_view name;
        const std::optional<Mapped> mapped = read_mapping(line, name);
        if (mapped && visit(*mapped, name)) return;
    }
}

// PROCMAP_QUERY of linux/fs.h, which headers before 6.11 lack.
struct ProcmapQuery {
    std::uint64_t size = sizeof(ProcmapQuery), query_flags = 0, query_addr = 0;
    std::uint64_t vma_start = 0, vma_end = 0, vma_flags = 0, vma_page_size = 0, vma_offset = 0, inode = 0;
    std::uint32_t dev_major = 0, dev_minor = 0, vma_name_size = 0, build_id_size = 0;
    std::uint64_t vma_name_addr = 0, build_id_addr = 0;
};
static_assert(sizeof(ProcmapQuery) == 104);
constexpr unsigned long procmap_query = _IOWR('f', 17, ProcmapQuery);
constexpr std::uint64_t vma_readable = 0x01, vma_shared = 0x08;

// Null: the kernel does not answer, or nothing is mapped there.
std::optional<ProcmapQuery> ask_kernel(std::uintptr_t address, bool& answers) {
    // Of this process, as long as it lives; a forked child, which would ask about its parent, uses no
    // channels.
    static const int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    ProcmapQuery query;
    query.query_addr = address;
    const bool found = maps >= 0 && ioctl(maps, procmap_query, &query) == 0;
    answers = found || (maps >= 0 && errno == ENOENT);
    return found ? std::optional(query) : std::nullopt;
}

}  // namespace

bool still_maps(const void* memory, std::size_t bytes, const SharedPlace& place, std::size_t least) {
    const auto address = reinterpret_cast<std::uintptr_t>(memory);
    bool answers = false;
    const std::optional<ProcmapQuery> found = ask_kernel(address, answers);
    if (!answers) {
        if (bytes < least) return false;
        const Mapped mapped = mapping_of(memory);
        if (!mapped.place || bytes > mapped.end - address) return false;
        SharedPlace now = *mapped.place;
        now.offset += address - mapped.begin;
        return now == place;
    }
    constexpr std::uint64_t needed = vma_readable | vma_shared;
    return found && (found->vma_flags & needed) == needed && bytes <= found->vma_end - address &&
           SharedPlace{makedev(found->dev_major, found->dev_minor), found->inode,
                       found->vma_offset + (address - found->vma_start)} == place;
}

std::optional<Mapped> read_mapping(const char* line) {
    std::string_view name;
    return read_mapping(line, name);
}

// By its folder, because the file itself may be deleted.
bool numbers_files_once(std::string_view name, std::uint64_t device) {
    // In the kernel's own file system, which no folder leads to.
    if (name.starts_with("/memfd:") || name == "/dev/zero (deleted)") return true;
    if (!name.starts_with('/')) return false;
    constexpr unsigned long tmpfs = 0x01021994, ramfs = 0x858458f6, hugetlbfs = 0x958458f6, ext = 0xef53,
                            xfs = 0x58465342;
    constexpr unsigned long known[] = {tmpfs, ramfs, hugetlbfs, ext, xfs};
    const std::string folder(name.substr(0, std::max<std::size_t>(name.rfind('/'), 1)));
    struct stat status = {};
    struct statfs system = {};
    if (stat(folder.c_str(), &status) != 0 || status.st_dev != device) return false;
    if (statfs(folder.c_str(), &system) != 0) return false;
    // Some systems say it in 32 bits, with a sign.
    const unsigned long type = static_cast<unsigned long>(system.f_type) & 0xffffffffu;
    return std::find(std::begin(known), std::end(known), type) != std::end(known);
}

Mapped mapping_of(const void* memory) {
    const auto address = reinterpret_cast<std::uintptr_t>(memory);
    Mapped found{address, address};
    each_mapping([&](const Mapped& mapped, std::string_view name) {
        if (address < mapped.begin || address >= mapped.end) return false;
        found = mapped;
        if (found.place && !numbers_files_once(name, found.place->device)) found.place.reset();
        return true;
    });
    return found;
}

namespace {

// Of memory that the program knows nothing of, and so maps nothing else over.
bool is_of(const void* memory, std::size_t bytes, const SharedPlace& place) {
    const auto address = reinterpret_cast<std::uintptr_t>(memory);
    bool same = false;
    each_mapping([&](const Mapped& mapped, std::string_view) {
        if (address < mapped.begin || address >= mapped.end) return false;
        if (mapped.place && bytes <= mapped.end - address) {
            SharedPlace found = *mapped.place;
            found.offset += address - mapped.begin;
            same = found == place;
        }
        return true;
    });
    return same;
}

}  // namespace

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
    each_mapping([&](const Mapped& mapped, std::string_view) {
        const std::size_t length = mapped.end - mapped.begin;
        if (!mapped.place || !holds(*mapped.place, length)) return false;
        // Of no bytes: what is there stays, and the same pages are mapped once more.
        void* const again = mremap(reinterpret_cast<void*>(mapped.begin), 0, length, MREMAP_MAYMOVE);
        if (again == MAP_FAILED) return true;
        // Another thread may have mapped something else there since that was read.
        if (is_of(again, length, *mapped.place))
            made = {*mapped.place, length, static_cast<std::byte*>(again)};
        else
            munmap(again, length);
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
