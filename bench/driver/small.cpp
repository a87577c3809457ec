#include "driver/small.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>

#include "driver/pattern.h"
#include "driver/series.h"

namespace thalweg::bench {
namespace {

constexpr int block_calls = 1000;
constexpr int segments = 50;
constexpr int warm_up_blocks = 4;
constexpr int clock_readings = 1001;

// The call's number where the receivers look for it: the first and the last bytes.
void stamp(const Buffers& buffers, std::uint64_t number) {
    const std::uint64_t word = pattern_word(1, number);
    const std::size_t length = std::min(buffers.bytes, sizeof word);
    std::memcpy(buffers.data, &word, length);
    std::memcpy(buffers.data + buffers.bytes - length, &word, length);
}

bool stamped(const Buffers& buffers, std::uint64_t number) {
    const std::uint64_t word = pattern_word(1, number);
    const std::size_t length = std::min(buffers.bytes, sizeof word);
    return std::memcmp(buffers.data + buffers.bytes - length, &word, length) == 0 &&
           (buffers.bytes < 2 * sizeof word || std::memcmp(buffers.data, &word, length) == 0);
}

// What two readings of the clock cost, and the steps in which it advances.
void look_at_clock(SmallResult& result) {
    std::vector<std::int64_t> costs(clock_readings);
    for (auto& cost : costs) {
        const std::int64_t before = now_ns();
        cost = now_ns() - before;
    }
    std::sort(costs.begin(), costs.end());
    result.clock_ns = costs[clock_readings / 2];
    const auto step = std::upper_bound(costs.begin(), costs.end(), 0);
    result.clock_step_ns = step == costs.end() ? 0 : *step;
    for (std::size_t i = 1; i < costs.size(); ++i)
        if (const std::int64_t apart = costs[i] - costs[i - 1]; apart > 0)
            result.clock_step_ns = std::min(result.clock_step_ns, apart);
}

class Blocks {
  public:
    Blocks(const Case& what, std::size_t bytes, MPI_Comm comm, MPI_Comm control)
        : what_(what), comm_(comm), control_(control), memory_(bytes), buffers_{memory_.data(), bytes} {
        PMPI_Comm_rank(comm, &rank_);
        PMPI_Comm_size(comm, &size_);
    }

    // One block of `calls` timed calls; their times go to `times` on rank 0.
    void run(const SmallColumn& column, int calls, SmallResult& result, Histogram& times) {
        column.select();
        checked_call(column.native, 0, result);
        marks_.assign(2 * static_cast<std::size_t>(calls), std::numeric_limits<std::int64_t>::min());
        std::int64_t* const entries = marks_.data();
        std::int64_t* const returns = entries + calls;
        PMPI_Barrier(control_);
        for (int i = 0; i < calls; ++i) {
            const int root = i % size_;
            const bool sends = rank_ == root;
            if (sends) {
                stamp(buffers_, number_ + static_cast<std::uint64_t>(i));
                entries[i] = now_ns();
            }
            if (what_.call(buffers_, root, comm_, column.native) != MPI_SUCCESS) die("the call failed");
            returns[i] = now_ns();
            if (!sends) result.wrong_words += !stamped(buffers_, number_ + static_cast<std::uint64_t>(i));
        }
        number_ += static_cast<std::uint64_t>(calls);
        latest_.resize(marks_.size());
        PMPI_Allreduce(marks_.data(), latest_.data(), 2 * calls, MPI_INT64_T, MPI_MAX, control_);
        if (rank_ == 0)
            for (int i = 0; i < calls; ++i) times.add(latest_[calls + i] - latest_[i]);
        checked_call(column.native, calls % size_, result);
    }

  private:
    void checked_call(bool native, int root, SmallResult& result) {
        what_.prepare(buffers_, rank_, size_, root, ++seed_);
        PMPI_Barrier(control_);
        if (what_.call(buffers_, root, comm_, native) != MPI_SUCCESS) die("the call failed");
        result.wrong_words += what_.check(buffers_, rank_, size_, root, seed_);
        ++result.checked_calls;
    }

