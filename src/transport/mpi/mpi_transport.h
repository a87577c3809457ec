// MPI point-to-point on a private communicator: the transport that works wherever MPI does.
//
// A private communicator may carry one channel, or many at a time: of different groups of its ranks, each
// with a number of its own in the tags (docs/decisions: tags and credits; channels share a communicator).
//
// Compiled once per ABI family, with that family's mpi.h; every MPI call goes through host(). It progresses
// only while its owner calls it, and shares MPI's own progress: progress() also moves everybody else's
// messages.
#pragma once

#include <mpi.h>

#include <memory>
#include <vector>

#include "transport/mpi/rank_map.h"
#include "transport/peer_account.h"
#include "transport/transport.h"

namespace thalweg {

// One of the channels that share a communicator.
struct MpiPlace {
    MPI_Comm comm;
    int rank = 0, size = 1;  // of the channel's group
    RankMap ranks;           // of the group in `comm`
    unsigned channel = 0;    // below MpiTransport::channels_on(comm)
    // Where the messages of each rank are counted; outlives the channel. Null: nowhere.
    PeerAccounts* accounts = nullptr;
};

class MpiTransport final : public Transport {
  public:
    // A channel of all ranks of `comm`, an intracommunicator that nobody else sends on; it must outlive the
    // transport, which does not free it. Local; sets the error handler of `comm` to MPI_ERRORS_RETURN. Null
    // with `error` set (an MPI error code) where MPI refuses; throws std::bad_alloc. Pre: host() is not null,
    // slots >= 2.
    static std::unique_ptr<MpiTransport> make(MPI_Comm comm, Slot slots, int& error);
    // A channel beside others on place.comm, whose error handler is MPI_ERRORS_RETURN. Of the channels that
    // exist at a time, two that have a rank in common have different numbers. Local; throws std::bad_alloc.
    static std::unique_ptr<MpiTransport> make_beside_others(MpiPlace place, Slot slots);

    // How many channels a communicator has room for: 64, or as many as its MPI_TAG_UB leaves. The same on all
    // ranks. Pre: host() is not null.
    static unsigned channels_on(MPI_Comm comm);
    static constexpr unsigned most_channels = 64;
    // MessageId::message has this many bits.
    static constexpr unsigned message_bits = 14;

    const Capabilities& capabilities() const override { return capabilities_; }
    int rank() const override { return place_.rank; }
    int size() const override { return place_.size; }
    Slot slots() const override { return static_cast<Slot>(bytes_.size()); }
    Status grow(Slot slots) override;

    Status post_send(Slot slot, int peer, MessageId id, const void* data, std::size_t bytes,
                     SendMode mode) override;
    Status post_recv(Slot slot, int peer, MessageId id, void* data, std::size_t bytes) override;
    Status progress(std::span<Slot> done, std::size_t& count) override;
    std::uint64_t received_bytes(Slot slot) const override { return received_[slot]; }
    void drive_host() override;

    // MPICH and its derivatives hand an error that MPI_Testsome finds (a message longer than its receive, a
    // lost peer) to the handler of MPI_COMM_WORLD, not to that of the request's communicator: there
    // progress() returns an error only where the program has changed the world's handler, to one that
    // returns: a longjmp from there leaves what the callers of progress() hold. To replace it for each test
    // would cost every poll two calls of MPI, and take it from other threads' errors. Open MPI asks `comm`.
    //
    // The MPI error code behind the latest transport_failed or mismatch, for MPI_Comm_call_errhandler on the
    // user's communicator; MPI_SUCCESS when there is none, or when the sizes of a message and its receive
    // differ without MPI having noticed.
    int last_error() const { return last_error_; }

    // The first of the tags that a channel has on a communicator, at least 2^message_bits of them. Pre:
    // host() is not null, channel < channels_on(comm).
    static int first_tag_on(MPI_Comm comm, unsigned channel);

  private:
    MpiTransport(MpiPlace place, unsigned operation_bits, Slot slots);
    int tag_of(MessageId id) const;
    int spare_tag() const { return tag_of({capabilities_.live_operations - 1, (1u << message_bits) - 1}); }
    Status post(Slot slot, int error, MPI_Request request);
    // Null: nothing is counted.
    PeerAccount* account_of(int peer) const {
        return place_.accounts == nullptr ? nullptr : &place_.accounts->of(peer);
    }
    Status test();
    Status find_error(int completed);

    MpiPlace place_;
    int first_tag_ = 0;  // of this channel
    Capabilities capabilities_;
    int last_error_ = MPI_SUCCESS;
    // The active requests, dense, so that the cost of a poll follows what is active; and the slot of each.
    int active_ = 0;
    std::vector<MPI_Request> requests_;
    std::vector<Slot> slot_of_;
    // What Testsome fills.
    std::vector<int> indices_;
    std::vector<MPI_Status> statuses_;
    // Slots that completed and have not been handed out.
    std::vector<Slot> completed_;
    // By slot: the bytes a receive expects; not_a_receive for a send. And whether that many need not come,
    // and how many did.
    std::vector<std::size_t> bytes_;
    std::vector<bool> unequal_;
    std::vector<std::uint64_t> received_;
    std::vector<PeerAccount*> accounts_;  // of a receive
};

}  // namespace thalweg
