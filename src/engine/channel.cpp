#include "engine/channel.h"

#include <algorithm>
#include <new>

#include "engine/execution.h"
#include "schedule/receipts.h"

namespace thalweg {
namespace {

constexpr Slot completions_per_poll = 64;

}  // namespace

std::shared_ptr<Channel> make_channel(Transport& transport, const Limits& limits) {
    return std::make_shared<Channel>(transport, limits);
}

std::shared_ptr<const Schedule> suited_to(const Channel& channel, std::shared_ptr<const Schedule> schedule) {
    if (!channel.transport().capabilities().overtakes) return schedule;
    return std::make_shared<const Schedule>(with_receipts(*schedule));
}

Channel::Channel(Transport& transport, const Limits& limits)
    : transport_(transport),
      limits_(limits),
      credits_(limits.credit_bytes),
      unreserved_(transport.slots()),
      owners_(transport.slots()),
      done_(std::min(transport.slots(), completions_per_poll)),
      spin_(make_spin_waiter()),
      timed_(make_timed_waiter()) {
    limits_.in_flight = std::max(limits_.in_flight, smallest_window);
    free_.reserve(transport.slots());
    for (Slot slot = transport.slots(); slot-- > 0;) free_.push_back(slot);
}

void Channel::provide(std::uint32_t messages) {
    const auto had = static_cast<Slot>(owners_.size());
    if (messages <= had) return;
    if (const Status status = transport_.grow(messages); status != Status::ok) {
        if (status == Status::out_of_memory) throw std::bad_alloc();
        grows_ = false;
        return;
    }
    // The last that may lack memory is what tells that they are there: else nobody would ever have them.
    free_.reserve(transport_.slots());
    owners_.resize(transport_.slots());
    for (Slot slot = had; slot < transport_.slots(); ++slot) free_.push_back(slot);
    unreserved_ += transport_.slots() - had;
}

Status Channel::enter(Execution::Impl& execution, std::uint32_t operation) {
    if (!admits(operation)) return Status::unsupported;
    Execution::Impl** link = &alive_;
    while (*link) link = &(*link)->next_alive;
    *link = &execution;
    execution.next_alive = nullptr;
    return Status::ok;
}

bool Channel::admits(std::uint32_t operation) const {
    return !alive_ || operation - alive_->operation < transport_.capabilities().live_operations;
}

void Channel::leave(Execution::Impl& execution) {
    Execution::Impl** link = &alive_;
    while (*link && *link != &execution) link = &(*link)->next_alive;
    if (*link) *link = execution.next_alive;
}

std::uint32_t Channel::reserve(const Execution::Impl& execution, std::uint32_t wanted) {
    std::uint32_t kept = 0;
    for (const Execution::Impl* other = alive_; other != &execution; other = other->next_alive) {
        if (other->wants_slots()) return 0;
        kept = std::max(kept, other->may_widen_by());
    }
    const std::uint32_t least = std::min(wanted, smallest_window);
    const std::uint32_t spare = unreserved_ - (grows_ ? std::min(kept, unreserved_) : 0);
    if (spare < least) return 0;
    const std::uint32_t granted = std::min(wanted, std::max(least, spare / 2));
    unreserved_ -= granted;
    return granted;
}

std::uint32_t Channel::widen(const Execution::Impl& execution, std::uint32_t wanted) {
    if (alive_ != &execution) return 0;
    const std::uint32_t granted = std::min(wanted, unreserved_);
    unreserved_ -= granted;
    return granted;
}

Status Channel::poll() {
    if (failed(failure_)) return failure_;
    std::size_t count = 0;
    Status status = transport_.progress(done_, count);
    for (std::size_t i = 0; i < count && !failed(status); ++i) {
        const Owner& owner = owners_[done_[i]];
        status = owner.execution->complete_request(done_[i], owner.step, owner.mark);
    }
    if (failed(status)) fail(status);
    return status;
}

}  // namespace thalweg
