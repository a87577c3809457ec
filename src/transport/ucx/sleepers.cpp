// Who sleeps on the port's descriptor, and how they are woken.
#include <pthread.h>
#include <unistd.h>

#include "base/clock.h"
#include "transport/ucx/channel.h"

namespace thalweg {

using ucx::Channel;
using ucx::Rail;

namespace {

// Twice the longest that a thread sleeps on a descriptor (agent_loop.cpp).
constexpr std::uint64_t longest_sleep_ns = 200'000'000;
// How often libucp is asked once more whether one may sleep on its descriptor.
constexpr int most_tries = 4;

}  // namespace

Status UcxPort::Impl::arm_rails() {
    // libucp takes a signal back before it says that it is busy; so whatever comes of it, the next post
    // signals.
    signalled_ = false;
    for (const Rail& rail : rails_) {
        const ucs_status_t status = ucp_.worker_arm(rail.worker);
        if (status == UCS_ERR_BUSY) return Status::in_progress;
        if (status != UCS_OK) return Status::transport_failed;
    }
    return Status::ok;
}

Status UcxPort::Impl::arm(Channel& channel) {
    if (rung_ != 0) silence_failed();
    // While another channel's bell rings the descriptor is readable and nobody can sleep on it.
    if (channel.has_news() || rung_ != 0 || first_deferred_ != nullptr || dying_ != nullptr || is_greeted())
        return Status::in_progress;
    const Status armed = arm_rails();
    // The descriptor tells of nothing new any more where libucp was busy, and whoever asked may be done with
    // its next poll: those who sleep on it already go on hearing. What is polled for here whoever asked has
    // still to ask its channels for, so it does not sleep now.
    Status others = armed;
    for (int tries = 0; others == Status::in_progress && sleepers_ > channel.asleep && tries < most_tries;
         ++tries) {
        poll();
        others = arm_rails();
    }
    if (armed != Status::ok) return armed;
    if (!channel.asleep) ++sleepers_;
    channel.asleep = true;
    channel.sleeper = pthread_self();
    return Status::ok;
}

void UcxPort::Impl::posted(std::size_t rail) {
    if (sleepers_ == 0 || signalled_) return;
    signalled_ = true;
    ucp_.worker_signal(rails_[rail].worker);
}

void UcxPort::Impl::tell(Channel& channel) {
    // The thread that polls now will ask for this channel's news before it sleeps again.
    if (!channel.asleep || channel.rung || pthread_equal(channel.sleeper, pthread_self())) return;
    channel.rung = true;
    channel.rung_ns = now_ns();
    if (rung_++ != 0) return;
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(bell_, &one, sizeof one);
}

// One that has failed is never polled again, so nobody would answer its bell. Who slept for it has woken by
// then: no sleep is longer.
void UcxPort::Impl::silence_failed() {
    const std::uint64_t time_ns = now_ns();
    for (const auto& [name, channel] : channels_)
        if (channel && channel->rung && channel->has_failed() &&
            time_ns - channel->rung_ns > longest_sleep_ns)
            awake(*channel);
}

void UcxPort::Impl::awake(Channel& channel) {
    if (!channel.asleep) return;
    channel.asleep = false;
    --sleepers_;
    if (!channel.rung) return;
    channel.rung = false;
    if (--rung_ != 0) return;
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t got = read(bell_, &count, sizeof count);
}

}  // namespace thalweg
