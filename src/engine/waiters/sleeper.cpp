#include "engine/waiters/sleeper.h"

#include <cstdio>

#include "engine/waiters/sleepers.h"

namespace thalweg {

const char* name_of(SleeperKind kind) {
    constexpr std::array<const char*, sleeper_kinds> names{"pause",  "tpause", "umwait",
                                                           "mwaitx", "futex",  "epoll"};
    return names[static_cast<std::size_t>(kind)];
}

bool has_sleeper(SleeperKind kind, const Cpu& cpu, std::string& why) {
    switch (kind) {
        case SleeperKind::umwait:
        case SleeperKind::tpause:
            if (!cpu.waitpkg) why = cpu.no_waitpkg;
            return cpu.waitpkg;
        case SleeperKind::mwaitx:
            if (!cpu.mwaitx) why = cpu.no_mwaitx;
            return cpu.mwaitx;
        default:
            return true;
    }
}

std::unique_ptr<Sleeper> make_sleeper(SleeperKind kind, const Cpu& cpu, bool light) {
    switch (kind) {
        case SleeperKind::pause:
            return make_pause_sleeper();
        case SleeperKind::futex:
            return make_futex_sleeper();
        case SleeperKind::epoll:
            return make_epoll_sleeper();
        default:
            return make_monitor_sleeper(kind, cpu, light);
    }
}

std::string describe(SleeperKind kind, const Cpu& cpu, const SleeperUse& use) {
    const std::string name = name_of(kind);
    std::string why;
    if (!has_sleeper(kind, cpu, why)) return name + ": not exercised, " + why;
    if (use.sleeps == 0) return name + ": not exercised, never chosen";
    char text[96];
    std::snprintf(text, sizeof text, ": %llu sleeps, %.6f s", static_cast<unsigned long long>(use.sleeps),
                  use.seconds);
    return name + text;
}

}  // namespace thalweg
