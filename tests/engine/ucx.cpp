// The engine over libucp: the schedules and concurrent operations that the in-process network is tested with,
// all ranks in one thread, each with a port of its own.
#if __has_include(<ucp/api/ucp.h>)
#include "transport/ucx/ucx.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "group.h"
#include "random_schedules.h"

namespace thalweg::test {
namespace {

class UcxGroupOfRanks {
  public:
    UcxGroupOfRanks(int size, const std::string& transports, const Limits& limits, Slot slots,
                    std::uint64_t seed)
        : random_(seed) {
        ports_.resize(static_cast<std::size_t>(size));
        offsets_.push_back(0);
        for (int rank = 0; rank < size; ++rank) {
            UcxOptions options;
            options.process = static_cast<std::uint32_t>(rank);
            options.processes = static_cast<std::uint32_t>(size);
            options.transports = transports;
            std::string why;
            EXPECT_EQ(UcxPort::open(options, ports_[rank], why), Status::ok) << why;
            if (!ports_[rank]) return;
            const auto address = ports_[rank]->address();
            table_.insert(table_.end(), address.begin(), address.end());
            offsets_.push_back(table_.size());
        }
        for (int rank = 0; rank < size; ++rank) {
            std::string why;
            EXPECT_EQ(ports_[rank]->learn({table_, offsets_}, why), Status::ok) << why;
            ::thalweg::UcxGroup group;
            group.rank = rank;
            group.size = size;
            group.slots = slots;
            transports_.emplace_back();
            EXPECT_EQ(ports_[rank]->make_channel(group, transports_.back()), Status::ok);
            channels_.push_back(make_channel(*transports_.back(), limits));
        }
    }
    // Ports that close wait for each other's answers, as those of a job do.
    ~UcxGroupOfRanks() {
        channels_.clear();
        transports_.clear();
        std::vector<std::thread> closing;
        for (auto& port : ports_) closing.emplace_back([&port] { port.reset(); });
        for (std::thread& thread : closing) thread.join();
    }

    bool ready() const { return !channels_.empty(); }
    const std::shared_ptr<Channel>& channel(int rank) { return channels_[rank]; }

    std::string run(std::vector<Execution*> executions) {
        const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
        while (!executions.empty()) {
            std::shuffle(executions.begin(), executions.end(), random_);
            for (auto& execution : executions) {
                const Status status = execution->advance();
                if (failed(status)) return std::string("advance: ") + describe(status);
                if (status == Status::ok) execution = nullptr;
            }
            std::erase(executions, nullptr);
            if (std::chrono::steady_clock::now() > deadline) return "stuck";
        }
        return {};
    }

  private:
    std::mt19937_64 random_;
    std::vector<std::byte> table_;
    std::vector<std::uint64_t> offsets_;
    std::vector<std::unique_ptr<UcxPort>> ports_;
    std::vector<std::unique_ptr<Transport>> transports_;
    std::vector<std::shared_ptr<Channel>> channels_;
};

// transports, in_flight, credit_bytes
class OverUcx : public testing::TestWithParam<std::tuple<const char*, std::uint32_t, std::uint64_t>> {};

TEST_P(OverUcx, random_schedules_leave_what_their_sequential_order_leaves) {
    const auto [transports, in_flight, credit_bytes] = GetParam();
    Limits limits;
    limits.in_flight = in_flight;
    limits.credit_bytes = credit_bytes;
    for (int size = 1; size <= 5; size += 2) {
        UcxGroupOfRanks group(size, transports, limits, in_flight, 5);
        ASSERT_TRUE(group.ready());
        std::uint32_t number = 0xfffffffeu;
        // Blocks from a few bytes (eager) to far beyond the rendezvous threshold.
        for (const auto& [steps, block_bytes] :
             {std::pair{60, 300}, std::pair{40, 20'000}, std::pair{25, 700'000}}) {
            const auto random = RandomGroup::make(size, steps, block_bytes, 77 + size);
            const auto schedules = random.build();
            std::vector<std::unique_ptr<Execution>> executions;
            for (int rank = 0; rank < size; ++rank) {
                executions.push_back(std::make_unique<Execution>(schedules[rank], group.channel(rank)));
            }
            for (int run = 0; run < 3; ++run, ++number) {
                Memory memory = random.fill(number);
                Memory expected = memory;
                random.play(expected);
                std::vector<Execution*> started;
                for (int rank = 0; rank < size; ++rank) {
                    const Bindings bindings{
                        memory.in[rank].data(), memory.out[rank].data(), {&RandomGroup::combine, nullptr, 1}};
                    ASSERT_EQ(executions[rank]->start(bindings, number), Status::ok);
                    started.push_back(executions[rank].get());
                }
                ASSERT_EQ(group.run(started), "");
                ASSERT_EQ(memory.out, expected.out) << size << " ranks, run " << run;
            }
        }
    }
}

TEST_P(OverUcx, concurrent_operations_of_one_channel) {
    const auto [transports, in_flight, credit_bytes] = GetParam();
    Limits limits;
    limits.in_flight = in_flight;
    limits.credit_bytes = credit_bytes;
    constexpr int size = 4, operations = 6;
    UcxGroupOfRanks group(size, transports, limits, 4, 9);
    ASSERT_TRUE(group.ready());
    std::vector<RandomGroup> random;
    std::vector<Memory> memory, expected;
    std::vector<std::unique_ptr<Execution>> executions;
    std::vector<Execution*> started;
    for (int i = 0; i < operations; ++i) {
        random.push_back(RandomGroup::make(size, 40, 50'000, 10 + i));
        memory.push_back(random[i].fill(i));
        expected.push_back(memory[i]);
        random[i].play(expected[i]);
        const auto schedules = random[i].build();
        for (int rank = 0; rank < size; ++rank) {
            executions.push_back(std::make_unique<Execution>(schedules[rank], group.channel(rank)));
            const Bindings bindings{
                memory[i].in[rank].data(), memory[i].out[rank].data(), {&RandomGroup::combine, nullptr, 1}};
            ASSERT_EQ(executions.back()->start(bindings, i), Status::ok);
        }
    }
    for (auto& execution : executions) started.push_back(execution.get());
    ASSERT_EQ(group.run(started), "");
    for (int i = 0; i < operations; ++i) ASSERT_EQ(memory[i].out, expected[i].out) << "operation " << i;
}

INSTANTIATE_TEST_SUITE_P(engine, OverUcx,
                         testing::Combine(testing::Values("tcp", "self,sm,tcp"), testing::Values(2u, 64u),
                                          testing::Values(std::uint64_t{5000}, std::uint64_t{1} << 20)));

}  // namespace
}  // namespace thalweg::test
#endif
