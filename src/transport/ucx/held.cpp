// Whose memory the port holds.
#include <algorithm>

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

}  // namespace ucx

bool UcxPort::Impl::holds(const void* memory, std::size_t bytes) {
    const auto begin = reinterpret_cast<std::uintptr_t>(memory), end = begin + bytes;
    const Poster lock(*this);
    return std::any_of(channels_.begin(), channels_.end(),
                       [&](const auto& known) {
                           return known.second != nullptr && known.second->holds(begin, end);
                       }) ||
           std::any_of(orphans_.begin(), orphans_.end(),
                       [&](const auto& orphan) { return orphan->holds(begin, end); });
}

bool UcxPort::holds(const void* memory, std::size_t bytes) { return impl_->holds(memory, bytes); }

}  // namespace thalweg
