#include "transport/composite/wire_meter.h"

#include <algorithm>

#include "base/float_modes.h"

namespace thalweg {
namespace {

// Busy times with less say nothing about a rate: they are all latency.
constexpr std::uint64_t least_bytes = 64 * 1024;
// A busy time in which peers were late is slower than the wire: what was fastest is believed longest.
constexpr double towards_faster = 0.5, towards_slower = 0.05;

}  // namespace

void WireMeter::posted(Direction direction, std::size_t bytes, std::uint64_t time_ns) {
    const std::lock_guard lock(mutex_);
    if (messages_++ == 0) {
        begun_ns_ = time_ns;
        moved_[out] = moved_[in] = 0;
        spoilt_ = false;
    }
    pending_[direction] += bytes;
}

void WireMeter::completed(Direction direction, std::size_t bytes, std::uint64_t time_ns) {
    const std::lock_guard lock(mutex_);
    pending_[direction] -= std::min<std::uint64_t>(bytes, pending_[direction]);
    moved_[direction] += bytes;
    if (messages_ == 0 || --messages_ != 0) return;
    const std::uint64_t lasted_ns = time_ns - begun_ns_;
    busy_ns_ += lasted_ns;
    const std::uint64_t moved = std::max(moved_[out], moved_[in]);
    if (moved < least_bytes || lasted_ns == 0 || spoilt_) return;
    in_standard_modes([&] {
        const double seen = 1e9 * static_cast<double>(moved) / static_cast<double>(lasted_ns);
        if (rate_ == 0)
            rate_ = seen;
        else
            rate_ += (seen > rate_ ? towards_faster : towards_slower) * (seen - rate_);
    });
}

void WireMeter::dropped(Direction direction, std::size_t bytes, std::uint64_t time_ns) {
    const std::lock_guard lock(mutex_);
    pending_[direction] -= std::min<std::uint64_t>(bytes, pending_[direction]);
    spoilt_ = true;
    if (messages_ != 0 && --messages_ == 0) busy_ns_ += time_ns - std::min(time_ns, begun_ns_);
}

std::uint64_t WireMeter::left_ns() const {
    const std::lock_guard lock(mutex_);
    const std::uint64_t pending = std::max(pending_[out], pending_[in]);
    if (rate_ == 0 || pending == 0) return 0;
    return in_standard_modes(
        [&] { return static_cast<std::uint64_t>(1e9 * static_cast<double>(pending) / rate_); });
}

std::uint64_t WireMeter::busy_ns(std::uint64_t time_ns) const {
    const std::lock_guard lock(mutex_);
    return busy_ns_ + (messages_ == 0 ? 0 : time_ns - std::min(time_ns, begun_ns_));
}

double WireMeter::bytes_per_s() const {
    const std::lock_guard lock(mutex_);
    return rate_;
}

}  // namespace thalweg
