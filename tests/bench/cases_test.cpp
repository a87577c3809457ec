// The check of a measured call, by calls of an MPI that moves nothing: what is right, put there by hand, is
// accepted, and what is not is seen.
#include "driver/cases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "driver/nonblocking.h"

#define MOVES_NOTHING(name, ...)                        \
    int MPI_##name(__VA_ARGS__) { return MPI_SUCCESS; } \
    int PMPI_##name(__VA_ARGS__) { return MPI_SUCCESS; }

extern "C" {
MOVES_NOTHING(Bcast, void*, int, MPI_Datatype, int, MPI_Comm)
MOVES_NOTHING(Ibcast, void*, int, MPI_Datatype, int, MPI_Comm, MPI_Request*)
MOVES_NOTHING(Allgather, const void*, int, MPI_Datatype, void*, int, MPI_Datatype, MPI_Comm)
MOVES_NOTHING(Iallgather, const void*, int, MPI_Datatype, void*, int, MPI_Datatype, MPI_Comm, MPI_Request*)
MOVES_NOTHING(Allreduce, const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm)
MOVES_NOTHING(Iallreduce, const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Request*)
int MPI_Abort(MPI_Comm, int) { return MPI_SUCCESS; }
}

namespace thalweg::bench {
namespace {

constexpr int ranks = 3, root = 1;

// One rank's memory of a case, of a blocking or of a nonblocking one.
class Part {
  public:
    Part(std::string_view name, int rank, std::size_t bytes)
        : blocking_(find_case(name)), nonblocking_(find_nonblocking_case(name)), rank_(rank), bytes_(bytes) {
        if (blocking_ != nullptr) memory_.resize(blocking_->memory(bytes, ranks));
        exchange_.bytes = bytes;
        exchange_.rank = rank, exchange_.size = ranks, exchange_.root = root;
    }
    void prepare(std::uint64_t seed) {
        if (blocking_ != nullptr)
            blocking_->prepare(buffers(), rank_, ranks, root, seed);
        else
            nonblocking_->prepare(exchange_, seed);
    }
    int call(bool native) {
        if (blocking_ != nullptr) return blocking_->call(buffers(), root, MPI_COMM_WORLD, native);
        MPI_Request request = MPI_REQUEST_NULL;
        return native ? nonblocking_->block(exchange_, MPI_COMM_WORLD)
                      : nonblocking_->start(exchange_, MPI_COMM_WORLD, &request, native);
    }
    std::uint64_t check(std::uint64_t seed) {
        return blocking_ != nullptr ? blocking_->check(buffers(), rank_, ranks, root, seed)
                                    : nonblocking_->check(exchange_, seed);
    }
    // A broadcast has its result where the root's contribution is.
    unsigned char* contribution() {
        return blocking_ != nullptr ? memory_.data() : exchange_.in.empty() ? result() : exchange_.in.data();
    }
    unsigned char* result() { return blocking_ != nullptr ? memory_.data() + own() : exchange_.out.data(); }
    std::size_t result_bytes() const {
        return blocking_ != nullptr ? memory_.size() - own() : exchange_.out.size();
    }

  private:
    Buffers buffers() { return {memory_.data(), bytes_}; }
    std::size_t own() const { return memory_.size() > bytes_ ? bytes_ : 0; }

