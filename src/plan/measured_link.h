// The messages by which two ranks find out what the network between them does, and an end of them that both
// reach in bounded time, whatever happened, with nothing left that anybody could match.
//
// A number of the world's pool is theirs alone, and nothing else is sent under it. Whoever is done, or gives
// up, sends how many messages it sent; the other one receives those that it did not expect and withdraws the
// receives that nobody serves. Where that fails too, the number must not be used again.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>

#include "engine/engine.h"

namespace thalweg {

// Why ends gave up; the larger one counts. Equal on both after an agreement.
enum class LinkTrouble : std::uint64_t {
    none,
    silent,  // the other end did not answer in time
    failed,  // a call of the MPI library failed
};

class MeasuredLink {
  public:
    static constexpr int parts = 16;  // of a stream
    // Those that may arrive at once, because sockets, switches and shapers hold them: the clock starts after
    // them.
    static constexpr int untimed_parts = 4;
    static constexpr std::size_t largest_part_bytes = 256u << 10;
    // From the start to giving up; and as long again for the end.
    static constexpr std::uint64_t patience_ns = 10'000'000'000;

    // What the receiver says after each stream.
    struct Verdict {
        std::uint64_t duration_ns;  // believed so far; 0: the stream could not be timed
        std::uint64_t again;        // 1: the same stream once more
    };
    // What messages are sent from and received into: one object for each end.
    struct Memory {
        struct Ending {
            std::uint64_t sent;
            LinkTrouble trouble;
        } own, other;
        Verdict verdict;
        std::byte data[parts * largest_part_bytes];
        std::byte unexpected[largest_part_bytes];
    };

    // One end, on `peer` of `comm` and the two tags from `tag` on. Makes no message yet. `memory` lives as
    // long as this, and for ever where end() was not clean.
    MeasuredLink(MPI_Comm comm, int peer, int tag, WaitPolicy policy, Memory& memory);
    MeasuredLink(const MeasuredLink&) = delete;
    MeasuredLink& operator=(const MeasuredLink&) = delete;

    // All of these: false once this end or the other one gave up.
    // Empty messages there and back; the shortest round trip, halved, on the side that begins.
    bool ping(std::uint64_t& latency_ns);
    bool pong();
    // `part_bytes` <= largest_part_bytes.
    bool stream_out(std::size_t part_bytes);
    // The time that all parts but the untimed ones take. A receiver that was kept off its core finds several
    // at once, so those that are still to come when its clock starts are counted; 0: it found all at once.
    bool stream_in(std::size_t part_bytes, std::uint64_t& duration_ns);
    bool tell(Verdict verdict);
    bool hear(Verdict& verdict);

    // Once, whatever came before. clean: no message is on its way and no request is active at this end.
    struct Outcome {
        LinkTrouble trouble = LinkTrouble::none;
        bool clean = true;
    };
    Outcome end();

  private:
    bool send(void* data, std::size_t bytes) { return begin(true, data, bytes) && finish(); }
    bool receive(void* data, std::size_t bytes) { return begin(false, data, bytes) && finish(); }
    bool begin(bool out, void* data, std::size_t bytes);
    bool post(bool out, void* data, std::size_t bytes, int tag, MPI_Request& request);
    bool poll();
    bool finish();
    bool advance();
    void forget(int index);
    bool in_time();
    bool drain();
    void withdraw_unserved();
    void abandon();

    MPI_Comm comm_;
    int peer_;
    int tag_;  // of data; the next one is the endings'
    WaitPolicy policy_;
    Memory& memory_;
    LinkTrouble trouble_ = LinkTrouble::none;
    std::uint64_t deadline_ns_;
    std::uint64_t waits_since_ns_ = 0;  // for what comes next; 0: it was not polled for yet
    bool expects_end_ = false, peer_ended_ = false;
    MPI_Request peers_end_{};
    std::uint64_t sent_ = 0, expected_ = 0;  // messages of data
    int active_ = 0;
    MPI_Request requests_[parts + 2];
    std::uint64_t ordinal_[parts + 2] = {};  // of a receive, from 1; 0: a send
};

}  // namespace thalweg
