// The messages of one call of the alltoall family, or of a neighbourhood, as the program's arguments give
// them; and what ranks tell one another about them before a persistent operation is planned.
#pragma once

#include <mpi.h>

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "algorithms/exchange.h"
#include "base/status.h"
#include "plan/ongoing.h"
#include "select/exchanges.h"
#include "topology/topology.h"
#include "transport/channel_name.h"

namespace thalweg {

// One message: elements of a type in the program's memory, and who is at its other end.
struct Letter {
    int peer = 0;
    int edge = 0;  // how many before it this side has with the same peer, those of no bytes included
    Segment where;
    std::uint64_t bytes = 0;
    std::uint64_t type_identity = 0;  // TypeShape's; of no elements 0

    bool operator==(const Letter&) const = default;
};

// All messages of one rank. The k-th to a peer meets the k-th that the peer has from this rank: Exchange says
// how other pairings are written.
struct Letters {
    std::vector<Letter> outgoing, incoming;

    std::uint64_t sent_bytes() const;
    bool operator==(const Letters&) const = default;
};

// One side of a call: one entry per message, of ints or of large counts; not used after the call.
// Displacements count extents of `type`, or bytes where every message has a type of its own.
struct LetterArrays {
    const int* counts = nullptr;
    const int* displacements = nullptr;
    const MPI_Count* large_counts = nullptr;
    const MPI_Aint* large_displacements = nullptr;
    MPI_Datatype type{};
    const MPI_Datatype* types = nullptr;

    bool given() const { return counts != nullptr || large_counts != nullptr; }
};

// What the letter before was made of: mostly that is what the next one is, and MPI need not be asked again.
struct LetterType {
    bool known = false;
    MPI_Datatype type{};
    std::uint64_t size = 0;
    std::int64_t extent = 0;
    std::uint64_t identity = 0;
};

// Adds the message with entry `index` of `side` to `letters`; `last` is of this side's letters alone. False:
// arguments that the native library judges.
bool read_letter(const LetterArrays& side, int index, int peer, std::vector<Letter>& letters,
                 LetterType& last);
// One message for every rank.
bool read_letters(const LetterArrays& side, int size, std::vector<Letter>& letters);

// Lets messages between different ranks travel from and to the program's memory, as messages of the lane that
// the operation runs on: for schedules that send what is in `in` to where it stays in `out`, each parcel as
// it is. After attach(). Throws std::bad_alloc.
void send_in_place(const Letters& letters, int rank, bool copied, Ongoing& ongoing);

// Makes the program's memory what schedules work on, and `exchange`, whose `empty_travel` is read, say where
// each message lies there.
// `copied`: the input is what the receive buffer holds at every start (MPI_IN_PLACE). Errors: those of
// ProgramBuffer::attach. Throws std::bad_alloc.
Status attach(const Letters& letters, void* send, void* receive, bool copied, ProgramBuffer& input,
              ProgramBuffer& output, Exchange& exchange);

// What `rank` of `size` says of its messages.
TraitWords words_of(const Letters& letters, int rank, int size, const Topology& topology);
// What of them tells whether sizes agree: digests of what it sends, less those of what it receives. Added up
// over all ranks nothing is left over where they do.
std::uint64_t difference_of(const Letters& letters, int rank);
// Collective: one small allreduce. `name`, where it is not null: what rank 0 has there is there on all ranks
// afterwards. Throws AgreementFailed (set_up.h).
Traits agree_on_traits(MPI_Comm comm, const Letters& letters, int rank, int size, const Topology& topology,
                       std::optional<ChannelName>* name = nullptr);

// The same in two parts, between which the ranks may do other things on `comm`, all of them the same; without
// a name.
class TraitsToCome {
  public:
    // Collective. Throws AgreementFailed.
    TraitsToCome(MPI_Comm comm, const Letters& letters, int rank, int size, const Topology& topology);
    ~TraitsToCome();  // waits, where nobody has taken them
    TraitsToCome(const TraitsToCome&) = delete;
    TraitsToCome& operator=(const TraitsToCome&) = delete;
    // Once. Throws AgreementFailed.
    Traits take();

  private:
    MPI_Comm comm_;
    int size_;
    bool pending_ = false;
    MPI_Request request_;
    TraitWords own_{}, all_{};
};

// Tells the leader of every host what its ranks exchange with other hosts: Exchange::crossing. Collective.
// False, on all ranks alike: some lack memory, or MPI failed. Throws AgreementFailed.
bool inform_leaders(MPI_Comm comm, const Letters& letters, int rank, const Topology& topology,
                    Exchange& exchange);

}  // namespace thalweg
