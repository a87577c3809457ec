// The memory of hosts: copies that are under way at the same time share it. Private to the replay.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace thalweg::sim {

class Memory {
  public:
    // `rate`: bytes per second that all copies of a host together reach.
    Memory(int hosts, double rate) : rate_(rate), hosts_(static_cast<std::size_t>(hosts)) {}

    // `bytes` through the memory of `host`, at most `bound` bytes per second; `done` is called at the end.
    // Copies share by max-min fairness. O(copies under way on the host).
    void move(int host, std::uint64_t bytes, double bound, std::function<void()> done);

  private:
    struct Copy {
        double left = 0, bound = 0, rate = 0;  // bytes, and bytes per second
        std::function<void()> done;
    };

    struct Host {
        std::vector<Copy> copies;  // by bound, the lowest first
        double since = 0;          // when the copies had `left`
        std::uint64_t shares = 0;  // how often they were shared anew: older timers mean nothing
    };

    void advance(Host& host) const;
    void share(Host& host);
    void end(Host& host);

    double rate_;
    std::vector<Host> hosts_;
};

}  // namespace thalweg::sim
