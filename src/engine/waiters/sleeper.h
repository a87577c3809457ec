// The ways in which the agent's thread passes time between two looks at its work. One interface; each way
// says what it needs of the CPU or the system, and a table says which ways this process has and what they
// did.
//
//   pause    spins on the bell's word                                         every CPU
//   tpause   the core idles lightly until a time; looks at the bell when it wakes   Intel, WAITPKG
//   umwait   the core idles until the bell's line is written or a time has come     Intel, WAITPKG
//   mwaitx   the same                                                         AMD, MONITORX
//   futex    the kernel lets the thread sleep until a ring or a time          Linux
//   epoll    the same, and until a descriptor of a transport is ready         Linux
//
// umwait and mwaitx watch one line of memory that we own; no network writes to it, so a thread that waits for
// a network too must return often to look.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "engine/waiters/cpu.h"
#include "engine/waiters/doorbell.h"

namespace thalweg {

enum class SleeperKind : std::uint8_t { pause, tpause, umwait, mwaitx, futex, epoll };
inline constexpr std::size_t sleeper_kinds = 6;
const char* name_of(SleeperKind kind);

class Sleeper {
  public:
    virtual ~Sleeper() = default;
    // Returns when the bell has rung since `seen` was read from it, or until_ns (CLOCK_MONOTONIC) has come,
    // or a watched descriptor is ready; may return early. True: because of a descriptor. By one thread.
    virtual bool sleep(Doorbell& bell, std::uint32_t seen, std::uint64_t until_ns) = 0;

    // Descriptors that end a sleep while they are readable; several may watch() the same one, and it counts
    // until each has let go(). Errors: unsupported (this way has no descriptors), io_failed.
    virtual Status watch(int) { return Status::unsupported; }
    virtual void let_go(int) {}
};

// Whether this CPU and system have a way to sleep; where not, one clause in `why`.
bool has_sleeper(SleeperKind kind, const Cpu& cpu, std::string& why);

// Pre: has_sleeper. `light`: umwait and tpause wake faster (C0.1) and leave less to the core's other thread.
// Null where the system refuses a descriptor.
std::unique_ptr<Sleeper> make_sleeper(SleeperKind kind, const Cpu& cpu, bool light);

// How often and how long a way was used.
struct SleeperUse {
    std::uint64_t sleeps = 0;
    double seconds = 0;
};
using SleeperUses = std::array<SleeperUse, sleeper_kinds>;

// One sentence a way: "umwait: not exercised, this CPU has no WAITPKG". For reports.
std::string describe(SleeperKind kind, const Cpu& cpu, const SleeperUse& use);

}  // namespace thalweg
