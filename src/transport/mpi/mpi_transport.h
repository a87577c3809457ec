// MPI point-to-point on a private communicator: the transport that works wherever MPI does.
//
// Compiled once per ABI family, with that family's mpi.h; every MPI call goes through host(). It progresses
// only while its owner calls it, and shares MPI's own progress: progress() also moves everybody else's
// messages.
#pragma once

#include <mpi.h>

#include <memory>
#include <vector>

#include "transport/transport.h"

namespace thalweg {

class MpiTransport final : public Transport {
  public:
    // `comm` is an intracommunicator that nobody else sends on; it must outlive the transport, which does not
    // free it. Local; sets the error handler of `comm` to MPI_ERRORS_RETURN. Null with `error` set (an MPI
    // error code) where MPI refuses; throws std::bad_alloc. Pre: host() is not null, slots >= 2.
    static std::unique_ptr<MpiTransport> make(MPI_Comm comm, Slot slots, int& error);

    const Capabilities& capabilities() const override { return capabilities_; }
    int rank() const override { return rank_; }
    int size() const override { return size_; }
    Slot slots() const override { return static_cast<Slot>(bytes_.size()); }
    Status grow(Slot slots) override;

    Status post_send(Slot slot, int peer, MessageId id, const void* data, std::size_t bytes,
                     SendMode mode) override;
    Status post_recv(Slot slot, int peer, MessageId id, void* data, std::size_t bytes) override;
    Status progress(std::span<Slot> done, std::size_t& count) override;
    void drive_host() override;

    // MPICH and its derivatives hand an error that MPI_Testsome finds (a message longer than its receive, a
    // lost peer) to the handler of MPI_COMM_WORLD, not to that of the request's communicator: there
    // progress() returns an error only where the program has changed the world's handler. Open MPI asks
    // `comm`.
    //
    // The MPI error code behind the latest transport_failed or mismatch, for MPI_Comm_call_errhandler on the
    // user's communicator; MPI_SUCCESS when there is none, or when the sizes of a message and its receive
    // differ without MPI having noticed.
    int last_error() const { return last_error_; }

  private:
    MpiTransport(MPI_Comm comm, Slot slots);
    int tag_of(MessageId id) const;
    void choose_tags();
    Status post(Slot slot, int error, MPI_Request request);
    Status test();
    Status find_error(int completed);

    MPI_Comm comm_;
    Capabilities capabilities_;
    int rank_ = 0;
    int size_ = 0;
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
    // By slot: the bytes a receive expects; not_a_receive for a send.
    std::vector<std::size_t> bytes_;
};

}  // namespace thalweg