    const Case& what_;
    MPI_Comm comm_, control_;
    std::vector<unsigned char> memory_;
    Buffers buffers_;
    int rank_ = 0, size_ = 1;
    std::uint64_t seed_ = 0, number_ = 0;
    std::vector<std::int64_t> marks_, latest_;
};

}  // namespace

void Histogram::add(std::int64_t ns) {
    ++counts_[static_cast<std::size_t>(std::clamp<std::int64_t>(ns, 0, last_ns))];
    ++count_;
}

void Histogram::add(const Histogram& other) {
    for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
    count_ += other.count_;
}

void Histogram::clear() {
    std::fill(counts_.begin(), counts_.end(), 0);
    count_ = 0;
}

std::int64_t Histogram::quantile(double fraction) const {
    const double wanted = fraction * static_cast<double>(count_);
    std::uint64_t below = 0;
    for (std::size_t ns = 0; ns < counts_.size(); ++ns) {
        below += counts_[ns];
        if (counts_[ns] > 0 && static_cast<double>(below) >= wanted) return static_cast<std::int64_t>(ns);
    }
    return 0;
}

void measure_small(const Case& what, std::size_t bytes, int calls, MPI_Comm comm, MPI_Comm control,
                   Ours& ours, std::vector<SmallColumn>& columns) {
    int rank = 0;
    PMPI_Comm_rank(control, &rank);
    Blocks blocks(what, bytes, comm, control);
    Histogram unused;
    for (int i = 0; i < warm_up_blocks; ++i)
        for (auto& column : columns) blocks.run(column, std::min(calls, block_calls), column.result, unused);
    std::mt19937 order_seed(static_cast<unsigned>(bytes));  // the same order on all ranks
    std::vector<std::size_t> order(columns.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::vector<Histogram> segment(columns.size());
    int segment_calls = 0;
    for (int done = 0; done < calls;) {
        const int now = std::min(block_calls, calls - done);
        std::shuffle(order.begin(), order.end(), order_seed);
        for (const std::size_t i : order) {
            SmallColumn& column = columns[i];
            blocks.run(column, now, column.result, segment[i]);
            if (!column.native) ours.tell(column.result.ran);
        }
        done += now;
        segment_calls += now;
        if (segment_calls < (calls + segments - 1) / segments && done < calls) continue;
        for (std::size_t i = 0; i < columns.size(); ++i) {
            SmallResult& result = columns[i].result;
            result.segment_medians.push_back(1e-9 * static_cast<double>(segment[i].quantile(0.5)));
            result.all.add(segment[i]);
            segment[i].clear();
        }
        segment_calls = 0;
        if (rank == 0)
            std::fprintf(stderr, "\rbench: %10zu bytes, %d of %d calls, %zu columns   ", bytes, done, calls,
                         columns.size());
    }
    if (rank == 0) std::fprintf(stderr, "\n");
    for (auto& column : columns) {
        std::uint64_t wrong = 0;
        PMPI_Allreduce(&column.result.wrong_words, &wrong, 1, MPI_UINT64_T, MPI_SUM, control);
        column.result.wrong_words = wrong;
        look_at_clock(column.result);
    }
}

nlohmann::json to_json(const SmallResult& result) {
    const auto ns = [&result](double fraction) { return result.all.quantile(fraction); };
    nlohmann::json row{{"seconds", result.segment_medians},
                       {"back_to_back_seconds", nlohmann::json::array()},
                       {"wrong_words", result.wrong_words},
                       {"late_samples", 0},
                       {"calls",
                        {{"count", result.all.count()},
                         {"checked", result.checked_calls},
                         {"clock_ns", result.clock_ns},
                         {"clock_step_ns", result.clock_step_ns},
                         {"last_ns", Histogram::last_ns},
                         {"min_ns", ns(0)},
                         {"p10_ns", ns(0.1)},
                         {"median_ns", ns(0.5)},
                         {"p90_ns", ns(0.9)},
                         {"p99_ns", ns(0.99)}}}};
    add_to(row, result.ran);
    return row;
}

}  // namespace thalweg::bench
