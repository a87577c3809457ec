// Sums are computed as the thread that starts them computes, whoever drives their operation.
#include "base/float_modes.h"

#include <gtest/gtest.h>

#include <cfenv>
#include <cstring>
#include <limits>
#include <thread>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "engine/agent_group.h"

namespace thalweg {
namespace {

using test::AgentGroup;
using test::AgentGroupOptions;
using test::in_time;

// Of one element. The compiler can compute the sum neither beforehand nor elsewhere.
template <typename T>
void add(const void* left, const void* right, void* target, std::size_t, void*) {
    T a, b;
    std::memcpy(&a, left, sizeof a);
    std::memcpy(&b, right, sizeof b);
    volatile T from_left = a, from_right = b;
    volatile T computed = from_left + from_right;
    const T sum = computed;
    std::memcpy(target, &sum, sizeof sum);
}

std::shared_ptr<const Schedule> made(Builder& builder) {
    return std::make_shared<const Schedule>(std::move(builder).finish());
}
std::shared_ptr<const Schedule> addition(std::uint64_t bytes) {
    Builder builder(0, 2);
    const Slice arrived = builder.scratch(bytes);
    builder.recv(1, arrived);
    builder.reduce({Buffer::out, 0, bytes}, arrived, Side::right);
    return made(builder);
}
std::shared_ptr<const Schedule> message(std::uint64_t bytes) {
    Builder builder(1, 2);
    builder.send(0, {Buffer::in, 0, bytes});
    return made(builder);
}

// Rank 0 adds to its number that of rank 1, which comes when the sum is ended, so that it is added then.
template <typename T>
class Sum {
  public:
    explicit Sum(bool with_agent = false, bool rounds = true)
        : with_agent_(with_agent),
          rounds_(rounds),
          group_(options(with_agent)),
          adds_(group_.channel(0).make(addition(sizeof(T)))),
          sends_(group_.channel(1).make(message(sizeof(T)))),
          addition_(*adds_),
          message_(*sends_) {
        // Its thread is made by this one, and has its modes.
        if (with_agent) EXPECT_EQ(group_.agent(0).start(), Status::ok);
    }

    void start(T own, T other) {
        out_ = own;
        in_ = other;
        Bindings bindings{nullptr, &out_, {}};
        bindings.reducer = {&add<T>, nullptr, sizeof(T), rounds_};
        EXPECT_EQ(group_.channel(0).start(addition_, bindings, number_), Status::ok);
    }
    // By the agent, or by this thread.
    T end() {
        EXPECT_TRUE(addition_.pending());
        EXPECT_EQ(group_.channel(1).start(message_, {&in_, nullptr, {}}, number_++), Status::ok);
        const auto pending = [this] { return addition_.pending() || message_.pending(); };
        if (with_agent_) EXPECT_TRUE(in_time([&] { return !pending(); }));
        for (int polls = 0; !with_agent_ && pending() && polls < 1000; ++polls) {
            group_.channel(0).help();
            group_.channel(1).help();
        }
        EXPECT_FALSE(pending());
        return out_;
    }
    // Started by a thread that calls `prepare` before.
    template <typename Prepare>
    T started_elsewhere(T own, T other, Prepare prepare) {
        std::thread([&] {
            prepare();
            start(own, other);
        }).join();
        return end();
    }
    T started_in(int direction, T own, T other) {
        return started_elsewhere(own, other, [=] { std::fesetround(direction); });
    }

  private:
    static AgentGroupOptions options(bool with_agent) {
        AgentGroupOptions options;
        options.with_agent = with_agent;
        return options;
    }

    const bool with_agent_, rounds_;
    T in_ = 0, out_ = 0;
    std::uint32_t number_ = 0;
    AgentGroup group_;
    std::unique_ptr<Execution> adds_, sends_;
    Operation addition_, message_;
};

// This thread's direction of rounding, until it is left.
class Direction {
  public:
    explicit Direction(int direction) { std::fesetround(direction); }
    ~Direction() { std::fesetround(before_); }
    Direction(const Direction&) = delete;
    Direction& operator=(const Direction&) = delete;

