// How long the network will still need for what it was given: bytes on their way in either direction, over
// the rate at which such bytes moved lately. One per process, shared by its channels; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>

namespace thalweg {

class WireMeter {
  public:
    enum Direction : std::uint8_t { out, in };

    void posted(Direction direction, std::size_t bytes, std::uint64_t time_ns);
    void completed(Direction direction, std::size_t bytes, std::uint64_t time_ns);
    // Posted, and given up: of a channel that failed. Says nothing about the rate.
    void dropped(Direction direction, std::size_t bytes, std::uint64_t time_ns);

    // 0 while nothing is on its way, or nothing has been measured.
    std::uint64_t left_ns() const;
    // Time during which something was on its way, until now.
    std::uint64_t busy_ns(std::uint64_t time_ns) const;
    double bytes_per_s() const;

  private:
    mutable std::mutex mutex_;
    std::uint64_t pending_[2] = {0, 0};  // bytes, by direction
    std::uint32_t messages_ = 0;         // on their way
    std::uint64_t begun_ns_ = 0;         // since when something has been on its way
    std::uint64_t moved_[2] = {0, 0};    // since then
    std::uint64_t busy_ns_ = 0;          // before
    bool spoilt_ = false;                // something was dropped since begun_ns_
    double rate_ = 0;                    // bytes per second; 0: not known
};

}  // namespace thalweg
