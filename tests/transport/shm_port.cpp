// Two ports of the shm transport in one process, as two processes have them: who sleeps and who is woken, who
// meets, and what happens where the system lacks memory.
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <thread>

#include "base/clock.h"
#include "shm_two_ports.h"
#include "transport/composite/composite.h"

// Of what this program's own code asks for; shm_ready.cpp sets it too.
thread_local bool memory_lacks = false;
thread_local std::size_t memory_asked_bytes = 0;  // in all
namespace {
thread_local int memory_for = -1;  // so many requests more, before it lacks; -1: for all

bool is_there() {
    if (memory_for > 0) --memory_for;
    return !memory_lacks && memory_for != 0;
}
}  // namespace

void* operator new(std::size_t bytes) {
    memory_asked_bytes += bytes;
    void* const memory = is_there() ? std::malloc(bytes != 0 ? bytes : 1) : nullptr;
    if (memory == nullptr) throw std::bad_alloc();
    return memory;
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
    return is_there() ? std::malloc(bytes) : nullptr;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace thalweg {
namespace {

constexpr std::size_t large = std::size_t{1} << 20;

class shm_port : public OpenPorts {
  protected:
    void SetUp() override { open_ports({}); }
    // Polls until a slot of `channel` completes; `peer` copies its share.
    static void finish(Transport& channel, Transport& peer) {
        std::size_t count = 0, ignored = 0;
        Slot done[1];
        const std::uint64_t until_ns = now_ns() + longest_ns;
        while (count == 0 && now_ns() < until_ns) {
            ASSERT_EQ(channel.progress(done, count), Status::ok);
            if (count == 0) {
                ASSERT_EQ(peer.progress({}, ignored), Status::ok);
            }
        }
        ASSERT_EQ(count, 1u);
    }
    static void arm(Transport& channel) {
        std::size_t count = 0;
        const std::uint64_t until_ns = now_ns() + longest_ns;
        while (channel.arm() != Status::ok && now_ns() < until_ns) {
            ASSERT_EQ(channel.progress({}, count), Status::ok);
        }
        ASSERT_EQ(channel.arm(), Status::ok);
    }
    static void elsewhere(const std::function<void()>& action) { std::thread(action).join(); }
    // Whether a thread that sleeps for this channel would wake.
    static bool rings(const Transport& channel) {
        pollfd descriptor{channel.wait_descriptor(), POLLIN, 0};
        return ::poll(&descriptor, 1, 0) > 0;
    }

    // Until a message waits for room in the ring from the first to the second.
    void fill_ring(Transport& from) {
        Slot done[1];
        std::size_t found = 0;
        while (ports[0]->has_left()) {
            ASSERT_EQ(from.post_send(0, 1, {1, 0}, fill, sizeof fill, SendMode::buffered), Status::ok);
            if (ports[0]->has_left()) {
                ASSERT_EQ(from.progress(done, found), Status::ok);
            }
        }
    }

    char fill[1000] = {};
};

// A thread that looks whether it may sleep, and finds that it may not, has not taken the bell from another
// one that sleeps already and has not had a core since it was rung.
TEST_F(shm_port, who_may_not_sleep_leaves_the_bell_to_who_sleeps) {
    const auto slept_for = channel(0, 0), led = channel(0, 1), from = channel(1, 0);
    const std::string sent(large, 'x');
    std::string received(large, ' ');
    ASSERT_EQ(slept_for->post_recv(0, 1, {}, received.data(), large), Status::ok);
    elsewhere([&] { arm(*slept_for); });
    EXPECT_FALSE(rings(*led));
    ASSERT_EQ(from->post_send(0, 0, {}, sent.data(), large, SendMode::buffered), Status::ok);
    EXPECT_TRUE(rings(*led));
    EXPECT_EQ(led->arm(), Status::in_progress);
    EXPECT_TRUE(rings(*led)) << "the sleeper does not hear of it any more";
    finish(*slept_for, *from);
    EXPECT_TRUE(received == sent);
}

// And what it has rung for before does not keep it from ringing for the next.
TEST_F(shm_port, who_may_not_sleep_rings_for_all_that_it_finds) {
    const auto slept_for = channel(0, 0), led = channel(0, 1), from = channel(1, 0), other = channel(1, 1);
    const std::string sent(large, 'x');
    std::string received(large, ' '), for_itself(large, ' ');
    elsewhere([&] { arm(*slept_for); });
    ASSERT_EQ(led->post_recv(0, 1, {}, for_itself.data(), large), Status::ok);
    ASSERT_EQ(slept_for->post_recv(0, 1, {}, received.data(), large), Status::ok);
    ASSERT_EQ(other->post_send(0, 0, {}, sent.data(), large, SendMode::buffered), Status::ok);
    finish(*led, *other);
    EXPECT_TRUE(rings(*led)) << "a copy was begun that it may not be there to end";
    // The sleeper has had no core, and the next copy is for it.
    ASSERT_EQ(from->post_send(0, 0, {}, sent.data(), large, SendMode::buffered), Status::ok);
    EXPECT_EQ(led->arm(), Status::in_progress);
    std::size_t count = 0;
    ASSERT_EQ(led->progress({}, count), Status::ok);
    EXPECT_TRUE(rings(*led)) << "the copy stands still";
    finish(*slept_for, *from);
    EXPECT_TRUE(received == sent && for_itself == sent);
}

// Each of two threads that meet a process at the same time would take a ring for it.
TEST(shm_meeting, two_threads_that_meet_a_process_take_one_ring) {
    for (int round = 0; round < 50; ++round) {
        std::unique_ptr<ShmPort> port, with_one_ring;
        std::string why;
        ShmOptions options;
        ASSERT_EQ(ShmPort::open(options, port, why), Status::ok) << why;
        options.process = options.peers = 1;
        ASSERT_EQ(ShmPort::open(options, with_one_ring, why), Status::ok) << why;
        std::atomic<int> there{0};
        Status met[2];
        std::string reasons[2];
        const auto meet = [&](int i) {
            for (++there; there != 2;) sched_yield();
            met[i] = port->meet(1, with_one_ring->address(), reasons[i]);
        };
        std::thread first(meet, 0), second(meet, 1);
        first.join();
        second.join();
        ASSERT_EQ(met[0], Status::ok) << reasons[0];
        ASSERT_EQ(met[1], Status::ok) << reasons[1];
    }
}

// Else it would have no other writer.
TEST(shm_meeting, a_ring_is_not_lost_where_memory_lacks) {
    std::unique_ptr<ShmPort> port, with_one_ring;
    std::string why;
    ShmOptions options;
    ASSERT_EQ(ShmPort::open(options, port, why), Status::ok) << why;
    options.process = options.peers = 1;
    ASSERT_EQ(ShmPort::open(options, with_one_ring, why), Status::ok) << why;
    // The first request is not met, the second, and so on, until there is none that is not.
    Status met = Status::out_of_memory;
    int requests = 1;
    for (; requests < 100 && met == Status::out_of_memory; ++requests) {
        memory_for = requests;
        met = port->meet(1, with_one_ring->address(), why);
        memory_for = -1;
    }
    EXPECT_EQ(met, Status::ok) << "all rings are taken: " << why;
    EXPECT_GT(requests, 3) << "nothing was lacking";
}

// The kernel needs memory for a copy between processes. Where it has none, the bytes come through the ring.
TEST_F(shm_port, a_copy_that_the_kernel_has_no_memory_for_goes_through_the_ring) {
    const auto to = channel(0, 0), from = channel(1, 0);
    const std::string sent(large, 'x');
    std::string received(large, ' ');
    bool filtered = false;
    elsewhere([&] {
        sock_filter lines[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                               BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
                               BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 0, 1),
                               BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOMEM),
                               BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
        const sock_fprog program{std::size(lines), lines};
        filtered = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
                   prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
        if (!filtered) return;
        ASSERT_EQ(to->post_recv(0, 1, {}, received.data(), large), Status::ok);
        ASSERT_EQ(from->post_send(0, 0, {}, sent.data(), large, SendMode::buffered), Status::ok);
        finish(*to, *from);
    });
    if (!filtered) GTEST_SKIP() << "no filter of system calls can be set here";
    EXPECT_TRUE(received == sent);
}

// A frame for which there is no memory stays where it is, and its receive with it: it is taken later.
TEST_F(shm_port, messages_are_taken_when_there_is_memory_again) {
    constexpr std::uint32_t count = 16;
    ASSERT_EQ(ports[0]->set_protocol("cma_put"), Status::ok);  // the receiver answers
    for (const std::size_t bytes : {std::size_t{100}, large}) {
        const auto to = channel(0, 0), from = channel(1, 0);
        // The receiver has no room for answers, and needs memory to keep them.
        fill_ring(*to);
        Slot done[1];
        std::size_t found = 0;
        std::string sent[count], received[count];
        for (std::uint32_t i = 0; i < count; ++i) {
            sent[i].assign(bytes, static_cast<char>('a' + i));
            received[i].assign(bytes, ' ');
            ASSERT_EQ(to->post_recv(1 + i, 1, {0, i}, received[i].data(), bytes), Status::ok);
            ASSERT_EQ(from->post_send(1 + i, 0, {0, i}, sent[i].data(), bytes, SendMode::synchronous),
                      Status::ok);
        }
        std::size_t all = 0;
        const auto poll = [&] {
            ASSERT_EQ(to->progress(done, found), Status::ok);
            all += found;
        };
        memory_lacks = true;
        for (int polls = 0; polls < 10; ++polls) poll();
        memory_lacks = false;
        EXPECT_LT(all, count) << "nothing was lacking";
        const std::uint64_t until_ns = now_ns() + longest_ns;
        while (all < count + 1 && now_ns() < until_ns) {
            poll();
            ASSERT_EQ(from->progress(done, found), Status::ok);
        }
        EXPECT_EQ(all, count + 1) << "the receives, and the last of what filled the ring";
        for (std::uint32_t i = 0; i < count; ++i) EXPECT_TRUE(received[i] == sent[i]) << i;
    }
}

// Where neither the ring nor memory has room for what is said at the end of a copy, the copy waits.
TEST_F(shm_port, copies_end_when_there_is_memory_again) {
    constexpr std::uint32_t acknowledged = 300, copies = 3;
    ASSERT_EQ(ports[0]->set_protocol("cma_get"), Status::ok);  // the receiver copies
    const auto to = channel(0, 0), from = channel(1, 0, 2 * acknowledged);
    fill_ring(*to);
    const std::string sent(large, 'x');
    std::string received[copies];
    Slot done[64];
    std::size_t found = 0, all = 0;
    const auto poll = [&] {
        ASSERT_NO_THROW(to->progress(done, found));
        all += found;
    };
    for (std::uint32_t i = 0; i < copies; ++i) {
        received[i].assign(large, ' ');
        ASSERT_EQ(from->post_send(i, 0, {2, i}, sent.data(), large, SendMode::buffered), Status::ok);
    }
    // As many acknowledgements wait as there was room for beforehand, and more.
    char byte = ' ';
    for (std::uint32_t i = 0; i < acknowledged; ++i) {
        ASSERT_EQ(to->post_recv(1, 1, {3, i}, &byte, 1), Status::ok);
        ASSERT_EQ(from->post_send(copies + i, 0, {3, i}, "y", 1, SendMode::synchronous), Status::ok);
        for (const std::size_t before = all; all == before;) poll();
    }
    for (std::uint32_t i = 0; i < copies; ++i)
        ASSERT_EQ(to->post_recv(2 + i, 1, {2, i}, received[i].data(), large), Status::ok);
    memory_lacks = true;
    for (int polls = 0; polls < 1000; ++polls) poll();
    memory_lacks = false;
    const std::uint64_t until_ns = now_ns() + longest_ns;
    while (all < acknowledged + copies + 1 && now_ns() < until_ns) {
        poll();
        ASSERT_EQ(from->progress(done, found), Status::ok);
    }
    EXPECT_EQ(all, acknowledged + copies + 1) << "the receives, and the last of what filled the ring";
    for (std::uint32_t i = 0; i < copies; ++i) EXPECT_TRUE(received[i] == sent) << i;
}

// A channel that ends without memory to keep what it has still to send: nobody reads that afterwards, and the
// other channels go on.
TEST_F(shm_port, a_channel_ends_without_memory) {
    auto from = channel(0, 0);
    const auto other = channel(0, 1), to = channel(1, 1);
    const std::string sent(large, 'x');
    fill_ring(*from);
    ASSERT_EQ(from->post_send(2, 1, {2, 0}, sent.data(), large, SendMode::buffered), Status::ok);
    memory_lacks = true;
    from.reset();
    memory_lacks = false;
    std::memset(fill, 0, sizeof fill);
    char byte = ' ';
    ASSERT_EQ(to->post_recv(0, 0, {}, &byte, 1), Status::ok);
    ASSERT_EQ(other->post_send(0, 1, {}, "y", 1, SendMode::buffered), Status::ok);
    finish(*to, *other);
    EXPECT_EQ(byte, 'y');
}

// A peer that does not answer for long may send the rest of a message that was given up: it is nobody's.
class late_pieces : public shm_port, public testing::WithParamInterface<bool> {};
INSTANTIATE_TEST_SUITE_P(ends, late_pieces, testing::Bool());

TEST_P(late_pieces, what_comes_for_a_receive_that_was_given_up_is_written_nowhere) {
    const bool channel_lives = GetParam();
    ASSERT_EQ(ports[0]->set_protocol("eager"), Status::ok);
    auto to = channel(0, 0);
    const auto from = channel(1, 0), other = channel(0, 1), other_from = channel(1, 1);
    const std::string sent(large, 'x'), untouched(large, ' ');
    std::string received = untouched;
    std::size_t count = 0;
    ASSERT_EQ(to->post_recv(0, 1, {}, received.data(), large), Status::ok);
    ASSERT_EQ(from->post_send(0, 0, {}, sent.data(), large, SendMode::buffered), Status::ok);
    ASSERT_EQ(to->progress({}, count), Status::ok);  // the answer is on its way
    const std::uint64_t begin_ns = now_ns();
    if (channel_lives)
        to->give_up();
    else
        to.reset();
    EXPECT_GE(now_ns() - begin_ns, 1'000'000'000u) << "the peer could have answered";
    // The rest, and another message behind it.
    char byte = ' ';
    ASSERT_EQ(other->post_recv(0, 1, {}, &byte, 1), Status::ok);
    while (from->progress({}, count) == Status::ok && ports[1]->copies_left() != 0)
        ASSERT_EQ(other->progress({}, count), Status::ok);
    ASSERT_EQ(other_from->post_send(0, 0, {}, "y", 1, SendMode::buffered), Status::ok);
    finish(*other, *from);
    EXPECT_EQ(byte, 'y');
    EXPECT_TRUE(received == untouched);
}

// A network over which nothing comes, and which fails when it is told to.
class Failing final : public Transport {
  public:
    explicit Failing(const bool& fails) : fails_(fails) {
        capabilities_.max_message_bytes = large;
        capabilities_.live_operations = 1 << 16;
        capabilities_.wakeup_descriptor = capabilities_.any_thread = true;
    }
    ~Failing() override { close(descriptor_); }
    const Capabilities& capabilities() const override { return capabilities_; }
    int rank() const override { return 0; }
    int size() const override { return 2; }
    Slot slots() const override { return 64; }
    Status grow(Slot) override { return Status::ok; }
    Status post_send(Slot, int, MessageId, const void*, std::size_t, SendMode) override {
        return Status::unsupported;
    }
    Status post_recv(Slot, int, MessageId, void*, std::size_t) override { return Status::unsupported; }
    Status progress(std::span<Slot>, std::size_t& count) override {
        count = 0;
        return fails_ ? Status::transport_failed : Status::ok;
    }
    int wait_descriptor() const override { return descriptor_; }
    Status arm() override { return Status::ok; }

  private:
    Capabilities capabilities_;
    const bool& fails_;
    const int descriptor_ = eventfd(0, EFD_CLOEXEC);
};

// Where the network of a transport of two fails, its part inside the host is polled no more either: what
// still comes for it must not keep those who sleep for other channels awake for ever.
TEST_F(shm_port, half_of_what_has_failed_does_not_ring_for_ever) {
    bool fails = false;
    Junction junction;
    CompositeParts parts;
    parts.inside = channel(0, 0);
    parts.between = std::make_unique<Failing>(fails);
    parts.is_near = std::make_shared<const std::vector<bool>>(std::vector{true, true});
    parts.junction = &junction;
    std::unique_ptr<Transport> failing;
    ASSERT_EQ(make_composite(std::move(parts), failing), Status::ok);
    const auto other = channel(0, 1), from = channel(1, 0);
    char byte = 0;
    std::size_t count = 0;
    ASSERT_EQ(failing->post_recv(0, 1, {}, &byte, 1), Status::ok);
    elsewhere([&] { arm(*failing); });
    fails = true;
    Slot done[1];
    EXPECT_EQ(failing->progress(done, count), Status::transport_failed);
    EXPECT_TRUE(rings(*other)) << "so that the sleeper hears that it has failed";
    ASSERT_EQ(from->post_send(0, 0, {}, "x", 1, SendMode::buffered), Status::ok);
    ASSERT_EQ(other->progress({}, count), Status::ok);
    arm(*other);
}

}  // namespace
}  // namespace thalweg
