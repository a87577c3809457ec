// Post-to-wake latency: from the moment a thread rings to the moment the sleeper runs again, one row for each
// way to sleep. No MPI. `--json` prints JSON lines for machines; `--samples N` and `--pause-us N` (how long
// the sleeper sleeps before it is rung) change what is measured.
//
// A sample: the sleeper says that it is about to sleep; the ringer waits `pause`, takes the time, rings, and
// takes the time again; the sleeper takes the time when it runs. The sleeper's CPU seconds are those of its
// thread. A way that this machine lacks is named with the reason.
#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/text.h"
#include "engine/engine.h"
#include "engine/waiters/sleeper.h"
#include "engine/waiters/waiter.h"
#include "transport/inproc/inproc.h"

namespace thalweg {
namespace {

struct Plan {
    std::uint64_t samples = 300;
    std::uint64_t pause_us = 300;
    bool json = false;
};

struct Row {
    std::string name;
    std::string why;                       // not empty: not exercised
    std::vector<double> wake_us, ring_us;  // sorted
    double cpu_share = 0;                  // of one core, while it waits
};

double at(const std::vector<double>& sorted, double quantile) {
    return sorted[static_cast<std::size_t>(quantile * static_cast<double>(sorted.size() - 1))];
}

double thread_cpu_seconds() {
    timespec used{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

// `sleep`, in the sleeper's thread, returns when the count of the bell is not the one given.
Row measure(const std::string& name, const Plan& plan,
            const std::function<void(Doorbell&, std::uint32_t)>& sleep) {
    Row row{name, {}, {}, {}, 0};
    Doorbell bell;
    std::atomic<std::uint64_t> ready{0};  // the sample that the sleeper is about to sleep for
    std::atomic<std::uint64_t> woken_ns{0};
    std::thread sleeper([&] {
        const double cpu_before = thread_cpu_seconds();
        const std::uint64_t begin_ns = now_ns();
        for (std::uint64_t sample = 1; sample <= plan.samples; ++sample) {
            const std::uint32_t seen = bell.rings();
            woken_ns.store(0);
            ready.store(sample);
            while (bell.rings() == seen) sleep(bell, seen);
            woken_ns.store(now_ns());
            while (ready.load() == sample) std::this_thread::yield();
        }
        row.cpu_share = (thread_cpu_seconds() - cpu_before) / seconds(now_ns() - begin_ns);
    });
    for (std::uint64_t sample = 1; sample <= plan.samples; ++sample) {
        while (ready.load() != sample) std::this_thread::yield();
        std::this_thread::sleep_for(std::chrono::microseconds(plan.pause_us));
        const std::uint64_t before_ns = now_ns();
        bell.ring();
        row.ring_us.push_back(static_cast<double>(now_ns() - before_ns) * 1e-3);
        while (woken_ns.load() == 0) std::this_thread::yield();
        row.wake_us.push_back(static_cast<double>(woken_ns.load() - before_ns) * 1e-3);
        ready.store(0);
    }
    sleeper.join();
    std::sort(row.wake_us.begin(), row.wake_us.end());
    std::sort(row.ring_us.begin(), row.ring_us.end());
    return row;
}

void print(const Plan& plan, const Row& row) {
    if (plan.json && !row.why.empty()) {
        std::printf("{\"waiter\": \"%s\", \"exercised\": false, \"why\": \"%s\"}\n", row.name.c_str(),
                    row.why.c_str());
    } else if (plan.json) {
        std::printf(
            "{\"waiter\": \"%s\", \"exercised\": true, \"samples\": %llu, \"pause_us\": %llu, "
            "\"wake_us\": {\"min\": %.3f, \"median\": %.3f, \"p99\": %.3f}, "
            "\"ring_us\": {\"median\": %.3f, \"p99\": %.3f}, \"cpu_share\": %.4f}\n",
            row.name.c_str(), static_cast<unsigned long long>(plan.samples),
            static_cast<unsigned long long>(plan.pause_us), at(row.wake_us, 0), at(row.wake_us, 0.5),
            at(row.wake_us, 0.99), at(row.ring_us, 0.5), at(row.ring_us, 0.99), row.cpu_share);
    } else if (!row.why.empty()) {
        std::printf("%-12s not exercised: %s\n", row.name.c_str(), row.why.c_str());
    } else {
        std::printf("%-12s %9.2f %9.2f %9.2f %9.2f %9.2f %8.1f %%\n", row.name.c_str(), at(row.wake_us, 0),
                    at(row.wake_us, 0.5), at(row.wake_us, 0.99), at(row.ring_us, 0.5), at(row.ring_us, 0.99),
                    100 * row.cpu_share);
    }
    std::fflush(stdout);
}

// The waiters of a thread of the program, which poll and do not hear a bell.
Row measure_waiter(const std::string& name, const Plan& plan, std::unique_ptr<Waiter> waiter) {
    InprocNetwork network(1, {});
    WaitStatistics statistics;
    return measure(name, plan, [&](Doorbell& bell, std::uint32_t seen) {
        waiter->begin();
        while (bell.rings() == seen) waiter->idle(network.endpoint(0), statistics);
        waiter->end();
    });
}

int run(const Plan& plan) {
    const Cpu cpu = detect_cpu();
    if (!plan.json) {
        std::printf("post-to-wake latency in microseconds, %llu samples, rung after %llu us of sleep\n\n",
                    static_cast<unsigned long long>(plan.samples),
                    static_cast<unsigned long long>(plan.pause_us));
        std::printf("%-12s %9s %9s %9s %9s %9s %10s\n", "waiter", "min", "median", "p99", "ring", "ring p99",
                    "CPU");
    }
    for (std::size_t kind = 0; kind < sleeper_kinds; ++kind) {
        const SleeperKind way{static_cast<std::uint8_t>(kind)};
        const bool has_depths = way == SleeperKind::umwait || way == SleeperKind::tpause;
        for (bool light : {true, false}) {
            if (!light && !has_depths) continue;
            const std::string name =
                std::string(name_of(way)) + (has_depths ? (light ? " C0.1" : " C0.2") : "");
            std::string why;
            if (has_sleeper(way, cpu, why) && !light && !cpu.deep) why = "the kernel forbids C0.2";
            const auto sleeper = why.empty() ? make_sleeper(way, cpu, light) : nullptr;
            if (why.empty() && !sleeper) why = "the system has no descriptor left";
            print(plan, sleeper ? measure(name, plan,
                                          [&](Doorbell& bell, std::uint32_t seen) {
                                              sleeper->sleep(bell, seen, never_ns);
                                          })
                                : Row{name, why, {}, {}, 0});
        }
    }
    print(plan, measure_waiter("timed", plan, make_timed_waiter()));
    print(plan, measure_waiter("spin", plan, make_spin_waiter()));
    return 0;
}

}  // namespace
}  // namespace thalweg

int main(int argc, char** argv) {
    thalweg::Plan plan;
    for (int i = 1; i < argc; ++i) {
        const std::string flag = argv[i];
        constexpr std::uint64_t none = UINT64_MAX;
        const std::uint64_t number = i + 1 < argc ? thalweg::parse_count(argv[i + 1]).value_or(none) : none;
        if (flag == "--json") {
            plan.json = true;
        } else if (flag == "--samples" && number != none && number > 0) {
            plan.samples = number, ++i;
        } else if (flag == "--pause-us" && number != none) {
            plan.pause_us = number, ++i;
        } else {
            std::fprintf(stderr, "usage: %s [--json] [--samples N] [--pause-us N]\n", argv[0]);
            return 2;
        }
    }
    return thalweg::run(plan);
}
