// Which mappings of a process others may have too, and as what they are known.
#include <gtest/gtest.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <optional>
#include <thread>

#include "transport/shm/mappings.h"

namespace thalweg::shm {
namespace {

const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));

TEST(Mappings, OnlyAFileOfItsOwnIsAPlaceThatTwoProcessesShare) {
    const auto place_in = [](const char* line) {
        const std::optional<Mapped> mapped = read_mapping(line);
        EXPECT_TRUE(mapped) << line;
        return mapped ? mapped->place : std::nullopt;
    };
    const char* const shared[] = {
        "7f3a00000000-7f3a00400000 rw-s 00001000 00:19 4711   /dev/shm/mpich_shar_tmpAbCdEf (deleted)\n",
        "7f3a00000000-7f3a00400000 rw-s 00001000 00:01 4711                 /memfd:window (deleted)\n",
        "7f3a00000000-7f3a00400000 rw-s 00001000 00:01 4711                 /dev/zero (deleted)\n",
        "7f3a00000000-7f3a00400000 r--s 00001000 fe:00 4711                 "
        "/tmp/session/shared_window_4.host\n",
    };
    for (const char* const line : shared) {
        const std::optional<SharedPlace> place = place_in(line);
        ASSERT_TRUE(place) << line;
        EXPECT_EQ(place->inode, 4711u) << line;
        EXPECT_EQ(place->offset, 0x1000u) << line;
    }
    const char* const own[] = {
        "7f3a00000000-7f3a00400000 rw-s 00000000 00:06 463                  /dev/nvidiactl\n",
        "7f3a00000000-7f3a00400000 rw-s 00000000 00:06 470                  /dev/dri/renderD128\n",
        "7f3a00000000-7f3a00400000 rw-s 00000000 00:01 1                    /SYSV00000000 (deleted)\n",
        "7f3a00000000-7f3a00400000 rw-s 00000000 00:0e 1057                 anon_inode:[io_uring]\n",
        "7f3a00000000-7f3a00400000 rw-p 00001000 00:19 4711                 /dev/shm/private\n",
        "7f3a00000000-7f3a00400000 -w-s 00001000 00:19 4711                 /dev/shm/unreadable\n",
        "7f3a00000000-7f3a00400000 rw-p 00000000 00:00 0 \n",
        "7f3a00000000-7f3a00400000 rw-p 00000000 00:00 0                    [heap]\n",
    };
    for (const char* const line : own) EXPECT_FALSE(place_in(line)) << line;
    EXPECT_FALSE(read_mapping("not a mapping\n"));
}

// Of the kernel's own files, and of file systems that are known; where another one is mounted there, the
// device is not its.
TEST(Mappings, FilesAreToldApartWhereTheirFileSystemNumbersThemOnce) {
    EXPECT_TRUE(numbers_files_once("/memfd:window (deleted)", 1));
    EXPECT_TRUE(numbers_files_once("/dev/zero (deleted)", 1));
    EXPECT_FALSE(numbers_files_once("window", 1));
    struct stat status = {};
    struct statfs system = {};
    ASSERT_EQ(stat("/proc/self", &status), 0);
    EXPECT_FALSE(numbers_files_once("/proc/self/window", status.st_dev)) << "nobody knows how it counts";
    EXPECT_FALSE(numbers_files_once("/there is no such folder/window", status.st_dev));
    if (stat("/dev/shm", &status) != 0 || statfs("/dev/shm", &system) != 0 || system.f_type != 0x01021994)
        GTEST_SKIP() << "no file system in memory at /dev/shm";
    EXPECT_TRUE(numbers_files_once("/dev/shm/window", status.st_dev));
    EXPECT_TRUE(numbers_files_once("/dev/shm/window (deleted)", status.st_dev));
    EXPECT_FALSE(numbers_files_once("/dev/shm/window", status.st_dev + 1)) << "as subvolumes do";
    char name[] = "/dev/shm/thalweg-test-XXXXXX";
    const int file = mkstemp(name);
    if (file < 0) GTEST_SKIP() << "no file can be made at /dev/shm";
    ASSERT_EQ(ftruncate(file, 8192), 0);
    void* const memory = mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    ASSERT_NE(memory, MAP_FAILED);
    EXPECT_TRUE(mapping_of(memory).place);
    unlink(name);
    EXPECT_TRUE(mapping_of(memory).place) << "its name is gone";
    munmap(memory, 8192);
    close(file);
}

