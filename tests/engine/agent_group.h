// A process of several ranks, each with an agent of its own, on a network of threads.
#pragma once

#include <dirent.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "engine/agent.h"
#include "engine/group.h"
#include "schedule/builder.h"

namespace thalweg::test {

using namespace std::chrono_literals;

// Threads of this process with the agent's name.
inline std::vector<std::string> agent_threads() {
    std::vector<std::string> found;
    DIR* const tasks = opendir("/proc/self/task");
    if (tasks == nullptr) return found;
    while (const dirent* entry = readdir(tasks)) {
        if (entry->d_name[0] == '.') continue;
        std::ifstream name(std::string("/proc/self/task/") + entry->d_name + "/comm");
        std::string text;
        if (std::getline(name, text) && text == "thalweg-agent") found.push_back(entry->d_name);
    }
    closedir(tasks);
    return found;
}

// The text after "field:" of a thread's status.
inline std::string status_of(const std::string& thread, const std::string& field) {
    std::ifstream status("/proc/self/task/" + thread + "/status");
    for (std::string line; std::getline(status, line);) {
        if (line.rfind(field + ":", 0) == 0)
            return line.substr(line.find_first_not_of(" \t", field.size() + 1));
    }
    return {};
}

inline long switches_of(const std::string& thread) {
    return std::atol(status_of(thread, "voluntary_ctxt_switches").c_str()) +
           std::atol(status_of(thread, "nonvoluntary_ctxt_switches").c_str());
}

// Waits without a call of ours; false: it took so long that it is not for want of a core.
template <class Condition>
bool in_time(Condition condition) {
    const std::uint64_t begin = now_ns();
    while (!condition()) {
        if (seconds(now_ns() - begin) > 100) return false;
        std::this_thread::sleep_for(200us);
    }
    return true;
}

// A ring of `rounds` messages: in each, a rank sends what it received last to the next one. out holds
// rounds + 1 pieces, the first of which is the rank's own; with `reduces`, a copy stands in between.
inline std::shared_ptr<const Schedule> ring(int rank, int size, int rounds, std::uint64_t bytes) {
    Builder builder(rank, size);
    for (int round = 0; round < rounds; ++round) {
        const auto at = static_cast<std::uint64_t>(round);
        builder.send((rank + 1) % size, {Buffer::out, at * bytes, bytes});
        builder.recv((rank + size - 1) % size, {Buffer::out, (at + 1) * bytes, bytes});
    }
    return std::make_shared<const Schedule>(std::move(builder).finish());
}

// One rank's operation: its schedule, its buffer, and what must be in it at the end.
struct RingRun {
    RingRun(DrivenChannel& channel, int rank, int size, int rounds, std::uint64_t bytes)
        : rank(rank),
          size(size),
          rounds(rounds),
          bytes(bytes),
          out((rounds + 1) * bytes),
          execution(channel.make(ring(rank, size, rounds, bytes))),
          operation(*execution),
          driven(channel) {}

    static std::uint8_t value(int rank, std::uint32_t number, std::uint64_t at) {
        return static_cast<std::uint8_t>(rank * 31 + number * 7 + at + 1);
    }
    Status start(std::uint32_t number) {
        this->number = number;
        std::fill(out.begin(), out.end(), std::uint8_t{0xee});
        for (std::uint64_t i = 0; i < bytes; ++i) out[i] = value(rank, number, i);
        return driven.start(operation, {nullptr, out.data(), {}}, number);
    }
    bool right() const {
        for (int round = 1; round <= rounds; ++round) {
            const int from = ((rank - round) % size + size) % size;
            for (std::uint64_t i = 0; i < bytes; ++i) {
                if (out[static_cast<std::uint64_t>(round) * bytes + i] != value(from, number, i))
                    return false;
            }
        }
        return true;
    }

    int rank, size, rounds;
    std::uint64_t bytes;
    std::uint32_t number = 0;
    Bytes out;
    std::unique_ptr<Execution> execution;
    Operation operation;
    DrivenChannel& driven;
};

struct AgentGroupOptions {
    int size = 2;
    int channels = 1;
    InprocOptions network;
    AgentOptions agent;
    bool with_agent = true;
};

// The counter stands still, or nearly, for a while, sooner or later: a thread that has nothing more to do may
// have had no core yet to find that out, and may come to it in the middle of the first while.
template <class Counter>
bool comes_to_rest(Counter counter, double most_per_second = 0, std::chrono::milliseconds length = 500ms) {
    return in_time([&] {
        const auto before = counter();
        const std::uint64_t begin = now_ns();
        std::this_thread::sleep_for(length);
        const auto moved = static_cast<double>(counter() - before);
        return moved <= most_per_second * seconds(now_ns() - begin);
    });
}

class AgentGroup {
  public:
    explicit AgentGroup(const AgentGroupOptions& options) {
        for (int rank = 0; rank < options.size; ++rank)
            agents_.push_back(options.with_agent ? std::make_unique<Agent>(options.agent) : nullptr);
        for (int channel = 0; channel < options.channels; ++channel) {
            networks_.push_back(std::make_unique<InprocNetwork>(options.size, options.network));
            for (int rank = 0; rank < options.size; ++rank) {
                channels_.push_back(std::make_unique<DrivenChannel>(
                    make_channel(networks_.back()->endpoint(rank), {}), agents_[rank].get()));
            }
        }
        size_ = options.size;
    }

    Agent& agent(int rank) { return *agents_[rank]; }
    DrivenChannel& channel(int rank, int number = 0) { return *channels_[number * size_ + rank]; }

  private:
    int size_ = 0;
    std::vector<std::unique_ptr<InprocNetwork>> networks_;
    std::vector<std::unique_ptr<Agent>> agents_;
    std::vector<std::unique_ptr<DrivenChannel>> channels_;
};

}  // namespace thalweg::test
