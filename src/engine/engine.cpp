#include "engine/engine.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "engine/execution.h"

namespace thalweg {
namespace {

// Local work between two polls: about 50 us at a few GB/s, so that a long copy does not stop the network.
constexpr std::uint64_t local_piece_bytes = 256 * 1024;
// What starting a local step costs, in bytes that could have been copied meanwhile.
constexpr std::uint64_t local_step_cost_bytes = 256;
// Advances without an event before a starved execution widens its window.
constexpr std::uint32_t idle_before_relief = 32;
// And between one widening and the next.
constexpr std::uint32_t idle_between_reliefs = 8;

}  // namespace

Execution::Impl::Impl(std::shared_ptr<const Schedule> the_schedule, std::shared_ptr<Channel> the_channel)
    : schedule(std::move(the_schedule)),
      channel(std::move(the_channel)),
      steps_(schedule->steps()),
      predecessors_(steps_.size()),
      credit_of_(steps_.size()),
      turns_(steps_.size(), Turn::early),
      scratch_(new std::byte[schedule->scratch_bytes()]),
      max_message_bytes_(channel->transport().capabilities().max_message_bytes),
      waiting_for_(steps_.size()),
      states_(steps_.size()),
      ready_sends_(steps_.size()),
      ready_recvs_(steps_.size()),
      ready_locals_(steps_.size()),
      held_sends_(steps_.size()) {
    link_successors();
    sort_messages();
    channel->provide(messages());
}

void Execution::Impl::link_successors() {
    const StepId count = static_cast<StepId>(steps_.size());
    next_begin_.assign(count + 1, 0);
    for (StepId step = 0; step < count; ++step) {
        const auto after = schedule->after(step);
        predecessors_[step] = static_cast<std::uint32_t>(after.size());
        if (after.empty()) roots_.push_back(step);
        for (StepId before : after) ++next_begin_[before + 1];
    }
    for (StepId step = 0; step < count; ++step) next_begin_[step + 1] += next_begin_[step];
    next_.resize(next_begin_[count]);
    std::vector<std::uint32_t> fill(next_begin_.begin(), next_begin_.end() - 1);
    for (StepId step = 0; step < count; ++step) {
        for (StepId before : schedule->after(step)) next_[fill[before]++] = step;
    }
}

void Execution::Impl::sort_messages() {
    std::unordered_map<int, Turns> turns_to;
    bool in_parts = false;
    for (StepId id = 0; id < steps_.size(); ++id) {
        const Step& step = steps_[id];
        if (step.kind == StepKind::send) {
            sends_.ids.push_back(id);
            credit_of_[id] = channel->credits().account(step.peer);
            turns_to.try_emplace(step.peer, channel->credits().credit_bytes())
                .first->second.add(step.source.bytes);
            in_parts |= step.source.bytes > max_message_bytes_;
        } else if (step.kind == StepKind::recv) {
            recvs_.ids.push_back(id);
            in_parts |= step.target.bytes > max_message_bytes_;
        }
        beyond_numbers_ |= step.message >= max_messages_per_pair;
        reduces_ |= step.kind == StepKind::reduce;
    }
    for (const StepId id : sends_.ids)
        turns_[id] = turns_to.find(steps_[id].peer)->second.next(steps_[id].source.bytes);
    if (in_parts) moved_.resize(steps_.size());
}

// Hot path: no allocation, lock or system call; proved by the test engine.allocations.
Status Execution::Impl::start(const Bindings& bindings, std::uint32_t number, const FloatModes& modes) {
    const Transport& transport = channel->transport();
    if (failed(channel->failure())) return channel->failure();
    if (schedule->rank() != transport.rank() || schedule->size() != transport.size() || beyond_numbers_) {
        return Status::invalid_argument;
    }
    if (reduces_ && (!bindings.reducer.combine || bindings.reducer.element_bytes == 0))
        return Status::unsupported;
    if (const Status status = channel->enter(*this, number); status != Status::ok) return status;
    operation = number;
    // in is never written: the schedule's steps only read it.
    base_ = {static_cast<std::byte*>(const_cast<void*>(bindings.in)), static_cast<std::byte*>(bindings.out),
             scratch_.get()};
    reducer_ = bindings.reducer;
    modes_ = modes;
    std::copy(predecessors_.begin(), predecessors_.end(), waiting_for_.begin());
    std::fill(states_.begin(), states_.end(), State::waiting);
    if (!moved_.empty()) std::fill(moved_.begin(), moved_.end(), 0);
    for (PieceState& piece : pieces_) piece.excess = 0, piece.never_comes = false;
    sends_.oldest = recvs_.oldest = 0;
    held_sends_.clear();
    unfinished_ = static_cast<std::uint32_t>(steps_.size());
    idle_ = 0;
    local_done_ = 0;
    starved_ = truncated_ = false;
    gaps.clear();
    window_.reset(0);
    running = true;
    for (StepId step : roots_) make_ready(step);
    return Status::ok;
}

void Execution::Impl::make_ready(StepId step) {
    states_[step] = State::ready;
    switch (steps_[step].kind) {
        case StepKind::send:
            ready_sends_.insert(step);
            break;
        case StepKind::recv:
            (never_comes(step) ? ready_locals_ : ready_recvs_).insert(step);
            break;
        case StepKind::copy:
        case StepKind::reduce:
            ready_locals_.insert(step);
            break;
    }
}

void Execution::Impl::complete_step(StepId step) {
    states_[step] = State::done;
    --unfinished_;
    for (std::uint32_t i = next_begin_[step]; i < next_begin_[step + 1]; ++i) {
        if (--waiting_for_[next_[i]] == 0) make_ready(next_[i]);
    }
    const StepId next = next_piece(step);
    if (next != ReadySet::none && --waiting_for_[next] == 0) make_ready(next);
}

void Execution::Impl::advance_lane(Lane& lane) {
    while (lane.oldest < lane.ids.size() && states_[lane.ids[lane.oldest]] == State::done) ++lane.oldest;
}

Status Execution::Impl::complete_request(Slot slot, StepId id, std::uint64_t mark) {
    ++events;
    const Step& step = steps_[id];
    const bool is_send = step.kind == StepKind::send;
    const std::uint64_t bytes = is_send ? step.source.bytes : step.target.bytes;
    channel->count(is_send, channel->transport().crosses(step.peer), part_of(bytes, 0));
    if (unequal && !is_send && !is_put(id)) {
        Status status = Status::ok;
        if (takes_excess(slot, id, status)) return status;
    }
    if (!moved_.empty() && !is_put(id)) {
        moved_[id] += part_of(bytes, moved_[id]);
        if (moved_[id] < bytes)
            return post_part(slot, id, mark != 0 ? SendMode::synchronous : SendMode::buffered);
    }
    if (mark != 0) channel->credits().acknowledge(*credit_of_[id], mark);
    channel->release(slot);
    window_.complete();
    complete_step(id);
    advance_lane(is_send ? sends_ : recvs_);
    if (is_send && !held_sends_.empty()) {
        // The oldest send is never held.
        const StepId oldest = oldest_of(sends_);
        if (oldest != ReadySet::none && held_sends_.contains(oldest)) {
            held_sends_.erase(oldest);
            ready_sends_.insert(oldest);
        }
    }
    return Status::ok;
}

Status Execution::Impl::post_part(Slot slot, StepId id, SendMode mode) {
    const Step& step = steps_[id];
    const std::uint64_t done = moved_.empty() ? 0 : moved_[id];
    const MessageId message{operation, step.message, unequal && !is_put(id)};
    Transport& transport = channel->transport();
    if (is_put(id)) {
        if (step.kind == StepKind::recv) return transport.post_recv(slot, step.peer, message, nullptr, 0);
        return transport.post_put(slot, aims[id].target, aims[id].offset, address(step.source),
                                  step.source.bytes, message);
    }
    if (step.kind == StepKind::send) {
        const std::size_t bytes = part_of(step.source.bytes, done);
        return transport.post_send(slot, step.peer, message, address(step.source) + done, bytes, mode);
    }
    const std::size_t bytes = part_of(step.target.bytes, done);
    return transport.post_recv(slot, step.peer, message, address(step.target) + done, bytes);
}

Status Execution::Impl::post(StepId id, bool is_send) {
    std::uint64_t mark = 0;
    SendMode mode = SendMode::buffered;
    if (is_send && is_put(id)) {
        // Its receiver has made room, and has said so.
        ready_sends_.erase(id);
        ++puts;
    } else if (is_send) {
        Credit& credit = *credit_of_[id];
        const std::uint64_t cost = steps_[id].source.bytes + message_overhead_bytes;
        const Admission admission =
            channel->credits().admit(credit, cost, turns_[id], id == oldest_of(sends_));
        ready_sends_.erase(id);
        if (admission == Admission::hold) {
            held_sends_.insert(id);
            return Status::ok;
        }
        const bool synchronous = admission == Admission::synchronous;
        const std::uint64_t posted = channel->credits().post(credit, cost, synchronous);
        if (synchronous) mark = posted, mode = SendMode::synchronous;
    } else {
        ready_recvs_.erase(id);
    }
    states_[id] = State::posted;
    window_.post();
    return post_part(channel->take(*this, id, mark), id, mode);
}

// Posts what is ready, sends and receives together in id order, as far as the window and the credits admit.
Status Execution::Impl::issue_messages() {
    if (window_.limit() == 0) {
        window_.reset(channel->reserve(*this, std::min(messages(), channel->limits().in_flight)));
        if (window_.limit() == 0) return Status::ok;
    }
    if (!held_sends_.empty() && acknowledgements_ != channel->credits().acknowledgements()) release_held();
    StepId send = ready_sends_.first();
    StepId recv = ready_recvs_.first();
    starved_ = false;
    while (send != ReadySet::none || recv != ReadySet::none) {
        const bool is_send = send < recv;
        const StepId step = is_send ? send : recv;
        Status status = Status::ok;
        const bool admitted = window_.admits(keeps(sends_, step), keeps(recvs_, step));
        if (admitted) status = post(step, is_send);
        if (failed(status)) return status;
        starved_ |= !admitted;
        // A step that is shut out is not its lane's oldest, so those after it are shut out as well.
        if (is_send)
            send = admitted ? ready_sends_.first() : ReadySet::none;
        else
            recv = admitted ? ready_recvs_.first() : ReadySet::none;
    }
    return Status::ok;
}

void Execution::Impl::release_held() {
    acknowledgements_ = channel->credits().acknowledgements();
    while (!held_sends_.empty()) {
        const StepId step = held_sends_.first();
        held_sends_.erase(step);
        ready_sends_.insert(step);
    }
}

void Execution::Impl::combine(const std::byte* source, Side source_side, std::byte* target,
                              std::uint64_t bytes) {
    const std::byte* const left = source_side == Side::left ? source : target;
    const std::byte* const right = source_side == Side::left ? target : source;
    if (!reducer_.rounds) return reducer_.combine(left, right, target, bytes, reducer_.context);
    const InModes of_who_started(modes_);
    reducer_.combine(left, right, target, bytes, reducer_.context);
}

// Runs copies and reduces in id order until about `budget_bytes` are done; returns what is left of the
// budget.
std::uint64_t Execution::Impl::run_local(std::uint64_t budget_bytes) {
    while (budget_bytes != 0 && !ready_locals_.empty()) {
        // One that is begun is ended first, whatever became ready meanwhile.
        const StepId id = local_done_ != 0 ? local_step_ : ready_locals_.first();
        const Step& step = steps_[id];
        if (step.kind == StepKind::recv) {
            skip(id);
            continue;
        }
        local_step_ = id;
        const bool reduces = step.kind == StepKind::reduce;
        const std::uint64_t left = step.target.bytes - local_done_;
        std::uint64_t piece = std::min(left, budget_bytes);
        if (reduces && piece < left) {
            piece = std::min(left, std::max<std::uint64_t>(piece - piece % reducer_.element_bytes,
                                                           reducer_.element_bytes));
        }
        const std::byte* source = address(step.source) + local_done_;
        std::byte* target = address(step.target) + local_done_;
        if (piece != 0 && reduces) combine(source, step.source_side, target, piece);
        if (piece != 0 && !reduces && source != target) std::memmove(target, source, piece);
        local_done_ += piece;
        budget_bytes -= std::min(piece + local_step_cost_bytes, budget_bytes);
        if (local_done_ < step.target.bytes) break;
        local_done_ = 0;
        ready_locals_.erase(id);
        complete_step(id);
    }
    return budget_bytes;
}

Status Execution::Impl::issue() {
    std::uint64_t budget_bytes = local_piece_bytes;
    for (;;) {
        if (!ready_sends_.empty() || !ready_recvs_.empty() || !held_sends_.empty()) {
            if (const Status status = issue_messages(); failed(status)) return status;
        }
        if (ready_locals_.empty() || budget_bytes == 0) return Status::ok;
        budget_bytes = run_local(budget_bytes);
    }
}

void Execution::Impl::relieve() {
    if (!starved_ || ++idle_ < idle_before_relief) return;
    idle_ = idle_before_relief - idle_between_reliefs;
    window_.widen(channel->widen(*this, std::min(window_.limit(), may_widen_by())));
}

// Hot path, as start().
Status Execution::Impl::advance() {
    if (!running) return Status::invalid_argument;
    Status status = prepare();
    if (!failed(status) && unfinished_ != 0) status = channel->poll();
    return settle(status);
}

Status Execution::Impl::prepare() {
    events_before_ = events;
    return issue();
}

Status Execution::Impl::settle(Status status) {
    if (!failed(status) && unfinished_ != 0) {
        if (events != events_before_) {
            idle_ = 0;
            status = issue();
        } else {
            relieve();
        }
    }
    if (failed(status)) {
        channel->fail(status);
        running = false;
        channel->leave(*this);
        return status;
    }
    if (unfinished_ != 0) return Status::in_progress;
    finish();
    return truncated_ ? Status::truncated : Status::ok;
}

void Execution::Impl::finish() {
    channel->unreserve(window_.limit());
    channel->leave(*this);
    running = false;
}

Execution::Execution(std::shared_ptr<const Schedule> schedule, std::shared_ptr<Channel> channel)
    : impl_(std::make_unique<Impl>(std::move(schedule), std::move(channel))) {}

Execution::~Execution() {
    // Requests that are posted refer to the caller's memory and to us: after this nothing may be polled.
    if (impl_->running) {
        impl_->channel->fail(Status::transport_failed);
        impl_->channel->leave(*impl_);
    }
}

Status Execution::start(const Bindings& bindings, std::uint32_t operation) {
    return start(bindings, operation, bindings.reducer.modes_here());
}

Status Execution::start(const Bindings& bindings, std::uint32_t operation, const FloatModes& modes) {
    if (impl_->running) return Status::invalid_argument;
    return impl_->start(bindings, operation, modes);
}

Status Execution::advance() { return impl_->advance(); }

void Execution::aim(std::vector<Aim> aims) {
    impl_->aims = std::move(aims);
    impl_->aimed = true;
}

void Execution::expect_unequal() { impl_->expect_unequal(); }

std::span<const Slice> Execution::gaps() const { return impl_->gaps; }

std::uint64_t Execution::puts() const { return impl_->puts; }

bool Execution::running() const { return impl_->running; }

}  // namespace thalweg