// Two containers number their segments alike.
TEST(Mappings, SystemVSegmentsAreNotPlaces) {
    const int segment = shmget(IPC_PRIVATE, 8192, IPC_CREAT | 0600);
    if (segment < 0) GTEST_SKIP() << "no System V memory here";
    void* const memory = shmat(segment, nullptr, 0);
    shmctl(segment, IPC_RMID, nullptr);
    ASSERT_NE(memory, reinterpret_cast<void*>(-1));
    const Mapped found = mapping_of(memory);
    EXPECT_EQ(found.begin, reinterpret_cast<std::uintptr_t>(memory));
    EXPECT_FALSE(found.place);
    shmdt(memory);
    void* const shared = mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(shared, MAP_FAILED);
    EXPECT_TRUE(mapping_of(shared).place);
    munmap(shared, 8192);
}

TEST(Mappings, WhatIsMappedInTheSamePlaceIsSeen) {
    const std::size_t bytes = 8 * page;
    const auto map = [bytes](void* at, int flags) {
        return static_cast<std::byte*>(mmap(at, bytes, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0));
    };
    std::byte* const memory = map(nullptr, MAP_SHARED);
    ASSERT_NE(memory, MAP_FAILED);
    SharedPlace place = mapping_of(memory).place.value();
    // However the kernel is asked; a few bytes are not worth a look at all mappings.
    EXPECT_TRUE(still_maps(memory, bytes, place, 0));
    place.offset += page;
    EXPECT_TRUE(still_maps(memory + page, bytes - page, place, 0));
    EXPECT_FALSE(still_maps(memory + page, bytes, place, 0)) << "beyond its end";
    EXPECT_FALSE(still_maps(memory, page, place, 0)) << "another part of the same file";
    place.offset -= page;
    for (const int flags : {MAP_SHARED, MAP_PRIVATE}) {
        ASSERT_EQ(map(memory, flags | MAP_FIXED), memory);
        EXPECT_FALSE(still_maps(memory, bytes, place, 0)) << flags;
    }
    munmap(memory, bytes);
    EXPECT_FALSE(still_maps(memory, bytes, place, 0)) << "nothing is mapped there";
}

// A thread of the program takes a window away and maps another one in its place, again and again.
TEST(Mappings, AViewIsOfItsPlaceWhateverAnotherThreadMaps) {
    constexpr std::size_t bytes = 8 * 4096;
    int files[2];
    for (int i = 0; i < 2; ++i) {
        files[i] = memfd_create("window", MFD_CLOEXEC);
        ASSERT_GE(files[i], 0);
        ASSERT_EQ(ftruncate(files[i], bytes), 0);
        const char content = i == 0 ? 'a' : 'b';
        ASSERT_EQ(pwrite(files[i], &content, 1, 0), 1);
    }
    void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, files[0], 0);
    ASSERT_NE(memory, MAP_FAILED);
    const SharedPlace place = mapping_of(memory).place.value();
    const auto first_byte = [&] {
        Views views;
        const std::byte* const view = views.view(place, bytes);
        return view == nullptr ? '\0' : static_cast<char>(*view);
    };
    ASSERT_EQ(first_byte(), 'a');
    std::atomic<bool> over{false};
    std::thread program([&] {
        for (int i = 1; !over; i = 1 - i)
            if (mmap(memory, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, files[i], 0) != memory)
                return;
    });
    int others = 0;
    for (int i = 0; i < 500; ++i) others += first_byte() == 'b';
    over = true;
    program.join();
    EXPECT_EQ(others, 0) << "of 500 views are of the other file";
    munmap(memory, bytes);
    for (const int file : files) close(file);
}

}  // namespace
}  // namespace thalweg::shm
