#include <poll.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "engine/waiters/sleepers.h"

namespace thalweg {
namespace {

constexpr std::uint64_t ns_per_second = 1'000'000'000;
constexpr std::uint64_t ns_per_ms = 1'000'000;
#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441
#endif

class EpollSleeper final : public Sleeper {
  public:
    explicit EpollSleeper(int epoll) : epoll_(epoll) { watched_.reserve(usual_descriptors); }
    ~EpollSleeper() override { close(epoll_); }

    bool sleep(Doorbell& bell, std::uint32_t seen, std::uint64_t until_ns) override {
        if (bell_ < 0 && !add_bell(bell)) {
            // No descriptor for the bell: hear the bell, and look at the others when the time has come.
            bell.sleep_on_word(seen, std::min(until_ns, now_ns() + deaf_ns));
            return false;
        }
        if (!bell.announce(seen)) return false;
        const std::uint64_t time_ns = now_ns();
        const int ready = wait(until_ns == never_ns ? never_ns : until_ns - std::min(until_ns, time_ns));
        bell.answered();
        for (int i = 0; i < ready; ++i) {
            if (events_[i].data.fd != bell_) return true;
        }
        return false;
    }

    Status watch(int descriptor) override {
        if (const auto known = find(descriptor); known != watched_.end()) {
            ++known->users;
            return Status::ok;
        }
        epoll_event event{};
        event.events = EPOLLIN;
        event.data.fd = descriptor;
        if (epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor, &event) != 0) return Status::io_failed;
        watched_.push_back({descriptor, 1});
        return Status::ok;
    }

    void let_go(int descriptor) override {
        const auto known = find(descriptor);
        if (known == watched_.end() || --known->users != 0) return;
        *known = watched_.back();
        watched_.pop_back();
        epoll_ctl(epoll_, EPOLL_CTL_DEL, descriptor, nullptr);
    }

  private:
    static constexpr std::uint64_t deaf_ns = ns_per_ms;
    static constexpr std::size_t usual_descriptors = 16;

    // Few, and watched again and again while operations come and go: no memory is taken for that.
    struct Watched {
        int descriptor, users;
    };
    std::vector<Watched>::iterator find(int descriptor) {
        return std::find_if(watched_.begin(), watched_.end(),
                            [descriptor](const Watched& each) { return each.descriptor == descriptor; });
    }

    bool add_bell(Doorbell& bell) {
        const int descriptor = bell.descriptor();
        if (descriptor < 0 || watch(descriptor) != Status::ok) return false;
        bell_ = descriptor;
        return true;
    }

    int wait(std::uint64_t span_ns) {
        const int room = static_cast<int>(events_.size());
        if (span_ns == never_ns) return epoll_wait(epoll_, events_.data(), room, -1);
        timespec span{static_cast<time_t>(span_ns / ns_per_second),
                      static_cast<long>(span_ns % ns_per_second)};
        if (fine_) {
            const long ready = syscall(SYS_epoll_pwait2, epoll_, events_.data(), room, &span, nullptr, 0);
            if (ready >= 0 || errno == EINTR) return static_cast<int>(ready);
            // A kernel before 5.11, or a filter of system calls that does not know it and says EPERM, as
            // older containers have. In whole milliseconds, as epoll_wait has them, the shortest sleep
            // between predictions (arrivals.h) took twenty times as long.
            fine_ = false;
        }
        pollfd any{epoll_, POLLIN, 0};  // readable while one of them is
        const int ready = ppoll(&any, 1, &span, nullptr);
        return ready > 0 ? epoll_wait(epoll_, events_.data(), room, 0) : ready;
    }

    int epoll_;
    int bell_ = -1;
    bool fine_ = true;
    std::array<epoll_event, 16> events_{};
    std::vector<Watched> watched_;
};

}  // namespace

std::unique_ptr<Sleeper> make_epoll_sleeper() {
    const int epoll = epoll_create1(EPOLL_CLOEXEC);
    if (epoll < 0) return nullptr;
    return std::make_unique<EpollSleeper>(epoll);
}

}  // namespace thalweg
