// Whose memory the port holds, and how it lets go of it.
#include <unistd.h>

#include <algorithm>

#include "base/clock.h"
#include "transport/ucx/channel.h"

namespace thalweg {
namespace ucx {

bool Storage::holds(std::uintptr_t begin, std::uintptr_t end) const {
    return std::any_of(parts.begin(), parts.end(), [&](const Part& part) {
        const auto first = reinterpret_cast<std::uintptr_t>(part.memory);
        return (part.request != nullptr || part.registered != nullptr) && first < end &&
               begin < first + part.memory_bytes;
    });
}

bool Channel::holds(std::uintptr_t begin, std::uintptr_t end) const {
    return storage_->holds(begin, end) ||
           std::any_of(exposed_.begin(), exposed_.end(), [&](const Exposed& exposed) {
               return !exposed.handles.empty() && exposed.begin < end && begin < exposed.end;
           });
}

// Sends and puts libucp does not give back, nor what it has begun to receive: until they are over their
// memory is read and written, which is the program's again when its call returns. A peer that has gone ends
// them at once; one that does not poll may keep them for ever.
void Channel::await_requests() {
    constexpr std::uint64_t longest_wait_ns = 1'000'000'000, spin_ns = 1'000'000;
    const std::uint64_t begin_ns = now_ns();
    for (std::uint64_t waited_ns = 0; waited_ns < longest_wait_ns; waited_ns = now_ns() - begin_ns) {
        {
            const UcxPort::Impl::Driver lock(port_);
            if (storage_->in_flight != 0) port_.poll();
            if (storage_->in_flight == 0) return;
        }
        if (waited_ns > spin_ns) usleep(100);
    }
}

}  // namespace ucx

bool UcxPort::Impl::holds(const void* memory, std::size_t bytes) {
    const auto begin = reinterpret_cast<std::uintptr_t>(memory), end = begin + bytes;
    const Poster lock(*this);
    return std::any_of(channels_.begin(), channels_.end(),
                       [&](const auto& known) {
                           return known.second != nullptr && known.second->holds(begin, end);
                       }) ||
           std::any_of(orphans_.begin(), orphans_.end(),
                       [&](const auto& orphan) { return orphan->holds(begin, end); }) ||
           std::any_of(peers_.begin(), peers_.end(), [&](const auto& known) {
               const auto& held = known.second->held;
               return std::any_of(held.begin(), held.end(), [&](const ucx::Held& post) {
                   const auto first = reinterpret_cast<std::uintptr_t>(post.data);
                   return first < end && begin < first + post.bytes;
               });
           });
}

bool UcxPort::holds(const void* memory, std::size_t bytes) { return impl_->holds(memory, bytes); }

}  // namespace thalweg
