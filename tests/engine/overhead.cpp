// What the engine itself costs per step, over a transport that costs nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "cpu_time.h"
#include "engine/engine.h"
#include "schedule/builder.h"

namespace thalweg {
namespace {

// Every request is complete at the next poll; nothing moves.
class Void final : public Transport {
  public:
    Void() { capabilities_.max_message_bytes = 1 << 30, capabilities_.live_operations = 1 << 16; }
    const Capabilities& capabilities() const override { return capabilities_; }
    int rank() const override { return 0; }
    int size() const override { return 8; }
    Slot slots() const override { return static_cast<Slot>(slots_); }
    Status grow(Slot slots) override {
        slots_ = std::max<std::size_t>(slots_, slots);
        posted_.reserve(slots_);
        return Status::ok;
    }
    Status post_send(Slot slot, int, MessageId, const void*, std::size_t, SendMode) override {
        posted_.push_back(slot);
        return Status::ok;
    }
    Status post_recv(Slot slot, int, MessageId, void*, std::size_t) override {
        posted_.push_back(slot);
        return Status::ok;
    }
    Status progress(std::span<Slot> done, std::size_t& count) override {
        count = std::min(done.size(), posted_.size());
        std::copy(posted_.end() - static_cast<std::ptrdiff_t>(count), posted_.end(), done.begin());
        posted_.resize(posted_.size() - count);
        return Status::ok;
    }

  private:
    Capabilities capabilities_;
    std::size_t slots_ = 256;
    std::vector<Slot> posted_;
};

// The best of some runs, in nanoseconds of the processor per step.
double nanoseconds_per_step(const std::shared_ptr<const Schedule>& schedule, std::vector<std::uint8_t>& out) {
    Void transport;
    Execution execution(schedule, make_channel(transport, {}));
    double best = 1e9;
    // So many at a time that reading the clock does not show.
    const std::size_t steps = schedule->steps().size(), together = std::max<std::size_t>(1000 / steps, 1);
    std::uint32_t number = 0;
    for (std::size_t done = 0; done < std::max<std::size_t>(200'000, 20 * steps); done += together * steps) {
        const double begin = test::thread_cpu_seconds();
        for (std::size_t run = 0; run < together; ++run) {
            if (execution.start({nullptr, out.data(), {}}, number++) != Status::ok) return 1e9;
            while (execution.advance() == Status::in_progress) {
            }
        }
        best = std::min(best, test::thread_cpu_seconds() - begin);
    }
    return 1e9 * best / static_cast<double>(together * steps);
}

// The target is 100 ns; the bound leaves room for machines that are slow, shared or emulated, and for
// sanitizers.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr double bound_ns = 6000;
#else
constexpr double bound_ns = 600;
#endif

TEST(overhead, of_a_step_stays_small) {
    std::vector<std::uint8_t> out(1 << 16);
    struct Shape {
        const char* name;
        int pieces, children;
        bool forwards;
    };
    for (const Shape& shape :
         {Shape{"one message", 1, 0, false}, Shape{"chain of 1000 pieces", 1000, 1, true},
          Shape{"root of 7 children, 1000 pieces", 1000, 7, false},
          Shape{"tree of 3 children, 4000 pieces", 4000, 3, true}}) {
        Builder builder(0, 8);
        for (int piece = 0; piece < shape.pieces; ++piece) {
            const Slice slice{Buffer::out, static_cast<std::uint64_t>(piece) * 8, 8};
            if (shape.forwards || shape.children == 0) builder.recv(7, slice);
            for (int child = 1; child <= shape.children; ++child) builder.send(child, slice);
        }
        const auto schedule = std::make_shared<const Schedule>(std::move(builder).finish());
        const double cost_ns = nanoseconds_per_step(schedule, out);
        std::printf("%-34s %6.1f ns per step\n", shape.name, cost_ns);
        RecordProperty(shape.name, std::to_string(cost_ns));
        EXPECT_LT(cost_ns, bound_ns) << shape.name;
    }
}

}  // namespace
}  // namespace thalweg
