// What the cases share: an exchange's memory, whose every byte is known, and a communicator with its windows.
#pragma once

#include <mpi.h>
#include <time.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "plan/rma_alltoallv.h"
#include "plan/window_pool.h"
#include "transport/require.h"

namespace thalweg::test {

inline constexpr const char* ways[] = {"rma_fence", "rma_fence_barrier", "rma_lock", "rma_pscw", "rma_get"};
inline constexpr unsigned char poison = 0xa5;
inline constexpr std::size_t guard = 64;  // bytes before and after every block that nobody may touch

inline int rank = 0, size = 1;

inline void nap(unsigned microseconds) {
    const timespec span{0, static_cast<long>(microseconds) * 1000};
    nanosleep(&span, nullptr);
}

// Every rank works out the whole matrix: bytes from one to another.
using Matrix = std::vector<std::uint64_t>;
inline Matrix matrix_of(const std::string& kind, unsigned seed) {
    Matrix bytes(static_cast<std::size_t>(size * size));
    std::mt19937 random(seed);
    for (int from = 0; from < size; ++from)
        for (int to = 0; to < size; ++to) {
            std::uint64_t& value = bytes[static_cast<std::size_t>(from * size + to)];
            const std::uint64_t any = 1 + random() % 5000;
            if (kind == "dense") value = any;
            if (kind == "sparse") value = random() % 3 == 0 ? any : 0;
            if (kind == "large") value = 100'000 + any;
            if (kind == "from_one") value = from == 0 ? any : 0;
            if (kind == "only_self") value = from == to ? any : 0;
            if (kind == "others") value = from != to ? any : 0;
        }
    return bytes;
}

// One exchange's memory, with gaps between the blocks.
struct Memory {
    Matrix bytes;
    std::vector<unsigned char> in, out;
    std::vector<std::uint64_t> send_bytes, receive_bytes;
    std::vector<MPI_Aint> send_at, receive_at;

    explicit Memory(Matrix matrix) : bytes(std::move(matrix)) {
        std::size_t in_end = guard, out_end = guard;
        for (int peer = 0; peer < size; ++peer) {
            send_bytes.push_back(bytes[static_cast<std::size_t>(rank * size + peer)]);
            receive_bytes.push_back(bytes[static_cast<std::size_t>(peer * size + rank)]);
            send_at.push_back(static_cast<MPI_Aint>(in_end));
            in_end += send_bytes.back() + guard;
        }
        // Not in the order of the ranks.
        receive_at.resize(static_cast<std::size_t>(size));
        for (int peer = size - 1; peer >= 0; --peer) {
            receive_at[static_cast<std::size_t>(peer)] = static_cast<MPI_Aint>(out_end);
            out_end += receive_bytes[static_cast<std::size_t>(peer)] + guard;
        }
        in.resize(in_end);
        out.resize(out_end);
    }

    static unsigned char value(int from, int to, std::size_t at, unsigned round) {
        const auto word = static_cast<std::uint32_t>(at * 2654435761u + static_cast<unsigned>(from) * 40503u +
                                                     static_cast<unsigned>(to) * 9973u + round * 7919u);
        return static_cast<unsigned char>(word >> 13);
    }

    void prepare(unsigned round) {
        std::memset(out.data(), poison, out.size());
        for (int to = 0; to < size; ++to) {
            const auto t = static_cast<std::size_t>(to);
            for (std::size_t i = 0; i < send_bytes[t]; ++i)
                in[static_cast<std::size_t>(send_at[t]) + i] = value(rank, to, i, round);
        }
    }

    void check(unsigned round, const char* what) const {
        std::vector<bool> written(out.size(), false);
        for (int from = 0; from < size; ++from) {
            const auto f = static_cast<std::size_t>(from);
            for (std::size_t i = 0; i < receive_bytes[f]; ++i) {
                const std::size_t at = static_cast<std::size_t>(receive_at[f]) + i;
                written[at] = true;
                REQUIRE(out[at] == value(from, rank, i, round),
                        "%s: rank %d, round %u: byte %zu from %d is wrong", what, rank, round, i, from);
            }
        }
        for (std::size_t at = 0; at < out.size(); ++at)
            REQUIRE(written[at] || out[at] == poison,
                    "%s: rank %d, round %u: byte %zu between blocks was written", what, rank, round, at);
    }

    ByteBlocks blocks() { return {in.data(), out.data(), send_bytes, receive_bytes, send_at, receive_at}; }
};

struct Job {
    MPI_Comm comm = MPI_COMM_NULL;
    const Host* mpi = nullptr;
    std::unique_ptr<WindowPool> pool;

    explicit Job(const Host& host) : mpi(&host) {
        MPI_Comm_split(MPI_COMM_WORLD, 0, 0, &comm);
        pool = std::make_unique<WindowPool>(host, comm);
    }
    ~Job() {
        REQUIRE(pool->drain() == MPI_SUCCESS, "drain failed");
        REQUIRE(pool->alive() == 0, "%d windows were left", pool->alive());
        MPI_Comm_free(&comm);
    }
    std::unique_ptr<RmaAlltoallv> make(const char* way, Memory& memory, std::span<const char> near = {}) {
        auto options = rma_options(way);
        REQUIRE(options.has_value(), "%s is not known", way);
        options->near = near;
        int error = MPI_SUCCESS;
        auto plan = RmaAlltoallv::make(*mpi, comm, *pool, memory.blocks(), *options, error);
        REQUIRE(plan != nullptr, "%s: make: MPI error %d", way, error);
        return plan;
    }
};

inline void require(int error, const char* what) {
    REQUIRE(error == MPI_SUCCESS, "%s: MPI error %d", what, error);
}

}  // namespace thalweg::test
