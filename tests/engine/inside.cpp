// A thread that has stopped listening to packets still hears the ranks of its host.
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "base/clock.h"
#include "engine/agent.h"
#include "engine/driven.h"
#include "engine/receiving.h"
#include "schedule/builder.h"
#include "transport/packing/packing.h"

namespace thalweg {
namespace {

constexpr std::uint64_t ms = 1'000'000;
constexpr std::size_t crossing_bytes = 1 << 20, near_bytes = 64;
constexpr int far_peer = 1, near_peer = 2;
constexpr int enough_arms = 20;

// From the far peer a message comes every 20 ms, and packets all the time; from the near one when it is told.
class TwoKinds final : public test::Receiving {
  public:
    TwoKinds() : Receiving(3) {
        const std::uint64_t one = 1;
        EXPECT_EQ(write(packets_, &one, sizeof one), static_cast<ssize_t>(sizeof one));
    }
    ~TwoKinds() override {
        close(packets_);
        close(near_);
    }
    Status post_recv(Slot slot, int peer, MessageId, void*, std::size_t) override {
        (peer == far_peer ? far_slots_ : near_slots_).push_back(slot);
        if (due_ns_ == 0) due_ns_ = now_ns() + 20 * ms;
        return Status::ok;
    }
    Status progress(std::span<Slot> done, std::size_t& count) override {
        const std::uint64_t time_ns = now_ns();
        count = 0;
        if (!far_slots_.empty() && time_ns >= due_ns_) {
            done[count++] = far_slots_.front();
            far_slots_.erase(far_slots_.begin());
            due_ns_ = time_ns + 20 * ms;
        }
        std::uint64_t rings = 0;
        if (read(near_, &rings, sizeof rings) > 0)
            for (; rings != 0; --rings) ready_.push_back(time_ns);
        while (!ready_.empty() && !near_slots_.empty()) {
            done[count++] = near_slots_.front();
            near_slots_.erase(near_slots_.begin());
            ready_.pop_back();
        }
        return Status::ok;
    }
    int wait_descriptor() const override { return packets_; }
    Status arm() override {
        ++arms;
        return Status::ok;
    }
    bool crosses(int peer) const override { return peer == far_peer; }
    int inside_descriptor() const override { return near_; }
    Status arm_inside() override {
        ++inside_arms;
        return others_turn ? Status::in_progress : Status::ok;
    }

    // Once the thread that waits has listened to its host often enough.
    void near_speaks() const {
        while (inside_arms <= enough_arms) usleep(100);
        const std::uint64_t one = 1;
        EXPECT_EQ(write(near_, &one, sizeof one), static_cast<ssize_t>(sizeof one));
    }
    std::atomic<int> arms{0}, inside_arms{0};
    bool others_turn = false;  // something inside is another thread's to look at, which has no core yet

