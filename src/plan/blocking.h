// The path of the blocking collectives other than broadcasts: MPI_Allgather, MPI_Allgatherv, MPI_Allreduce;
// and of broadcasts that go through the memory of their host.
//
// Taken by the rules of a broadcast (decision 10): counted until a set-up pays, then run where the selection
// prefers a schedule of ours; between hosts of which no table speaks, in turns with the native call. They run
// on the lane of the communicator's nonblocking operations where it has one, else on the channel of its
// broadcasts; the calling thread alone drives them.
#pragma once

#include <mpi.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include "plan/collective_call.h"
#include "plan/communicator.h"
#include "plan/lane.h"
#include "plan/servable.h"
#include "plan/world.h"
#include "select/decisions.h"
#include "select/select.h"

namespace thalweg {

// What a communicator has for them. Used by the one thread that is inside a collective on it.
class BlockingState {
  public:
    explicit BlockingState(Communicator& communicator) : communicator_(communicator) {}
    BlockingState(const BlockingState&) = delete;
    BlockingState& operator=(const BlockingState&) = delete;

    // How a message, vector or block of `bytes` is moved; asked again for a size alike it costs a look-up.
    // `stable`: by what is equal in every call and every run of the same shape, so not by what was measured.
    // Equal on all ranks. Valid until the next call. Throws std::bad_alloc.
    const Decision& decide(Collective collective, std::uint64_t bytes, std::uint32_t generation, bool stable);

    // The same of calls between neighbours that are tried in the memory of their host, whose messages have
    // `bytes` on average.
    const Decision& decide_neighbours(std::uint64_t bytes, std::uint32_t generation);
    // Whether the algorithm that was chosen can serve the call. Equal on all ranks. Throws std::bad_alloc.
    bool serves(const CallShape& shape, const Choice& choice);
    // No size of such calls has a schedule here, by what decide() was asked for last.
    bool leaves_all_native(Collective collective) const {
        const std::optional<Decisions>& decided = decided_[static_cast<std::size_t>(collective)];
        return !decided || decided->leaves_all_native();
    }
    bool leaves_neighbours_native() const { return !neighbours_ || neighbours_->leaves_all_native(); }

    // Where an operation runs. Collective, where the channel has to be made first. Null, on all ranks, where
    // the communicator is native for good. Throws std::bad_alloc.
    std::shared_ptr<Lane> lane(MPI_Comm comm);
    WaitPolicy policy() const;
    // lane() is on the channel of the communicator, which numbers what runs there.
    bool shares_numbers() const;

    // Frees what is kept for the next calls, but on the lane of nonblocking operations.
    void drop_idle();

  private:
    // What all of them were made from.
    struct Inputs {
        std::uint32_t generation = 0;
        Network network;
        bool sleeps = false;
        std::uint64_t ports = 1;
        bool operator==(const Inputs&) const = default;
    };
    Inputs inputs(std::uint32_t generation) const;
    // Forgets what was decided from others.
    void renew(std::uint32_t generation);

    Communicator& communicator_;
    Inputs decided_from_;
    std::array<std::optional<Decisions>, collective_count> decided_;
    std::optional<Decisions> stable_;  // of allreduces
    std::optional<Decisions> neighbours_;
    Servable servable_;  // what is no vector
    // On the communicator's channel. The lane of nonblocking operations is theirs alone to keep.
    std::shared_ptr<Lane> own_lane_;
};

// True: done, and `error` is what the call returns. False: the native library has the call. Collective over
// call.comm; every rank takes the same way. Pre: call.comm is a communicator, or none. Throws std::bad_alloc
// where this rank alone cannot run what the others do. `trial` is set as by exchange_now
// (blocking_exchange.h), null before.
bool run_blocking(World& world, const CollectiveCall& call, int& error, Trial*& trial);

// The same for a call that all ranks run, as the carriage says, but that the error handler has still to hear
// of `error`. False: its arguments are wrong on this rank, and so for MPI on all of them.
bool run_on_lane(Communicator& communicator, const CollectiveCall& call, const CallShape& shape,
                 Carriage carriage, int& error);

}  // namespace thalweg
