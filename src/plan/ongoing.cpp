#include "plan/ongoing.h"

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "plan/failure.h"
#include "plan/reserve.h"
#include "transport/mpi/host.h"

namespace thalweg {

namespace {

// Rows are shared by the threads that start and those that complete operations of one communicator.
constinit std::mutex tally_mutex;

// So long an operation that waking the agent for it, some 15 us, is little.
constexpr std::uint64_t lasting_bytes = 64 * 1024;

}  // namespace

// Hot path: the lock is taken once a call.
void Ongoing::count_call(std::uint64_t since_ns, bool starts, const WaitStatistics* waited) {
    const std::uint64_t spent_ns = now_ns() - since_ns;
    run_ns_.fetch_add(spent_ns, std::memory_order_relaxed);
    const std::lock_guard lock(tally_mutex);
    Tally& tally = *options_.tally;
    tally.elapsed_ns += spent_ns;
    if (starts) {
        ++tally.calls;
        tally.bytes += options_.bytes;
        tally.staged_calls += buffer_.staged() || input_.staged();
    }
    if (waited == nullptr) return;
    tally.waiting_ns += spent_ns;
    tally.waited.polls += waited->polls;
    tally.waited.sleeps += waited->sleeps;
    tally.waited.slept_ns += waited->slept_ns;
}

void Ongoing::load() {
    run_ns_.store(0, std::memory_order_relaxed);
    status_ = input_.load();
    if (!failed(status_)) status_ = buffer_.load(options_.loads_from, options_.loads_to);
}

std::uint32_t Ongoing::number_of(const Part& part) {
    return options_.numbered ? part.number : options_.lane->next_operation();
}

Bindings Ongoing::bindings_of(const Part& part) {
    Bindings bindings;
    bindings.in = input_.data();
    bindings.out = buffer_.data() + part.begin;
    bindings.reducer = options_.reducer;
    return bindings;
}

Status Ongoing::start() {
    const std::uint64_t began = now_ns();
    load();
    Lane& lane = *options_.lane;
    for (Part& part : parts_) {
        if (failed(status_)) break;
        status_ = lane.driven().start(part.run->operation, bindings_of(part), number_of(part),
                                      options_.bytes >= lasting_bytes);
    }
    count_call(began, true, nullptr);
    // The others run what we did not start.
    if (breaks(status_)) lane.fail();
    return status_;
}

void Ongoing::run() {
    const std::uint64_t began = now_ns();
    load();
    Lane& lane = *options_.lane;
    WaitStatistics waited;
    for (Part& part : parts_) {
        if (failed(status_)) break;
        status_ = lane.driven().run(part.run->operation, bindings_of(part), number_of(part), options_.policy,
                                    waited);
    }
    count_call(began, true, &waited);
    if (breaks(status_)) lane.fail();
}

bool Ongoing::pending() const {
    for (const Part& part : parts_)
        if (part.run->operation.pending()) return true;
    return false;
}

void Ongoing::help() { options_.lane->driven().help(); }

bool Ongoing::wait(std::uint64_t until_ns, bool goes_on) {
    const std::uint64_t began = now_ns();
    WaitStatistics waited;
    for (Part& part : parts_)
        options_.lane->driven().wait(part.run->operation, options_.policy, waited, until_ns, goes_on);
    count_call(began, false, &waited);
    return !pending();
}

// Of several parts none has gaps.
Status Ongoing::store() {
    if (parts_.empty()) return buffer_.store();
    const Run& run = *parts_.front().run;
    return buffer_.store(run.execution.gaps(), run.own.gaps);
}

int Ongoing::finish() {
    const std::uint64_t began = now_ns();
    for (const Part& part : parts_)
        if (!failed(status_)) status_ = part.run->operation.status();
    if (!failed(status_) && !parts_.empty() && parts_.front().run->own.truncated) status_ = Status::truncated;
    if (!breaks(status_) && options_.stores)
        if (const Status stored = store(); failed(stored)) status_ = stored;
    int error = MPI_SUCCESS;
    if (failed(status_)) {
        THALWEG_LOG_AT(error, "a collective failed: %s", why_failed(status_));
        error = mpi_error_of(status_, options_.lane->native_error());
        if (breaks(status_)) options_.lane->fail();
        const std::lock_guard lock(tally_mutex);
        ++options_.tally->errors;
    }
    count_call(began, false, nullptr);
    if (options_.account != nullptr && error == MPI_SUCCESS) {
        std::uint64_t puts = 0;
        for (const Part& part : parts_) puts += part.run->execution.puts();
        options_.account->add_run(run_ns_.load(std::memory_order_relaxed), puts);
    }
    if (!options_.persistent && !repeatable()) release();
    return error;
}

Ongoing::~Ongoing() {
    forgo_messages();
    if (repeatable()) release();
}

template <typename Visit>
void Ongoing::for_receives(Visit visit) {
    Transport* const transport = options_.lane == nullptr ? nullptr : options_.lane->own_transport();
    if (transport == nullptr) return;
    for (const Part& part : parts_)
        for (const Step& step : part.run->schedule->steps())
            if (step.kind == StepKind::recv) visit(*transport, step.peer, step.target.bytes);
}

void Ongoing::expect_messages() {
    if (std::exchange(expects_, true)) return;
    for_receives([](Transport& transport, int peer, std::uint64_t bytes) { transport.expect(peer, bytes); });
}

void Ongoing::forgo_messages() {
    if (!std::exchange(expects_, false)) return;
    for_receives([](Transport& transport, int peer, std::uint64_t bytes) { transport.forgo(peer, bytes); });
}

bool Ongoing::repeatable() const {
    return options_.kept_as != nullptr && !failed(status_) && input_.repeatable() && buffer_.repeatable();
}

void Ongoing::retire(std::unique_ptr<Ongoing> ongoing) {
    if (!ongoing->repeatable() || ongoing->options_.lane->broken()) return;
    const std::shared_ptr<Lane> lane = ongoing->options_.lane;
    if (__builtin_expect(reserve_is_kept(), 0)) {
        ongoing.reset();
        lane->drop_idle();
        reserve_was_relieved();
        return;
    }
    ongoing->options_.lane.reset();
    lane->keep(std::move(ongoing));
}

bool Ongoing::resume(std::shared_ptr<Lane> lane) {
    options_.lane = std::move(lane);
    return input_.on_host() && buffer_.on_host();
}

void Ongoing::leave(Lane& lane) {
    input_.leave(lane);
    buffer_.leave(lane);
    for (Part& part : parts_) lane.give_back(std::move(part.run));
    parts_.clear();
}

std::uint64_t Ongoing::footprint_bytes() const {
    std::uint64_t bytes = input_.touched_bytes() + buffer_.touched_bytes();
    for (const Part& part : parts_) bytes += part.run->footprint_bytes;
    return bytes;
}

void Ongoing::release() {
    forgo_messages();
    options_.kept_as.reset();
    for (Part& part : parts_)
        if (options_.lane != nullptr) options_.lane->give_back(std::move(part.run));
    parts_.clear();
    // What failed may still be under way: its lane keeps what it knows.
    if (options_.lane != nullptr && !options_.lane->broken()) {
        input_.leave(*options_.lane);
        buffer_.leave(*options_.lane);
    }
    // A lane of its own may have exposed the buffer.
    options_.lane.reset();
    input_.release();
    buffer_.release();
    options_.record.reset();
}

}  // namespace thalweg
