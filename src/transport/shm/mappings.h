// Memory that two processes map from the same file (MPI_Win_allocate_shared, MPI_Alloc_mem of some
// libraries): the receiver of a message copies it out of its own mapping, without the system.
//
// A program may take its mapping away while the sender still has the other one. So the receiver copies from a
// mapping that it makes itself, of the same pages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace thalweg::shm {

// A place in a file, known by what the kernel calls it.
struct SharedPlace {
    std::uint64_t device = 0, inode = 0, offset = 0;
    bool operator==(const SharedPlace&) const = default;
};

// A stretch of this process's memory: addresses [begin, end), and where its first byte comes from, if others
// can map that too.
struct Mapped {
    std::uintptr_t begin = 0, end = 0;
    std::optional<SharedPlace> place = {};
};
// What a line of /proc/self/maps says. A place only where device and inode are those of one file: not of
// devices, nor of System V segments. Null: no such line.
std::optional<Mapped> read_mapping(const char* line);
// Whether device and inode, as the kernel says them of a mapping, are one file's where the file called `name`
// lies. Its device is the whole file system's: subvolumes and snapshots of btrfs or bcachefs number their
// files each for themselves, and a copy of a file there has the number of its original. So only of file
// systems that are known to do otherwise. Throws std::bad_alloc.
bool numbers_files_once(std::string_view name, std::uint64_t device);
// The one that `memory` lies in; with a place only where that tells its file from all others. Reads /proc:
// some hundred microseconds. Throws std::bad_alloc.
Mapped mapping_of(const void* memory);
// Whether `bytes` bytes at `memory` still are those at `place`: a program may have mapped something else
// there since. About a microsecond where the kernel is asked about one mapping (Linux 6.11). Elsewhere as
// mapping_of(), and for fewer than `least` bytes, which are copied sooner than that, no.
bool still_maps(const void* memory, std::size_t bytes, const SharedPlace& place,
                std::size_t least = 1u << 20);

// Mappings of this process's own, of places that it has mapped already. What it looked for in vain it does
// not look for again.
class Views {
  public:
    Views() = default;
    ~Views();
    Views(const Views&) = delete;
    Views& operator=(const Views&) = delete;

    // Null: this process has it not mapped. Throws std::bad_alloc.
    const std::byte* view(const SharedPlace& place, std::size_t bytes);

  private:
    struct View {
        SharedPlace place;
        std::size_t bytes = 0;
        std::byte* base = nullptr;  // null: there was none
    };
    std::vector<View> views_;
};

}  // namespace thalweg::shm
