#include "engine/driven.h"

#include <sched.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "engine/agent.h"
#include "engine/execution.h"
#include "engine/waiters/between_polls.h"
#include "engine/waiters/leaders_bell.h"
#include "engine/waiters/relax.h"

namespace thalweg {
namespace {

// A poll lasts about a microsecond; one that takes longer has lost its core, and gets it sooner if we yield.
// Where that does not help, because it waits for another core, we are in nobody's way asleep.
constexpr int pauses_for_helm = 200, yields_for_helm = 4;
// A wait came at once if it began so long after its start. So many in a row are a habit, which a few others
// end.
constexpr std::uint64_t at_once_ns = 50'000;
constexpr std::uint32_t habit = 4, longest_habit = 16;

}  // namespace

DrivenChannel::DrivenChannel(std::shared_ptr<Channel> channel, Agent* agent)
    : channel_(std::move(channel)),
      agent_(agent),
      deaf_(!channel_->transport().capabilities().wakeup_descriptor) {}

DrivenChannel::~DrivenChannel() {
    if (orphaned()) return;
    closing_.store(true, std::memory_order_seq_cst);
    if (listed_.load(std::memory_order_acquire) != unlisted) agent_->let_go(*this);
    std::uint64_t began_ns = 0;  // for the agent to let go
    while (listed_.load(std::memory_order_acquire) != unlisted)
        began_ns = pause_between_polls(WaitPolicy::sleep, began_ns);
    take_helm_soon();  // whoever completed the last operation may still be in drive()
}

bool DrivenChannel::orphaned() const { return agent_ != nullptr && agent_->in_child(); }

void DrivenChannel::take_helm_soon() {
    std::uint64_t began_ns = 0;  // of naps
    for (int polls = 0; !take_helm(); ++polls) {
        if (polls < pauses_for_helm)
            relax();
        else if (orphaned())
            return;  // whoever held it at the fork is not in this process
        else if (polls < pauses_for_helm + yields_for_helm)
            sched_yield();
        else
            began_ns = pause_between_polls(WaitPolicy::sleep, began_ns);
    }
}

std::unique_ptr<Execution> DrivenChannel::make(std::shared_ptr<const Schedule> schedule) {
    const Helm helm(*this);
    return std::make_unique<Execution>(std::move(schedule), channel_);
}

// Hot path: no allocation, no lock.
Status DrivenChannel::post(Operation& operation, const Bindings& bindings, std::uint32_t number) {
    if (operation.pending()) return Status::invalid_argument;
    if (orphaned()) return Status::unsupported;
    operation.bindings_ = bindings;
    operation.modes_ = bindings.reducer.modes_here();
    operation.number_ = number;
    operation.state_.store(Operation::State::pending, std::memory_order_relaxed);
    pending_.fetch_add(1, std::memory_order_seq_cst);
    Operation* newest = posted_.load(std::memory_order_relaxed);
    do {
        operation.next_ = newest;
        // Release: who takes the queue sees the operation's fields. In one order with the helm (rest).
    } while (!posted_.compare_exchange_weak(newest, &operation, std::memory_order_seq_cst,
                                            std::memory_order_relaxed));
    return Status::ok;
}

Status DrivenChannel::start(Operation& operation, const Bindings& bindings, std::uint32_t number,
                            bool lasts) {
    if (const Status status = post(operation, bindings, number); status != Status::ok) return status;
    if (lasts && agent_ != nullptr && agent_->posts() && !led() && !waits_at_once()) {
        agent_->count_posting();
    } else if (take_helm()) {
        drive_beside();
        leave_helm();
    }
    if (agent_ == nullptr) return Status::ok;
    const std::uint64_t time_ns = now_ns();
    note_start(time_ns);
    due_ns_.store(waits_at_once() ? time_ns + agent_delay_ns : 0, std::memory_order_relaxed);
    if (!operation.pending() && !busy()) return Status::ok;
    // Who leads rings when it leaves with something pending: it lets go of the lead and then looks at what is
    // pending (wait), which we have counted before we look at the lead.
    if (led()) return Status::ok;
    if (due_ns() != 0)
        agent_->expect(*this);
    else
        agent_->want(*this);
    return Status::ok;
}

Status DrivenChannel::hand_over(Operation& operation, const Bindings& bindings, std::uint32_t number) {
    if (const Status status = post(operation, bindings, number); status != Status::ok) return status;
    agent_->want(*this);
    return Status::ok;
}

bool DrivenChannel::waits_at_once() const { return habit_.load(std::memory_order_relaxed) >= habit; }

void DrivenChannel::learn_habit(bool at_once) {
    const std::uint32_t known = habit_.load(std::memory_order_relaxed);
    habit_.store(at_once ? std::min(known + 1, longest_habit) : known - std::min(known, habit),
                 std::memory_order_relaxed);
}

// Several operations that are started together are waited for together. What is only tested, or forgotten,
// shows at the next start.
void DrivenChannel::note_start(std::uint64_t time_ns) {
    const std::uint64_t before_ns = started_ns_.load(std::memory_order_relaxed);
    if (before_ns != 0 && time_ns < before_ns + at_once_ns) return;
    if (before_ns != 0) learn_habit(false);
    started_ns_.store(time_ns, std::memory_order_relaxed);
}

void DrivenChannel::note_wait() {
    if (started_ns_.load(std::memory_order_relaxed) == 0) return;
    const std::uint64_t started_ns = started_ns_.exchange(0, std::memory_order_relaxed);
    learn_habit(now_ns() < started_ns + at_once_ns);
}

void DrivenChannel::help() {
    if (orphaned() || pending() == 0 || !take_helm()) return;
    const Found found = drive_beside();
    leave_helm();
    // What we posted may need the agent's ear, which was open for other things.
    if ((found == Found::progress || found == Found::work) && busy() && agent_ != nullptr && !led())
        agent_->want(*this);
}

Status DrivenChannel::run(Operation& operation, const Bindings& bindings, std::uint32_t number,
                          WaitPolicy policy, WaitStatistics& statistics) {
    const Status status = post(operation, bindings, number);
    return status != Status::ok ? status : wait(operation, policy, statistics);
}

// The queue is newest first, and was filled by threads that MPI orders where order matters.
void DrivenChannel::take_posted() {
    if (posted_.load(std::memory_order_relaxed) == nullptr) return;
    Operation* newest = posted_.exchange(nullptr, std::memory_order_acquire);
    Operation* oldest_first = nullptr;
    while (newest != nullptr) {
        Operation* const next = newest->next_;
        newest->next_ = oldest_first;
        oldest_first = newest;
        newest = next;
    }
    Operation** end = &queue_;
    while (*end != nullptr) end = &(*end)->next_;
    *end = oldest_first;
}

void DrivenChannel::begin_runs() {
    Operation** end = nullptr;
    while (queue_ != nullptr) {
        const Status failure = channel_->failure();
        if (!failed(failure) && !channel_->admits(queue_->number_)) return;
        Operation* const operation = queue_;
        queue_ = operation->next_;
        operation->next_ = nullptr;
        if (running_ == nullptr) traffic_.begin(now_ns());
        if (end == nullptr)
            for (end = &running_; *end != nullptr;) end = &(*end)->next_;
        *end = operation;
        const Status status =
            failed(failure)
                ? failure
                : operation->execution_.start(operation->bindings_, operation->number_, operation->modes_);
        if (status != Status::ok)
            complete(end, status);
        else
            end = &operation->next_;
    }
}

// After the store of state_ the operation is its owner's: it may be gone.
void DrivenChannel::complete(Operation** link, Status status) {
    Operation& operation = **link;
    *link = operation.next_;
    operation.result_ = status;
    pending_.fetch_sub(1, std::memory_order_seq_cst);
    operation.state_.store(Operation::State::idle, std::memory_order_release);
    wake_followers();
}

// Before the operation that sent it is complete, because its owner may destroy the channel then.
void DrivenChannel::linger() {
    Transport& transport = channel_->transport();
    const bool before = lingers_.load(std::memory_order_relaxed) && running_ == nullptr;
    if (!before) sent_ = transport.sent();
    const bool left = transport.has_left(sent_);
    if (!left && !before) lingers_since_ns_ = now_ns();
    // Written under the helm only, and after every operation: mostly it says so already.
    if (lingers_.load(std::memory_order_relaxed) == left) lingers_.store(!left, std::memory_order_seq_cst);
}

void DrivenChannel::see_out() {
    if (orphaned()) return;
    {
        const Helm helm(*this);
        lingers_.store(false, std::memory_order_relaxed);  // what is sent by now may be more
        linger();
    }
    if (busy()) agent_->want(*this);
}

// Hot path: no allocation, no lock; a clock is read only when something happened.
DrivenChannel::Found DrivenChannel::drive() {
    take_posted();
    begin_runs();
    if (running_ == nullptr) {
        if (!lingers_.load(std::memory_order_relaxed)) return Found::nothing;
        if (failed(channel_->poll()))
            lingers_.store(false, std::memory_order_seq_cst);  // nobody can do more for it
        else
            linger();
        return Found::nothing;
    }
    const Channel::Moved received_before = channel_->moved(false), sent_before = channel_->moved(true);
    Status status = Status::ok;
    for (Operation* operation = running_; operation != nullptr && !failed(status);
         operation = operation->next_) {
        status = operation->execution_.impl_->prepare();
    }
    if (!failed(status)) status = channel_->poll();
    bool local_work = false, completed = false;
    Transport& transport = channel_->transport();
    for (Operation** link = &running_; *link != nullptr;) {
        Execution::Impl& execution = *(*link)->execution_.impl_;
        const Status settled = execution.settle(status);
        // One that fails has made the channel unusable for the others too.
        if (breaks(settled)) status = settled;
        if (settled == Status::in_progress) {
            local_work |= execution.has_local_work();
            link = &(*link)->next_;
        } else {
            if (!breaks(settled)) linger();
            completed = true;
            complete(link, settled);
        }
    }
    const Channel::Moved &received = channel_->moved(false), &sent = channel_->moved(true);
    const BothWays::Crossed came{received.crossed != received_before.crossed,
                                 received.bytes - received_before.bytes};
    const BothWays::Crossed left{sent.crossed != sent_before.crossed, sent.bytes - sent_before.bytes};
    if (came.any || left.any) traffic_.crossed(now_ns(), came, left);
    if (completed || received.messages != received_before.messages || sent.messages != sent_before.messages)
        return Found::progress;
    if (local_work || transport.has_work()) return Found::work;
    return transport.stirred() ? Found::stirred : Found::nothing;
}

// What is complete by now, or has still to be copied, no descriptor tells the leader any more.
DrivenChannel::Found DrivenChannel::drive_beside() {
    const std::uint32_t before = completions_.load(std::memory_order_relaxed);
    const Found found = drive();
    const bool moved = found == Found::progress || found == Found::work ||
                       completions_.load(std::memory_order_relaxed) != before;
    moved_beside_ += moved;
    if (moved && leaders_bell_ >= 0) LeadersBell::ring(std::exchange(leaders_bell_, -1));
    return found;
}

Awaited DrivenChannel::awaited() const {
    Awaited next;
    for (const Operation* operation = running_; operation != nullptr; operation = operation->next_) {
        const Awaited own = operation->execution_.impl_->awaited();
        const bool sooner = own.crosses != next.crosses   ? own.crosses
                            : own.receive == next.receive ? own.bytes < next.bytes
                                                          : own.receive;
        if (own.any && (!next.any || sooner)) next = own;
    }
    return next;
}

bool DrivenChannel::starved() const {
    for (const Operation* operation = running_; operation != nullptr; operation = operation->next_) {
        if (operation->execution_.impl_->starved()) return true;
    }
    return false;
}

}  // namespace thalweg
