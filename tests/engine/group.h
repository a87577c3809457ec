// All ranks of a group in one thread: every rank's engine is advanced in random order, so a run is a function
// of its seed, and a group that is stuck is found instead of hanging the test.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "engine/channel.h"
#include "engine/engine.h"
#include "transport/inproc/inproc.h"

namespace thalweg::test {

using Bytes = std::vector<std::uint8_t>;

struct GroupOptions {
    InprocOptions network;
    Limits limits;
    std::uint64_t seed = 1;
    // Puts a layer between each rank's engine and the network; null: none. The result lives as long as the
    // group.
    std::function<std::unique_ptr<Transport>(Transport&)> wrap;
};

class Group {
  public:
    Group(int size, const GroupOptions& options) : network_(size, options.network), random_(options.seed) {
        for (int rank = 0; rank < size; ++rank) {
            Transport* transport = &network_.endpoint(rank);
            if (options.wrap) {
                wrapped_.push_back(options.wrap(*transport));
                transport = wrapped_.back().get();
            }
            channels_.push_back(make_channel(*transport, options.limits));
        }
    }

    int size() const { return static_cast<int>(channels_.size()); }
    const std::shared_ptr<Channel>& channel(int rank) { return channels_[rank]; }
    InprocNetwork& network() { return network_; }
    std::mt19937_64& random() { return random_; }

    // Advances the executions in random order until all are done. Empty, or one sentence that says what went
    // wrong.
    std::string run(std::vector<Execution*> executions) {
        // With delays a message is in sight after at most delay_polls polls; this is far beyond any wait that
        // ends.
        constexpr int quiet_rounds = 20000;
        for (int quiet = 0; quiet < quiet_rounds;) {
            std::shuffle(executions.begin(), executions.end(), random_);
            ++quiet;
            for (auto& execution : executions) {
                const Status status = execution->advance();
                if (failed(status)) return std::string("advance: ") + describe(status);
                if (status == Status::ok) execution = nullptr, quiet = 0;
            }
            std::erase(executions, nullptr);
            if (executions.empty()) return {};
        }
        return "stuck: " + std::to_string(executions.size()) + " executions make no progress";
    }

  private:
    InprocNetwork network_;
    std::mt19937_64 random_;
    std::vector<std::unique_ptr<Transport>> wrapped_;
    std::vector<std::shared_ptr<Channel>> channels_;
};

// The in, out and scratch of every rank, run step by step in the order of one global list: what a schedule
// that the builder makes must leave behind, however its steps are interleaved.
struct Memory {
    std::vector<Bytes> in, out, scratch;
};

}  // namespace thalweg::test