    const Case* blocking_;
    const NonblockingCase* nonblocking_;
    int rank_;
    std::size_t bytes_;
    std::vector<unsigned char> memory_;
    Exchange exchange_;
};

// All ranks of one case; their collective by its definition.
struct Job {
    Job(std::string_view called, std::size_t each) : name(called), bytes(each) {
        for (int rank = 0; rank < ranks; ++rank) parts.emplace_back(called, rank, each);
    }
    bool is_broadcast() const { return name.ends_with("bcast"); }
    bool receives(int rank) const { return !is_broadcast() || rank != root; }
    void prepare(std::uint64_t seed) {
        for (Part& part : parts) part.prepare(seed);
    }
    // left_out: a rank whose contribution to a sum is not there.
    void deliver(int left_out = -1) {
        std::vector<std::int64_t> sum(bytes / sizeof(std::int64_t));
        for (int from = 0; from < ranks && name.ends_with("allreduce"); ++from)
            for (std::size_t i = 0; from != left_out && i < sum.size(); ++i) {
                std::int64_t value = 0;
                std::memcpy(&value, of(from).contribution() + i * sizeof value, sizeof value);
                sum[i] += value;
            }
        for (int to = 0; to < ranks; ++to) {
            if (name.ends_with("allreduce")) std::memcpy(of(to).result(), sum.data(), bytes);
            if (is_broadcast() && to != root) std::memcpy(of(to).result(), of(root).contribution(), bytes);
            for (int from = 0; from < ranks && name.ends_with("allgather"); ++from)
                std::memcpy(of(to).result() + static_cast<std::size_t>(from) * bytes, of(from).contribution(),
                            bytes);
        }
    }
    Part& of(int rank) { return parts[static_cast<std::size_t>(rank)]; }

    std::string_view name;
    std::size_t bytes;
    std::vector<Part> parts;
};

// Sums are of whole integers.
template <typename What>
void for_every_case(What what) {
    for (const std::string_view name :
         {"bcast", "allgather", "allreduce", "ibcast", "iallgather", "iallreduce"})
        for (const std::size_t bytes : {8u, 24u, 13u, 1001u, 1024u}) {
            if (name.ends_with("allreduce") && bytes % sizeof(std::int64_t) != 0) continue;
            SCOPED_TRACE(std::string(name) + " of " + std::to_string(bytes));
            Job job(name, bytes);
            what(job);
        }
}

TEST(Cases, WhatIsRightIsAccepted) {
    for_every_case([](Job& job) {
        for (const std::uint64_t seed : {1, 2}) {
            job.prepare(seed);
            job.deliver();
            for (Part& part : job.parts) EXPECT_EQ(part.check(seed), 0u);
        }
    });
}

TEST(Cases, ACallThatMovesNothingIsSeen) {
    for_every_case([](Job& job) {
        for (const bool native : {true, false}) {
            job.prepare(1);
            for (int rank = 0; rank < ranks; ++rank) {
                EXPECT_EQ(job.of(rank).call(native), MPI_SUCCESS);
                EXPECT_EQ(job.of(rank).check(1) > 0, job.receives(rank)) << rank;
            }
        }
    });
}

TEST(Cases, EveryByteThatIsWrongIsSeen) {
    for_every_case([](Job& job) {
        job.prepare(1);
        job.deliver();
        for (Part& part : job.parts)
            for (std::size_t i = 0; i < part.result_bytes(); ++i) {
                part.result()[i] ^= static_cast<unsigned char>(1u << (i % 8));
                EXPECT_EQ(part.check(1), 1u) << i;
                part.result()[i] ^= static_cast<unsigned char>(1u << (i % 8));
            }
    });
}

TEST(Cases, WhatTheCallBeforeHasLeftIsSeen) {
    for_every_case([](Job& job) {
        std::vector<std::vector<unsigned char>> before;
        job.prepare(1);
        job.deliver();
        for (Part& part : job.parts) before.emplace_back(part.result(), part.result() + part.result_bytes());
        job.prepare(2);
        for (int rank = 0; rank < ranks; ++rank) {
            if (!job.receives(rank)) continue;
            const std::vector<unsigned char>& left = before[static_cast<std::size_t>(rank)];
            std::memcpy(job.of(rank).result(), left.data(), left.size());
            EXPECT_GT(job.of(rank).check(2), 0u) << rank;
        }
    });
}

TEST(Cases, WhatIsAnotherRanksIsSeen) {
    for_every_case([](Job& job) {
        job.prepare(1);
        job.deliver(2);
        for (Part& part : job.parts) {
            if (job.name.ends_with("allgather"))
                std::swap_ranges(part.result(), part.result() + job.bytes, part.result() + 2 * job.bytes);
            EXPECT_EQ(part.check(1) > 0, !job.is_broadcast());
        }
    });
}

}  // namespace
}  // namespace thalweg::bench