  private:
    const int before_ = std::fegetround();
};

template <typename T>
constexpr T epsilon = std::numeric_limits<T>::epsilon();
template <typename T>
constexpr T most = std::numeric_limits<T>::max();
template <typename T>
constexpr T infinity = std::numeric_limits<T>::infinity();

template <typename T>
void expect_directions(bool with_agent) {
    Sum<T> sum(with_agent);
    const T little = epsilon<T> / 8;
    EXPECT_EQ(sum.started_in(FE_UPWARD, 1, little), 1 + epsilon<T>);
    EXPECT_EQ(sum.started_in(FE_DOWNWARD, 1, -little), 1 - epsilon<T> / 2);
    EXPECT_EQ(sum.started_in(FE_TOWARDZERO, 1, -little), 1 - epsilon<T> / 2);
    EXPECT_EQ(sum.started_in(FE_DOWNWARD, 1, little), T{1});
    EXPECT_EQ(sum.started_in(FE_TONEAREST, 1, little), T{1});
    EXPECT_EQ(std::fegetround(), FE_TONEAREST);
}

TEST(float_modes, a_sum_rounds_as_who_started_it_where_another_thread_adds) {
    expect_directions<float>(false);
    expect_directions<double>(false);
    expect_directions<long double>(false);
}

TEST(float_modes, a_sum_rounds_as_who_started_it_where_the_agent_adds) {
    expect_directions<float>(true);
    expect_directions<double>(true);
    expect_directions<long double>(true);
}

TEST(float_modes, who_adds_rounds_as_before_afterwards) {
    Sum<double> sum;
    double nearest = 0;
    int after = 0;
    {
        const Direction up(FE_UPWARD);
        nearest = sum.started_in(FE_TONEAREST, 1, epsilon<double> / 8);
        after = std::fegetround();
    }
    EXPECT_EQ(nearest, 1);
    EXPECT_EQ(after, FE_UPWARD);
}

TEST(float_modes, those_of_the_start_count_in_one_thread_too) {
    Sum<double> sum;
    {
        const Direction up(FE_UPWARD);
        sum.start(1, epsilon<double> / 8);
    }
    EXPECT_EQ(sum.end(), 1 + epsilon<double>);
    EXPECT_EQ(std::fegetround(), FE_TONEAREST);
}

// What the tests above would see without them; and other reductions are not touched.
TEST(float_modes, what_does_not_round_is_computed_as_who_drives_computes) {
    Sum<double> sum(false, false);
    EXPECT_EQ(sum.started_in(FE_UPWARD, 1, epsilon<double> / 8), 1);
}

template <typename T>
void expect_flags() {
    Sum<T> sum;
    std::feclearexcept(FE_ALL_EXCEPT);
    EXPECT_EQ(sum.started_in(FE_TONEAREST, most<T>, most<T>), infinity<T>);
    EXPECT_EQ(std::fetestexcept(FE_OVERFLOW), 0);
    std::feraiseexcept(FE_DIVBYZERO);
    EXPECT_EQ(sum.started_in(FE_TONEAREST, most<T>, most<T>), infinity<T>);
    EXPECT_EQ(std::fetestexcept(FE_OVERFLOW | FE_DIVBYZERO), FE_DIVBYZERO);
    sum.start(most<T>, most<T>);
    EXPECT_EQ(sum.end(), infinity<T>);
    EXPECT_EQ(std::fetestexcept(FE_OVERFLOW | FE_DIVBYZERO), FE_OVERFLOW | FE_DIVBYZERO);
    std::feclearexcept(FE_ALL_EXCEPT);
}

TEST(float_modes, flags_are_raised_by_the_own_sums_only) {
    expect_flags<float>();
    expect_flags<double>();
    expect_flags<long double>();
}

#if defined(__GLIBC__)
// Without it the process would end here by SIGFPE. False: this machine has no traps.
template <typename T>
bool adds_without_traps() {
    constexpr int all = FE_OVERFLOW | FE_INVALID | FE_DIVBYZERO;
    bool can = false;
    T result = 0;
    int trapping = 0;
    std::thread([&] {
        Sum<T> sum;
        can = feenableexcept(all) >= 0;
        if (!can) return;
        result = sum.started_elsewhere(most<T>, most<T>, [] { fedisableexcept(FE_ALL_EXCEPT); });
        trapping = fegetexcept();
        fedisableexcept(FE_ALL_EXCEPT);
    }).join();
    if (!can) return false;
    EXPECT_EQ(result, infinity<T>);
    EXPECT_EQ(trapping, all);
    return true;
}

TEST(float_modes, nothing_traps_in_a_thread_that_adds_for_another) {
    if (!adds_without_traps<double>() || !adds_without_traps<long double>())
        GTEST_SKIP() << "this machine cannot trap";
}

// Not even where it combines without asking for modes, as an MPI library does that it drives.
TEST(float_modes, traps_of_the_thread_that_made_it_do_not_end_the_agent) {
    bool can = false;
    double result = 0;
    std::thread([&] {
        can = feenableexcept(FE_OVERFLOW | FE_INVALID | FE_DIVBYZERO) >= 0;
        if (!can) return;
        Sum<double> sum(true, false);
        fedisableexcept(FE_ALL_EXCEPT);
        sum.start(most<double>, most<double>);
        result = sum.end();
    }).join();
    if (!can) GTEST_SKIP() << "this machine cannot trap";
    EXPECT_EQ(result, infinity<double>);
}
#endif

#if defined(__x86_64__)
constexpr unsigned results_to_zero = 0x8000, operands_are_zero = 0x0040;
void set_flushing(unsigned bits) {
    _mm_setcsr((_mm_getcsr() & ~(results_to_zero | operands_are_zero)) | bits);
}

TEST(float_modes, small_numbers_are_flushed_to_zero_where_who_started_it_does) {
    constexpr double least = std::numeric_limits<double>::min();
    constexpr double larger = 1.5 * least, half = least / 2;
    Sum<double> sum;
    EXPECT_EQ(sum.started_elsewhere(larger, -least, [] { set_flushing(results_to_zero); }), 0);
    EXPECT_EQ(sum.started_elsewhere(half, half, [] { set_flushing(operands_are_zero); }), 0);
    const unsigned before = _mm_getcsr();
    set_flushing(results_to_zero | operands_are_zero);
    const double kept = sum.started_elsewhere(larger, -least, [] { set_flushing(0); });
    const double added = sum.started_elsewhere(half, half, [] { set_flushing(0); });
    const unsigned after = _mm_getcsr();
    _mm_setcsr(before);
    EXPECT_EQ(after & (results_to_zero | operands_are_zero), results_to_zero | operands_are_zero);
    EXPECT_EQ(kept, half);
    EXPECT_EQ(added, least);
}
#endif

}  // namespace
}  // namespace thalweg
