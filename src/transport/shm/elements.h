// Elements of a peer's that are no single run of memory: how they are described in a frame, and the stretches
// of memory that the system copies from and to.
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <optional>
#include <span>

#include "base/status.h"
#include "transport/shm/mappings.h"
#include "transport/shm/wire.h"
#include "transport/stand_in.h"

namespace thalweg::shm {

// A message's bytes in one process's memory: those of the packed form from `begin` on, of elements at
// `address`.
struct Elements {
    Layout layout;
    std::uint64_t address = 0, begin = 0;
};

// What the payload of a frame says of them.
struct WrittenElements {
    std::uint64_t runs = 0, run_bytes = 0, address = 0, begin = 0;
    std::int64_t first = 0, stride = 0, extent = 0;
};

// Whether another process had better copy from or to these elements directly: their runs are long enough to
// be worth what the system takes for each, and can be described so that read_elements() takes it (the extent
// of a type may be any number).
bool reachable(const StandInPart& part);
WrittenElements written(const StandInPart& part);
// Of a peer's frame, for a message of `bytes` bytes. Nothing where it makes no sense.
std::optional<Elements> read_elements(const WrittenElements& written, std::uint64_t bytes);

// What a frame of a peer's says of where a message of `bytes` bytes lies there. False: nonsense.
struct RemotePlace {
    std::optional<Elements> elements;   // nothing: one run of memory
    std::optional<SharedPlace> shared;  // which others may have mapped too
};
bool read_place(const Frame& frame, const std::byte* payload, std::uint64_t bytes, RemotePlace& place);

// The stretches of memory that hold bytes [offset, offset + bytes) of a message, as many as fit; `bytes`
// becomes what they hold.
std::size_t stretches(const Layout& layout, std::uint64_t address, std::uint64_t begin, std::uint64_t& bytes,
                      std::span<iovec> into);

struct Transfer;
// As Protocol::pull and push, by one of the two system calls. unsupported: it does not get at the other
// side's memory, such as a device's or a secret one, or is refused altogether by now, or the process goes on
// without its first thread; nothing was copied.
Status cma_copy(ssize_t (*call)(pid_t, const iovec*, unsigned long, const iovec*, unsigned long,
                                unsigned long),
                const Transfer& transfer, std::uint64_t offset, std::size_t bytes, std::size_t& done);

}  // namespace thalweg::shm
