#include "sim/point.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <string_view>
#include <type_traits>
#include <vector>

#include "schedule/receipts.h"
#include "sim/variants.h"

namespace thalweg::sim {
namespace {

constexpr int exit_no_memory = 3;

// What travels from the child, followed by the sentence of outcome.why and by outcome.by_rank.
struct Parcel {
    double seconds = 0, own_seconds = 0, root_seconds = 0, mean_seconds = 0, build_seconds = 0,
           replay_seconds = 0;
    std::uint64_t messages = 0, bytes = 0, inter_bytes = 0, steps = 0, schedule_bytes = 0, peak_bytes = 0;
    std::uint64_t why_length = 0, ranks = 0;
};
static_assert(std::is_trivially_copyable_v<Parcel>);

// Of this process, which has one thread: what others do on the machine does not count. The clock of the
// process stands still between the kernel's ticks while its timer runs (child()).
double processor_seconds() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// What a rank exchanges with each of the others. Pre: pairs differ.
Exchange exchange_of(const Point& point, int rank, const Topology& topology) {
    const std::string_view algorithm = point.choice.algorithm->name;
    Exchange exchange;
    if (point.faces) {
        exchange = exchange_of(*point.faces, rank);
        if (!point.native) {
            Decision decision{point.choice, "asked for"};
            as_planned(settle_neighbours(decision, point.faces->traits, topology), exchange);
        }
        if (algorithm == "node_leader") inform_leader(*point.faces, rank, topology, exchange);
        return exchange;
    }
    // Rounds of a library have messages of no bytes as well.
    exchange = exchange_of(*point.pattern, rank, point.native && algorithm == "pairwise");
    if (!point.native) as_planned(*point.pattern, point.choice, topology, exchange);
    if (algorithm == "node_leader") inform_leader(*point.pattern, rank, topology, exchange);
    return exchange;
}

PointResult run_here(const Point& point, const Topology& topology, const SimMachine& machine) {
    PointResult result;
    const double begin = processor_seconds();
    std::vector<Schedule> schedules;
    schedules.reserve(static_cast<std::size_t>(topology.size()));
    Problem problem;
    problem.size = topology.size();
    problem.bytes = point.bytes;
    const bool receipts = machine.adds_receipts(point.options.credits);
    for (problem.rank = 0; problem.rank < problem.size; ++problem.rank) {
        Exchange own;
        if (point.faces || point.pattern) {
            own = exchange_of(point, problem.rank, topology);
            problem.exchange = &own;
        }
        schedules.push_back(build(point.choice, problem, topology));
        problem.exchange = nullptr;
        if (receipts) schedules.back() = with_receipts(schedules.back());
        schedules.back() = posted(schedules.back(), point.posting);
        if (point.in_turn) schedules.back() = in_turn(schedules.back());
        if (point.repeat > 1) schedules.back() = repeated(schedules.back(), point.repeat);
        const Schedule& made = schedules.back();
        result.schedule_bytes += made.steps().size() * (sizeof(Step) + sizeof(std::uint32_t));
        for (StepId id = 0; id < made.steps().size(); ++id)
            result.schedule_bytes += made.after(id).size() * sizeof(StepId);
    }
    const double built = processor_seconds();
    result.build_seconds = built - begin;
    ReplayOptions options = point.options;
    options.repeat = point.repeat;
    if (point.faces && !point.faces->grid.cells.empty())
        options.moved = [&point](int from, int to, std::uint64_t bytes) {
            return moved_bytes(*point.faces, from, to, bytes);
        };
    result.outcome = replay(schedules, topology, machine, options);
    for (double* seconds : {&result.outcome.seconds, &result.outcome.own_seconds,
                            &result.outcome.root_seconds, &result.outcome.mean_seconds})
        *seconds /= point.repeat;
    for (double& seconds : result.outcome.by_rank) seconds /= point.repeat;
    result.replay_seconds = processor_seconds() - built;
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    result.peak_bytes = static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
    return result;
}

std::string too_large(std::uint64_t most_memory) {
    return "takes more than " + std::to_string(most_memory >> 20) + " MiB";
}

// Memory that the point cannot do without: known before anything is built, because a claim is a formula.
double least_bytes(const Point& point, const Topology& topology) {
    constexpr double step_bytes = 100;  // in its schedule and in the replay; 130 to 140 were seen
    Problem problem;
    problem.size = topology.size();
    problem.bytes = point.bytes;
    return 2 * step_bytes * point.repeat *
           static_cast<double>(claim(point.choice, problem, topology).messages);
}

bool write_all(int to, const void* data, std::size_t bytes) {
    for (const char* at = static_cast<const char*>(data); bytes > 0;) {
        const ssize_t written = write(to, at, bytes);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return false;
        at += written;
        bytes -= static_cast<std::size_t>(written);
    }
    return true;
}

bool read_all(int from, void* data, std::size_t bytes) {
    for (char* at = static_cast<char*>(data); bytes > 0;) {
        const ssize_t got = read(from, at, bytes);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        at += got;
        bytes -= static_cast<std::size_t>(got);
    }
    return true;
}

[[noreturn]] void child(unsigned most_seconds, std::uint64_t most_memory,
                        const std::function<PointResult()>& work, int to) {
    // What the processor works, not what the clock on the wall says: a busy machine gives up nothing sooner.
    const itimerval work_time{{0, 0}, {static_cast<time_t>(most_seconds), 0}};
    setitimer(ITIMER_PROF, &work_time, nullptr);
    // A sanitizer reserves terabytes of addresses for its own.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    const rlimit memory{most_memory, most_memory};
    setrlimit(RLIMIT_AS, &memory);
#else
    static_cast<void>(most_memory);
#endif
    try {
        const PointResult result = work();
        const Outcome& outcome = result.outcome;
        const Parcel parcel{outcome.seconds,      outcome.own_seconds,   outcome.root_seconds,
                            outcome.mean_seconds, result.build_seconds,  result.replay_seconds,
                            outcome.messages,     outcome.bytes,         outcome.inter_bytes,
                            outcome.steps,        result.schedule_bytes, result.peak_bytes,
                            outcome.why.size(),   outcome.by_rank.size()};
        const bool sent = write_all(to, &parcel, sizeof parcel) &&
                          write_all(to, outcome.why.data(), outcome.why.size()) &&
                          write_all(to, outcome.by_rank.data(), outcome.by_rank.size() * sizeof(double));
        _exit(sent ? 0 : 1);
    } catch (const std::bad_alloc&) {
        _exit(exit_no_memory);
    }
}

PointResult unpack(const Parcel& parcel) {
    PointResult result;
    result.outcome.seconds = parcel.seconds;
    result.outcome.own_seconds = parcel.own_seconds;
    result.outcome.root_seconds = parcel.root_seconds;
    result.outcome.mean_seconds = parcel.mean_seconds;
    result.outcome.messages = parcel.messages;
    result.outcome.bytes = parcel.bytes;
    result.outcome.inter_bytes = parcel.inter_bytes;
    result.outcome.steps = parcel.steps;
    result.build_seconds = parcel.build_seconds;
    result.replay_seconds = parcel.replay_seconds;
    result.schedule_bytes = parcel.schedule_bytes;
    result.peak_bytes = parcel.peak_bytes;
    return result;
}

}  // namespace

PointResult in_child(unsigned most_seconds, std::uint64_t most_memory,
                     const std::function<PointResult()>& work) {
    PointResult result;
    std::array<int, 2> ends{};
    if (pipe(ends.data()) != 0) {
        result.outcome.why = std::string("no pipe: ") + std::strerror(errno);
        return result;
    }
    const pid_t process = fork();
    if (process == 0) {
        close(ends[0]);
        child(most_seconds, most_memory, work, ends[1]);
    }
    close(ends[1]);
    Parcel parcel;
    const bool whole = process > 0 && read_all(ends[0], &parcel, sizeof parcel);
    if (whole) {
        result = unpack(parcel);
        Outcome& outcome = result.outcome;
        outcome.why.resize(parcel.why_length);
        outcome.by_rank.resize(parcel.ranks);
        if (!read_all(ends[0], outcome.why.data(), parcel.why_length) ||
            !read_all(ends[0], outcome.by_rank.data(), parcel.ranks * sizeof(double)))
            outcome.why = "cut off";
    }
    close(ends[0]);
    int status = 0;
    while (process > 0 && waitpid(process, &status, 0) < 0 && errno == EINTR) {
    }
    if (whole) return result;
    result.given_up = true;
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGPROF)
        result.outcome.why = "takes more than " + std::to_string(most_seconds) + " s of a processor";
    else if (WIFEXITED(status) && WEXITSTATUS(status) == exit_no_memory)
        result.outcome.why = too_large(most_memory);
    else
        result.outcome.why = "the simulation ended without a result";
    return result;
}

PointResult simulate(const Point& point, const Topology& topology, const SimMachine& machine) {
    if (!point.faces && !point.pattern &&
        least_bytes(point, topology) > static_cast<double>(point.most_memory)) {
        PointResult result;
        result.given_up = true;
        result.outcome.why = too_large(point.most_memory);
        return result;
    }
    return in_child(point.most_seconds, point.most_memory,
                    [&] { return run_here(point, topology, machine); });
}

}  // namespace thalweg::sim
