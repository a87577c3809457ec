#include "plan/calibrate.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <new>

#include "base/clock.h"
#include "engine/waiters/between_polls.h"
#include "model/repeated_timing.h"
#include "plan/set_up.h"
#include "transport/mpi/host.h"
#include "transport/mpi/mpi_transport.h"

namespace thalweg {
namespace {

constexpr int round_trips = 8;  // the shortest counts
constexpr int parts = 16;       // of a stream
// Those that may arrive at once, because sockets, switches and shapers hold them: the clock starts after
// them.
constexpr int untimed_parts = 4;
constexpr std::size_t small_part_bytes = 16u << 10, large_part_bytes = 256u << 10;
constexpr std::uint64_t shortest_ns = 1'000'000;  // streams that take less are repeated with large parts

// What the receiver says after each stream.
struct Verdict {
    std::uint64_t duration_ns;  // believed so far; 0: the stream could not be timed
    std::uint64_t again;        // 1: the same stream once more
};

std::uint64_t rounded(std::uint64_t value) {
    if (value < 8) return value;
    const int shift = std::bit_width(value) - 3;
    return (value + (std::uint64_t{1} << (shift - 1))) >> shift << shift;
}

// The two ends of the link. Both run the same protocol; each returns false when MPI fails.
class Link {
  public:
    Link(const MpiTransport& channel, int peer, WaitPolicy policy)
        : mpi_(*host()),
          comm_(channel.comm()),
          peer_(channel.place_of(peer)),
          tag_(channel.spare_tag()),
          policy_(policy) {}

    bool send(void* data, std::size_t bytes) { return begin(true, data, bytes) && finish(); }
    bool receive(void* data, std::size_t bytes) { return begin(false, data, bytes) && finish(); }

    // Empty messages there and back; the shortest round trip, halved, on the side that begins.
    bool ping(std::uint64_t& latency_ns) {
        latency_ns = ~std::uint64_t{0};
        for (int i = 0; i < round_trips; ++i) {
            const std::uint64_t start = now_ns();
            if (!send(nullptr, 0) || !receive(nullptr, 0)) return false;
            latency_ns = std::min(latency_ns, (now_ns() - start) / 2);
        }
        return true;
    }
    bool pong() {
        for (int i = 0; i < round_trips; ++i)
            if (!receive(nullptr, 0) || !send(nullptr, 0)) return false;
        return true;
    }

    // `data` holds all parts.
    bool stream_out(std::byte* data, std::size_t part_bytes) {
        for (int i = 0; i < parts; ++i)
            if (!begin(true, data + static_cast<std::size_t>(i) * part_bytes, part_bytes)) return false;
        return finish();
    }
    // The time that all parts but the untimed ones take. A receiver that was kept off its core finds several
    // at once, so those that are still to come when its clock starts are counted; 0: it found all at once.
    bool stream_in(std::byte* data, std::size_t part_bytes, std::uint64_t& duration_ns) {
        std::uint64_t first = 0, timed = 0;
        for (int i = 0; i < parts; ++i)
            if (!begin(false, data + static_cast<std::size_t>(i) * part_bytes, part_bytes)) return false;
        while (active_ > 0) {
            if (!poll()) return false;
            if (first == 0 && active_ <= parts - untimed_parts) {
                first = now_ns();
                timed = static_cast<std::uint64_t>(active_);
            }
        }
        duration_ns = 0;
        if (timed != 0)
            duration_ns = std::max<std::uint64_t>(1, (now_ns() - first) * (parts - untimed_parts) / timed);
        return true;
    }

  private:
    bool begin(bool out, void* data, std::size_t bytes) {
        MPI_Request& request = requests_[active_++];
        const int count = static_cast<int>(bytes);
        return (out ? mpi_.Isend(data, count, mpi_.byte, peer_, tag_, comm_, &request)
                    : mpi_.Irecv(data, count, mpi_.byte, peer_, tag_, comm_, &request)) == MPI_SUCCESS;
    }
    bool poll() {
        int completed = 0, indices[parts];
        if (mpi_.Testsome(active_, requests_, &completed, indices, MPI_STATUSES_IGNORE) != MPI_SUCCESS)
            return false;
        if (completed == MPI_UNDEFINED) completed = 0;
        // The other end may wait for this core.
        waits_since_ns_ = completed == 0 ? pause_between_polls(policy_, waits_since_ns_) : 0;
        std::sort(indices, indices + completed);
        for (int i = completed; i-- > 0;) requests_[indices[i]] = requests_[--active_];
        return true;
    }
    bool finish() {
        while (active_ > 0)
            if (!poll()) return false;
        return true;
    }

    const Host& mpi_;
    MPI_Comm comm_;
    int peer_;
    int tag_;
    WaitPolicy policy_;
    std::uint64_t waits_since_ns_ = 0;  // for what comes next; 0: it was not polled for yet
    int active_ = 0;
    MPI_Request requests_[parts];
};

bool measure_as_sender(Link link, std::byte* data, Network& network) {
    if (!link.ping(network.latency_ns)) return false;
    for (const std::size_t part_bytes : {small_part_bytes, large_part_bytes}) {
        Verdict verdict{};
        do {
            if (!link.stream_out(data, part_bytes) || !link.receive(&verdict, sizeof verdict)) return false;
        } while (verdict.again != 0);
        const unsigned __int128 bytes =
            static_cast<unsigned __int128>(parts - untimed_parts) * part_bytes * 1'000'000'000;
        if (verdict.duration_ns != 0)
            network.bytes_per_second = static_cast<std::uint64_t>(bytes / verdict.duration_ns);
        if (verdict.duration_ns >= shortest_ns) break;
    }
    return true;
}

bool measure_as_receiver(Link link, std::byte* data) {
    if (!link.pong()) return false;
    for (const std::size_t part_bytes : {small_part_bytes, large_part_bytes}) {
        RepeatedTiming timing;
        while (timing.wants_more()) {
            std::uint64_t duration_ns = 0;
            if (!link.stream_in(data, part_bytes, duration_ns)) return false;
            timing.add(duration_ns);
            Verdict verdict{timing.believed_ns(), timing.wants_more()};
            if (!link.send(&verdict, sizeof verdict)) return false;
        }
        if (timing.believed_ns() >= shortest_ns) break;
    }
    return true;
}

}  // namespace

Network measure_network(MPI_Comm comm, const MpiTransport& channel, const Topology& topology,
                        WaitPolicy policy) {
    const int rank = channel.rank();
    const int sender = topology.ranks_on(0)[0], receiver = topology.ranks_on(1)[0];
    Network network;
    const bool takes_part = rank == sender || rank == receiver;
    std::unique_ptr<std::byte[]> data;
    if (takes_part) data.reset(new (std::nothrow) std::byte[parts * large_part_bytes]);
    std::uint64_t missing[1] = {takes_part && data == nullptr};
    agree_on(comm, host()->max, missing);
    if (missing[0] != 0) return {};
    bool measured = true;
    if (rank == sender) measured = measure_as_sender({channel, receiver, policy}, data.get(), network);
    if (rank == receiver) measured = measure_as_receiver({channel, sender, policy}, data.get());
    std::uint64_t values[2] = {measured ? rounded(network.latency_ns) : 0,
                               measured ? rounded(network.bytes_per_second) : 0};
    // The ranks that wait here leave their cores to the two that measure.
    demand(hand_out_words(values, 2, sender, comm));
    return {values[0], values[1]};
}

}  // namespace thalweg