  private:
    const int packets_ = eventfd(0, EFD_NONBLOCK), near_ = eventfd(0, EFD_NONBLOCK);
    std::vector<Slot> far_slots_, near_slots_;
    std::vector<std::uint64_t> ready_;
    std::uint64_t due_ns_ = 0;
};

// Four messages from afar, of which the first ones teach how fast they come, and one from the host.
std::shared_ptr<const Schedule> both_kinds() {
    Builder builder(0, 3);
    for (std::uint64_t i = 0; i < 4; ++i)
        builder.recv(far_peer, {Buffer::out, i * crossing_bytes, crossing_bytes});
    builder.recv(near_peer, {Buffer::out, 4 * crossing_bytes, near_bytes});
    return std::make_shared<const Schedule>(std::move(builder).finish());
}

// Packets that are always there wake nobody who knows when the next message comes; it listens to its host
// instead of sleeping blindly.
void expect_heard(TwoKinds& transport) {
    EXPECT_GT(transport.inside_arms.load(), enough_arms);
    // Listening to packets, it would be woken without a pause: some ten thousand times.
    EXPECT_LT(transport.arms.load(), 5000);
}

TEST(inside, a_waiting_thread_hears_its_host_while_it_ignores_packets) {
    TwoKinds transport;
    std::vector<std::byte> out(4 * crossing_bytes + near_bytes);
    DrivenChannel channel(make_channel(transport, {}), nullptr);
    const auto execution = channel.make(both_kinds());
    Operation operation(*execution);
    WaitStatistics waited;
    std::thread neighbour([&] { transport.near_speaks(); });
    EXPECT_EQ(channel.run(operation, {nullptr, out.data(), {}}, 0, WaitPolicy::sleep, waited), Status::ok);
    neighbour.join();
    expect_heard(transport);
}

TEST(inside, so_does_the_agent) {
    TwoKinds transport;
    std::vector<std::byte> out(4 * crossing_bytes + near_bytes);
    Agent agent{AgentOptions()};
    {
        DrivenChannel channel(make_channel(transport, {}), &agent);
        const auto execution = channel.make(both_kinds());
        Operation operation(*execution);
        ASSERT_EQ(channel.start(operation, {nullptr, out.data(), {}}, 0), Status::ok);
        transport.near_speaks();
        while (operation.pending()) usleep(1000);
        EXPECT_EQ(operation.status(), Status::ok);
    }
    expect_heard(transport);
}

// It does not keep the core from the thread whose turn it is.
TEST(inside, an_agent_that_may_not_listen_leaves_its_core) {
    TwoKinds transport;
    transport.others_turn = true;
    std::vector<std::byte> out(4 * crossing_bytes + near_bytes);
    Agent agent{AgentOptions()};
    DrivenChannel channel(make_channel(transport, {}), &agent);
    const auto execution = channel.make(both_kinds());
    Operation operation(*execution);
    ASSERT_EQ(channel.start(operation, {nullptr, out.data(), {}}, 0), Status::ok);
    transport.near_speaks();
    while (operation.pending()) usleep(1000);
    EXPECT_EQ(operation.status(), Status::ok);
    const auto futex = static_cast<std::size_t>(SleeperKind::futex);
    EXPECT_GT(2 * agent.statistics().uses[futex].sleeps, static_cast<std::uint64_t>(transport.inside_arms));
}

constexpr std::uint64_t face_bytes = 20 << 20;

// From the far peer a face comes every 40 ms, the last one before its time, and packets all the time. What
// the agent has counted is noted when the last one comes.
class Faces final : public test::Receiving {
  public:
    explicit Faces(Agent& agent) : Receiving(3), agent_(agent) {
        const std::uint64_t one = 1;
        EXPECT_EQ(write(packets_, &one, sizeof one), static_cast<ssize_t>(sizeof one));
    }
    ~Faces() override { close(packets_); }
    Status post_recv(Slot slot, int, MessageId, void*, std::size_t) override {
        slots_.push_back(slot);
        if (due_ns_ == 0) due_ns_ = now_ns() + 40 * ms;
        return Status::ok;
    }
    Status progress(std::span<Slot> done, std::size_t& count) override {
        count = 0;
        if (slots_.empty() || now_ns() < due_ns_) return Status::ok;
        done[count++] = slots_.front();
        slots_.erase(slots_.begin());
        due_ns_ = now_ns() + (slots_.size() == 1 ? 20 : 40) * ms;
        if (slots_.empty()) before = agent_.statistics();
        return Status::ok;
    }
    int wait_descriptor() const override { return packets_; }
    Status arm() override { return Status::ok; }

    AgentStatistics before;

  private:
    Agent& agent_;
    const int packets_ = eventfd(0, EFD_NONBLOCK);
    std::vector<Slot> slots_;
    std::uint64_t due_ns_ = 0;
};

// Nobody inside is listened to here.
TEST(inside, an_agent_with_a_face_to_unpack_sleeps_for_no_packet) {
    Agent agent{AgentOptions()};
    {
        auto faces = std::make_unique<Faces>(agent);
        Faces& network = *faces;
        const std::unique_ptr<Transport> transport = with_packing(std::move(faces));
        std::vector<std::byte> elements(2 * face_bytes), packed(3 * face_bytes);
        const auto layout =
            std::make_shared<const Layout>(Layout::strided(face_bytes / 64, 64, 128, 2 * face_bytes));
        ASSERT_EQ(transport->stand_in({&packed[2 * face_bytes], face_bytes, layout, elements.data(), false}),
                  Status::ok);
        DrivenChannel channel(make_channel(*transport, {}), &agent);
        Builder builder(0, 3);
        for (std::uint64_t i = 0; i < 3; ++i)
            builder.recv(far_peer, {Buffer::out, i * face_bytes, face_bytes});
        const auto execution = channel.make(std::make_shared<const Schedule>(std::move(builder).finish()));
        Operation operation(*execution);
        ASSERT_EQ(channel.start(operation, {nullptr, packed.data(), {}}, 0), Status::ok);
        while (operation.pending()) usleep(1000);
        const AgentStatistics after = agent.statistics(), &before = network.before;
        EXPECT_GT(before.merged_sleeps, 0u) << "it knows when messages come";
        EXPECT_EQ(after.merged_sleeps, before.merged_sleeps);
        EXPECT_GE(after.passes - before.passes, face_bytes / (256 << 10)) << "by the agent";
    }
}

}  // namespace
}  // namespace thalweg
