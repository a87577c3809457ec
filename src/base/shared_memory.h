// Memory that the processes of a host share without a name that could be left behind: one of them has an
// anonymous file (memfd), which the others open through /proc/PID/fd as long as it lives. Whatever ends a
// process, nothing stays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/status.h"

namespace thalweg {

// Where a process number means the same process: this boot of this kernel, this PID namespace. 0: unknown.
std::uint64_t machine_key();

// Whether files may become so long here. Beyond that limit a call would not only fail but end the process by
// a signal.
bool files_may_have(std::size_t bytes);

// Whether this system gives out no more memory than it has (vm.overcommit_memory is 2). Memory of a file that
// was not given yet it may then refuse to whoever touches it, and ends that process by a signal.
bool memory_is_counted();
// Addresses that this process may still map (RLIMIT_AS), in bytes; UINT64_MAX where nobody tells.
std::uint64_t address_space_left();
// Gives a file memory for `bytes` bytes from `begin` on; one that ends before grows. False: there is none, or
// the system refuses; `errno` says why.
bool give_memory(int file, std::size_t begin, std::size_t bytes);

class Descriptor;

// An anonymous file (memfd) that may be sealed and never executed. None: the system refuses, `errno` says
// why.
Descriptor anonymous_file();
// Of such a file: nobody can change its length from now on, which would end everyone who has it mapped.
// False: the system refuses, `errno` says why.
bool seal_length(int file);
bool has_sealed_length(int file);

// A descriptor that closes itself.
class Descriptor {
  public:
    Descriptor() = default;
    explicit Descriptor(int number) : number_(number) {}
    Descriptor(Descriptor&& other) noexcept : number_(other.release()) {}
    Descriptor& operator=(Descriptor&& other) noexcept;
    ~Descriptor();
    int get() const { return number_; }
    explicit operator bool() const { return number_ >= 0; }
    int release();

  private:
    int number_ = -1;
};

// A mapping that unmaps itself.
class Mapping {
  public:
    Mapping() = default;
    Mapping(void* base, std::size_t bytes) : base_(static_cast<std::byte*>(base)), bytes_(bytes) {}
    Mapping(Mapping&& other) noexcept;
    Mapping& operator=(Mapping&& other) noexcept;
    ~Mapping();
    std::byte* base() const { return base_; }
    std::size_t bytes() const { return bytes_; }

  private:
    std::byte* base_ = nullptr;
    std::size_t bytes_ = 0;
};

// Memory of this process alone, zero, straight from the system; no bytes: it has none.
Mapping anonymous_memory(std::size_t bytes);

// Bytes that one process writes and others of its host read. When they may, the processes agree by other
// means.
class HostPage {
  public:
    // Where others find it; no descriptor: nowhere.
    struct Location {
        std::uint64_t machine = 0, nonce = 0;
        std::int32_t pid = 0, descriptor = -1;
    };

    // The writer's side. create(): a page of no bytes yet, so that others can be told of it; resize(), once:
    // it has so many, all zero. Errors of both, with a sentence in `why`: unsupported (the system refuses),
    // out_of_memory.
    Status create(std::string& why);
    Status resize(std::size_t bytes, std::string& why);
    Location location() const { return location_; }

    // A reader's: of a page that has `bytes` bytes. Errors: unsupported (out of reach: another host,
    // namespace or user, or its writer has ended), mismatch (it is another page), out_of_memory.
    Status open(const Location& location, std::size_t bytes, std::string& why);

    // The writer's: nobody else may come, and it only reads from now on.
    void end_writing();

    // Writable for the writer only, until end_writing(). Empty before resize() and open().
    std::span<std::byte> bytes() const;

  private:
    Location location_;
    Descriptor file_;  // the writer's, as long as others may come
    Mapping mapping_;
};

}  // namespace thalweg
